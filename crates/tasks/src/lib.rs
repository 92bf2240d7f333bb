//! Tasks that use fitted models: perplexity, sampling, tagging, analogies, topic coherence, classification, plots.
//!
//! A task uses a model through its role (`LanguageModel`, `TokenEncoder`, `TopicModel`, `Tagger`) and
//! does not depend on model crates. It works with every model that has the role:
//!
//! ```
//! use latens_corpus::{Sentences, WordId};
//! use latens_model::{LanguageModel, Scorer};
//! use latens_tasks::perplexity;
//!
//! /// Gives each of four words the same probability.
//! struct Uniform;
//!
//! impl LanguageModel for Uniform {
//!     fn n_words(&self) -> usize {
//!         4
//!     }
//!
//!     fn scorer(&self) -> Box<dyn Scorer + '_> {
//!         Box::new(Uniform)
//!     }
//! }
//!
//! impl Scorer for Uniform {
//!     fn read(&mut self, _: WordId) -> f64 {
//!         0.25f64.ln()
//!     }
//!
//!     fn next_log_probs(&mut self, out: &mut [f64]) {
//!         out.fill(0.25f64.ln());
//!     }
//! }
//!
//! let text = Sentences::from_words([[WordId(2), WordId(3)]]);
//! let scored = perplexity(&Uniform, &text);
//! assert_eq!(scored.tokens, 3); // two words and the end of the sentence
//! assert!((scored.perplexity() - 4.0).abs() < 1e-12);
//! ```

pub mod perplexity;
pub mod sampling;
pub mod tagging;
pub mod analogies;
pub mod topics;
pub mod trend;
pub mod stability;
pub mod classification;
pub mod plot;

pub use perplexity::{
    Impossible, Perplexity, first_impossible, perplexity, perplexity_on, token_log_probs,
    token_log_probs_on,
};
pub use sampling::{SampleOptions, sample, sample_sentences, sample_sentences_on, sample_with};
