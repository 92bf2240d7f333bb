//! word2vec (Mikolov et al. 2013): a vector for each word, such that words which stand among the same words have
//! vectors of the same direction.
//!
//! [`Algorithm::Cbow`] guesses a word from the mean of the vectors around it, [`Algorithm::SkipGram`] from each of
//! them. Right guesses are told from random words (`negatives.rs`), frequent words are left out now and then
//! (`text.rs`), and all threads learn at once, without locks (`latens_math::hogwild`). One thread alone gives the same
//! model for the same seed; several do not, as they lose some of each other's changes.
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
//! let vector = model.vectors().get(word).expect("the word was seen");
//! let nearest = model.vectors().nearest(vector, 5, &[word]);
//! assert_eq!(nearest.len(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod negatives;
mod text;
mod worker;
mod learner;
mod fit;
mod model;
#[cfg(test)]
mod tests;

pub use model::Word2vec;
pub use params::{Algorithm, Word2vecParams};
