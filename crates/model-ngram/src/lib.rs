//! n-gram language models: the probability of a word given the n − 1 words before it, estimated from
//! counts by interpolated modified Kneser–Ney smoothing (Chen & Goodman 1998).
//!
//! Counts of n-grams that were seen are lowered a little, and what this frees goes to predictions
//! from shorter histories, down to all words alike. So every word has a probability after every
//! history, and they sum to one.
//!
//! ```
//! use latens_model::{LanguageModel, Params, unwatched};
//! use latens_model_ngram::{Ngram, NgramParams};
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 200, /* seed */ 1);
//! let params = NgramParams { order: 3, ..NgramParams::default() }.validate()?;
//! let model = Ngram::fit(&params, &corpus, &mut unwatched)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.ngram");
//! model.save(&path)?;
//! let model = Ngram::open(&path)?;
//! let sentence = corpus.sentences.get(0);
//! assert!(model.log_prob(sentence) < 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod kneser_ney;
mod fit;
mod trie;
mod scorer;
mod model;
mod file;
mod arpa;

pub use arpa::ArpaError;
pub use model::Ngram;
pub use params::{MAX_ORDER, NgramParams};
