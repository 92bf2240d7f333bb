//! Word vectors by word2vec (Mikolov et al. 2013): words that occur in similar contexts get vectors of similar direction.
//!
//! [`Algorithm::Cbow`] predicts a word from the mean of the vectors of its context words, [`Algorithm::SkipGram`] from
//! each of them. The loss contrasts the word with negative samples (`negatives.rs`). Tokens of frequent words are
//! randomly dropped (`text.rs`). Threads update the vectors without locks (`latens_math::hogwild`), so
//! the result is reproducible from a seed only with one thread.
//!
//! ```
//! use latens_model::Fit;
//! use latens_model_word2vec::Word2vec;
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 300, /* seed */ 1);
//! let model = Word2vec::params().dim(8).window(1).subsample(0.0).fit(&corpus)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.word2vec");
//! model.save(&path)?;
//! let model = Word2vec::open(&path)?;
//! let nearest = model.nearest("a0", 5).expect("the word occurs in the text");
//! assert_eq!(nearest.len(), 5);
//! let vectors = model.embed("a0 b1 a2");
//! assert_eq!((vectors.n_rows(), vectors.n_columns()), (3, 8));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod negatives;
mod text;
mod learner;
mod worker;
mod cost;
mod fit;
mod model;
mod shards;
#[cfg(test)]
mod tests;

pub use model::Word2vec;
pub use params::{Algorithm, Word2vecParams};
pub use shards::Word2vecShards;
