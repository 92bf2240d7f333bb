//! Test support for all models: toy corpora, and checks that every model must pass.
//!
//! A `check_*` function panics with a message if a model fails the check. Every model crate calls the checks of
//! its roles in `tests/roles.rs`:
//!
//! ```
//! use latens_corpus::{Corpus, WordId};
//! use latens_model::{FeatureRows, TokenEncoder};
//! use latens_testkit::{check_token_encoder, two_class_corpus};
//!
//! /// One feature per word.
//! struct OneHot {
//!     n_words: usize,
//! }
//!
//! impl TokenEncoder for OneHot {
//!     fn n_features(&self) -> usize {
//!         self.n_words
//!     }
//!
//!     fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
//!         sentence.iter().for_each(|word| out.push_sparse([(word.0, 1.0)]));
//!     }
//! }
//!
//! let Corpus { lexicon, sentences } = two_class_corpus(/* n_sentences */ 20, /* seed */ 1);
//! check_token_encoder(&OneHot { n_words: lexicon.vocab.len() }, &sentences);
//! ```

mod toy;
mod language_model;
mod token_encoder;
mod topic_model;
mod files;
mod forge;
mod resume;
mod ring;
#[cfg(test)]
mod trainer;

pub use files::{check_damaged_file, check_file_round_trip};
pub use forge::forged_floats;
pub use language_model::check_language_model;
pub use resume::check_resume;
pub use ring::in_ring;
pub use token_encoder::check_token_encoder;
pub use topic_model::check_topic_model;
pub use toy::{two_class_corpus, zipfian_corpus};

/// Returns the message of a failing check, for tests that show that it can fail.
#[cfg(test)]
fn complaint(check: impl FnOnce()) -> String {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
    let payload = caught.expect_err("the check should have failed");
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => (*payload.downcast::<&str>().expect("the panic has a message")).to_owned(),
    }
}
