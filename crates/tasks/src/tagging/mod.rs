//! Sequence tagging: a tagger over features of any kind, and the evaluation of taggers.
//!
//! The features of a [`FeatureTagger`] are the word, its letters and its neighbors (listed in `features/template.rs`),
//! and the features of any number of encoders: Brown clusters, hidden states, word vectors. It predicts the tags of a
//! sentence jointly, by a linear-chain conditional random field (Lafferty, McCallum and Pereira 2001), or one by one.
//!
//! ```
//! use latens_corpus::TaggedSentences;
//! use latens_model::Fit;
//! use latens_tasks::tagging::{FeatureTagger, tag_words};
//!
//! let text = TaggedSentences::from_rows([
//!     [("the", "D"), ("dog", "N"), ("barks", "V")],
//!     [("a", "D"), ("cat", "N"), ("sleeps", "V")],
//!     [("the", "D"), ("cat", "N"), ("walks", "V")],
//! ])?;
//! let tagger = FeatureTagger::params().n_iterations(50).fit(&text)?;
//! assert_eq!(tag_words(&tagger, &["a", "dog", "walks"])?, ["D", "N", "V"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod spans;
mod features;
mod weights;
mod heads;
mod fitted;
mod learn;
mod shards;
mod evaluation;
#[cfg(test)]
mod tests;

pub use evaluation::bootstrap::{SpanComparison, compare_spans};
pub use evaluation::compare::{Comparison, compare};
pub use evaluation::per_type::{Confusion, TypeScores};
pub use evaluation::scores::{SpanScores, TagScores, evaluate};
pub use evaluation::tagged::{
    EvaluateError, TagTextError, correct_tokens, parts_of_speech, tag_names, tag_text, tag_text_on,
    tag_words,
};
pub use features::encoder::Encoder;
pub use features::model_encoder::{EncoderError, ModelEncoder};
pub use features::template::attributes;
pub use features::word_encoder::{GpuWordEncoder, WordEncoder};
pub use fitted::contributions::Contribution;
pub use fitted::file::OpenEncoder;
pub use fitted::tagger::FeatureTagger;
pub use learn::data::TaggerInputs;
pub use learn::error::TaggerError;
pub use params::{Kind, Optimizer, Pairs, TaggerParams};
pub use shards::{TaggerShards, TaggerText};
pub use spans::{Scheme, Span, are_chunk_tags, spans};
