//! Flat weight vectors, activations and their initial values.

mod weights;
mod buffer;
mod init;
mod column_sums;
mod sparse_rows;

pub use buffer::Buffer;
pub use column_sums::add_column_sums;
pub use init::{fill_normal, fill_uniform};
pub use sparse_rows::SparseRows;
pub use weights::{Layout, WeightId};
