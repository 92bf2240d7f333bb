//! Counts any number of keys in bounded memory: sorted runs move to disk when the budget is spent and
//! are merged at the end.
//!
//! The result depends only on the keys. Their order, their division into shards and the budget do not
//! matter.
//!
//! ```
//! use latens_counts::runs::{Run, RunCounter};
//!
//! let mut counter = RunCounter::new(&latens_counts::Budget::default());
//! counter.push_keys(vec![3, 1, 3_u64])?;
//! counter.push_run(Run::new(vec![1, 2], vec![10, 20]))?;
//! let counts = counter.finish()?.collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(counts, [(1, 11), (2, 20), (3, 2)]);
//! # Ok::<(), latens_counts::CountError>(())
//! ```

mod spill;
pub(crate) mod merge;
mod counter;

pub use counter::{Counted, Run, RunCounter};
