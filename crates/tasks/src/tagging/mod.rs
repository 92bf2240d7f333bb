//! Taggers of words: one that is learned from features of any kind, and how well any of them tags.
//!
//! [`FeatureTagger`] looks at a word, its letters and its neighbours (`template.rs` lists what of them), and at what
//! any number of encoders know of it: Brown clusters, hidden states, vectors. It finds the tags of a sentence together
//! (a linear-chain conditional random field; Lafferty, McCallum and Pereira 2001) or one by one.
//!
//! ```
//! use latens_corpus::{Inputs, Preprocessing, TaggedSentences};
//! use latens_model::{Params, Tagger, unwatched};
//! use latens_tasks::tagging::{FeatureTagger, TaggedTraining, TaggerParams};
//!
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("dogs.conll");
//! std::fs::write(&path, "the D\ndog N\nbarks V\n\na D\ncat N\nsleeps V\n\nthe D\ncat N\nwalks V\n")?;
//! let text = TaggedSentences::read(&Inputs::new([path]))?;
//! let training = TaggedTraining { text: &text, column: 1, preprocessing: Preprocessing::default() };
//! let params = TaggerParams::default().validate()?;
//! let tagger = FeatureTagger::fit(&params, &training, vec![], &mut unwatched)?;
//! let names: Vec<&str> =
//!     tagger.tag(&["a", "dog", "walks"])?.iter().map(|&tag| &*tagger.tags()[tag as usize]).collect();
//! assert_eq!(names, ["D", "N", "V"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod params;
mod features;
mod weights;
mod heads;
mod learn;
mod fitted;
mod spans;
mod evaluation;
#[cfg(test)]
mod tests;

pub use evaluation::compare::Comparison;
pub use evaluation::score::{
    EvaluateError, SpanScores, TagScores, compare, evaluate, right, tag_all,
};
pub use features::encoders::{Encoder, WordEncoder};
pub use features::template::attributes;
pub use fitted::file::OpenEncoder;
pub use fitted::tagger::FeatureTagger;
pub use learn::fit::{TaggedTraining, TaggerError};
pub use params::{Kind, Optimizer, Pairs, TaggerParams};
pub use spans::{Scheme, Span, are_chunk_tags, spans};
