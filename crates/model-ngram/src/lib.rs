//! n-gram language models with interpolated modified Kneser–Ney smoothing (Chen & Goodman 1998).
//!
//! A model predicts a word from the n − 1 words before it. Counts of observed n-grams are discounted,
//! and the freed probability mass goes to predictions from shorter histories, down to the uniform
//! distribution. Every word thus has a probability above zero after every history.
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
mod trie;
mod scorer;
mod model;
mod discounts;
mod kneser_ney;
mod partial_counts;
mod fit;
mod file;
mod arpa;

pub use arpa::ArpaError;
pub use model::Ngram;
pub use params::{MAX_ORDER, NgramParams};
