//! The estimated cost of training: memory and work, and roughly the time.

mod dry_run;
mod time;

pub(crate) use dry_run::{CostArgs, show_cost};
pub(super) use time::time_estimate;
