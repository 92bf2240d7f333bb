//! Processes that train one model together.
//!
//! Every process of a [`Group`] has a copy of the model and computes the gradient of its share of each mini-batch. All add
//! up their gradients and do the same step, so that the copies stay equal bit for bit. [`Ring`] is a group of processes
//! on one or several machines, connected by TCP.

mod members;
mod sums;
mod ring;

pub use members::{Group, share};
pub use ring::{Ring, RingSeat, RingToken};
pub use sums::{add_up, is_same};
