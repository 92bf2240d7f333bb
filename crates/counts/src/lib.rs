//! Exact counts of a text: n-grams ([`NgramCounts`]) and pairs of words at fixed distances
//! ([`LagCounts`]).
//!
//! Counting uses all threads of the current `rayon` pool and a memory [`Budget`], beyond which counts
//! are written to temporary files. Neither affects the result. Counting the parts of a text separately
//! and merging the counts gives the same bytes as counting the whole text.
//!
//! ```
//! use latens_corpus::Corpus;
//! use latens_counts::{Boundary, Budget, LagCounts, NgramCounts};
//! use std::ops::ControlFlow;
//!
//! let corpus = Corpus::from_lines(["ta ta tum", "ta tum"])?;
//! let vocab = &corpus.lexicon.vocab;
//! let (ta, tum) = (vocab.id("ta"), vocab.id("tum"));
//! let mut watch = |_n_tokens| ControlFlow::Continue(());
//!
//! let bigrams = NgramCounts::of(&corpus.sentences, vocab, 2, &Budget::default(), &mut watch)?;
//! let mut n_ta_tum = 0;
//! bigrams.for_each(|reversed, count| {
//!     if reversed == [tum, ta] {
//!         n_ta_tum = count;
//!     }
//! });
//! assert_eq!(n_ta_tum, 2);
//!
//! let lags = LagCounts::of(&corpus, 7, Boundary::Stream, &Budget::default(), &mut watch)?;
//! assert_eq!(lags.lag(1).get(tum, ta), 2); // `tum` one token after `ta`
//! assert_eq!(lags.lag(4).get(ta, ta), 1); // across the end of the first sentence
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ngrams;
mod lags;
mod distinct;
mod counting;
mod table;
pub mod runs;
pub mod spool;
mod budget;
mod limits;
mod error;

pub use budget::Budget;
pub use distinct::{distinct_ngrams, distinct_pairs};
pub use error::CountError;
pub use lags::lag_counts::{Boundary, LagCounts};
pub use lags::lag_matrix::LagMatrix;
pub use limits::{MAX_LAGS, MAX_ORDER};
pub use ngrams::ngram_counts::{NgramCounts, Visit};
