//! n-gram language models with interpolated modified Kneser–Ney smoothing (Chen & Goodman 1998).
//!
//! A model predicts a word from the n − 1 words before it. Counts of observed n-grams are discounted,
//! and the freed probability mass goes to predictions from shorter histories, down to the uniform
//! distribution. Every word thus has a probability above zero after every history.
//!
//! ```
//! use latens_model::Fit;
//! use latens_model_ngram::Ngram;
//!
//! let corpus = latens_testkit::two_class_corpus(/* n_sentences */ 200, /* seed */ 1);
//! let model = Ngram::params().order(3).fit(&corpus)?;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("toy.ngram");
//! model.save(&path)?;
//! let model = Ngram::open(&path)?;
//! assert!(model.word_prob("a0 b0", "a1") > model.word_prob("a0 b0", "a9"));
//! println!("{:?}", model.next_words("a0 b0", 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod trie;
mod scorer;
mod model;
mod predict;
mod discounts;
mod kneser_ney;
mod streamed;
mod partial_counts;
mod cost;
mod fit;
mod file;
mod arpa;
mod shards;

pub use arpa::ArpaError;
pub use model::Ngram;
pub use params::{MAX_ORDER, NgramParams};
pub use shards::NgramShards;
