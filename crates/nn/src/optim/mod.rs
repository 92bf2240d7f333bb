//! Optimizers, gradient clipping and learning-rate schedules.

mod adamw;
mod sgd;
mod clip;
mod schedule;

pub use adamw::{AdamW, AdamWParams, AdamWStep};
pub use clip::{clip_factor, norm, sparse_norm};
pub use schedule::{Halving, Plateau, Schedule, Verdict};
pub use sgd::Sgd;
