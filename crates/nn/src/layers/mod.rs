//! Feed-forward layers and the loss.

mod linear;
mod dropout;
mod relu;
mod activation;
mod layer_norm;
mod residual;
mod embedding;
mod cross_entropy;

pub use activation::Activation;
pub use cross_entropy::{biased_cross_entropy, cross_entropy};
pub use dropout::Dropout;
pub use embedding::{Embedding, gather_rows, scatter_add_rows};
pub use layer_norm::{LayerNorm, LayerNormCache};
pub use linear::Linear;
pub use relu::{bias_relu, relu_backward};
pub use residual::{Residual, ResidualScratch};
