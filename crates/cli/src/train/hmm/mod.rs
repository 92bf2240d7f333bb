//! `latens train hmm` and `latens distill`.

mod args;
mod train;
mod distill;

pub(crate) use distill::{DistillArgs, run as run_distill};
pub(crate) use train::{HmmArgs, TAG_COLUMN, run};
