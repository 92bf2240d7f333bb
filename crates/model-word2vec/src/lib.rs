//! Word vectors by word2vec (Mikolov et al. 2013): words that occur in similar contexts get vectors of similar direction.
//!
//! [`Algorithm::Cbow`] predicts a word from the mean of the vectors of its context words, [`Algorithm::SkipGram`] from
//! each of them. The loss contrasts the word with negative samples (`negatives.rs`). Frequent words are randomly dropped
//! (`text.rs`). All threads train at once without locks (`latens_math::hogwild`), so that the result is reproducible for
//! a given seed with one thread only.
//!
//! ```
//! use latens_model::{Params, unwatched};
//! use latens_model_word2vec::{Word2vec, Word2vecParams};
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 300, /* seed */ 1);
//! let params = Word2vecParams { dim: 8, window: 1, subsample: 0.0, ..Word2vecParams::default() };
//! let model = Word2vec::fit(&params.validate()?, &corpus, &mut unwatched)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.word2vec");
//! model.save(&path)?;
//! let model = Word2vec::open(&path)?;
//! let word = model.lexicon().vocab.id("a0");
//! let vector = model.vectors().get(word).expect("the word occurs in the text");
//! let nearest = model.vectors().nearest(vector, 5, &[word]);
//! assert_eq!(nearest.len(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod negatives;
mod text;
mod learner;
mod worker;
mod fit;
mod model;
#[cfg(test)]
mod tests;

pub use model::Word2vec;
pub use params::{Algorithm, Word2vecParams};
