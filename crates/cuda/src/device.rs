//! The device: memory, streams, recordings, errors and the table of kernels.

mod error;
mod capability;
mod element;
mod array;
mod handle;
mod launch;
pub(crate) mod kernels;
mod compile;
mod open;
mod memory;
mod recording;

pub use array::Array;
pub(crate) use array::{View, ViewMut};
pub use element::Element;
pub use error::CudaError;
pub use handle::Device;
pub(crate) use launch::{at_least, exactly, for_each, grid, int, warps};
pub use recording::Recordings;
