//! Exact counts of a text: of n-grams ([`NgramCounts`]) and of pairs of words some tokens apart
//! ([`LagCounts`]).
//!
//! Counting uses all threads of the current `rayon` pool and a [`Budget`] of memory, beyond which it
//! goes on in temporary files. Neither changes the result: it is the same to the last byte, also
//! when parts of a text are counted apart and merged.
//!
//! ```
//! use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits};
//! use latens_counts::{Boundary, Budget, LagCounts, NgramCounts};
//! use std::ops::ControlFlow;
//!
//! let limits = VocabLimits::default();
//! let vocab = Vocab::from_counts([("ta", 3), ("tum", 2)], &limits);
//! let (ta, tum) = (vocab.id("ta"), vocab.id("tum"));
//! let sentences = Sentences::from_words([vec![ta, ta, tum], vec![ta, tum]]);
//! let lexicon = Lexicon { preprocessing: Preprocessing::default(), limits, vocab };
//! let corpus = Corpus { lexicon, sentences };
//! let mut watch = |_done_tokens| ControlFlow::Continue(());
//!
//! let bigrams = NgramCounts::of(&corpus.sentences, 4, 2, &Budget::default(), &mut watch)?;
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
//! # Ok::<(), latens_counts::CountError>(())
//! ```

mod ngrams;
mod context;
mod ngram_file;
mod lags;
mod lag_matrix;
mod lag_file;
mod tally;
mod batches;
mod occurrences;
mod rows;
mod table;
mod table_file;
pub mod runs;
mod spill;
mod merge;
mod array_sink;
mod budget;
mod error;

pub use budget::Budget;
pub use error::CountError;
pub use lag_matrix::LagMatrix;
pub use lags::{Boundary, LagCounts, MAX_LAGS};
pub use ngrams::{MAX_ORDER, NgramCounts};
