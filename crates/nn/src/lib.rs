//! Neural layers with hand-derived gradients. There are no words here: matrices in, matrices out.
//!
//! All weights of a model lie in one flat vector, and its [`Layout`] says where. A layer is a handful
//! of [`WeightId`]s; it holds no numbers. `forward` reads the weights and an input, one row for each
//! example, and `backward` adds to a gradient of the same layout. What one leaves for the other
//! is in a scratch struct of the caller's, whose memory is used again in every step. Optimisers
//! ([`AdamW`], [`Sgd`]), the [`norm`] and checkpoints see the flat vectors only.
//!
//! Everything is written for `f32` and `f64` alike: models use the former, and finite differences
//! ([`check`]) the latter. Loops share out fixed chunks and [`multiply`] fixed tiles to threads, so
//! that every result has the same bits whatever their number.
//!
//! ```
//! use latens_math::linalg::{MatRef, Par};
//! use latens_math::Rng;
//! use latens_nn::{AdamW, AdamWParams, Buffer, Layout, Linear, cross_entropy};
//!
//! // Which of two numbers is larger?
//! let x = MatRef::from_row_major_slice(&[0.1, 0.9, 0.8, 0.3, 0.5, 0.6, 0.2, 0.1], 4, 2);
//! let larger = [1, 0, 1, 0];
//!
//! let mut layout = Layout::new();
//! let layer = Linear::new(&mut layout, "choice", 2, 2);
//! let mut weights = vec![0f32; layout.len()];
//! layer.init(&mut weights, &mut Rng::new(1));
//! let mut adam = AdamW::new(AdamWParams::default(), layout.len());
//! let mut logits = Buffer::new();
//! logits.resize(4, 2);
//! let mut loss = f64::INFINITY;
//! for _ in 0..200 {
//!     let mut gradient = vec![0.0; layout.len()];
//!     layer.forward(&weights, x, logits.view_mut(), Par::Seq);
//!     loss = cross_entropy(logits.view_mut(), &larger, 1.0, Par::Seq);
//!     layer.backward(&weights, x, logits.view(), &mut gradient, None, Par::Seq);
//!     adam.update(&mut weights, &gradient, 0.1, 1.0);
//! }
//! assert!(loss < 0.2);
//! ```

mod weights;
mod buffer;
mod init;
mod column_sums;
mod linear;
mod dropout;
mod relu;
mod activation;
mod layer_norm;
mod residual;
mod embedding;
mod windows;
mod conv;
mod symbols;
mod char_cnn;
mod recurrent;
mod elman;
mod lstm;
mod cross_entropy;
mod adamw;
mod sgd;
mod clip;
mod schedule;
pub mod check;
#[cfg(test)]
mod exam;

pub use activation::Activation;
pub use adamw::{AdamW, AdamWParams};
pub use buffer::Buffer;
pub use char_cnn::{CharCnn, CharCnnParams, CharCnnScratch, Spellings};
pub use clip::{clip_factor, norm};
pub use column_sums::add_column_sums;
pub use conv::{Conv, ConvScratch};
pub use cross_entropy::{biased_cross_entropy, cross_entropy};
pub use dropout::Dropout;
pub use elman::{Elman, ElmanScratch};
pub use embedding::{Embedding, gather_rows, scatter_add_rows};
pub use init::{fill_normal, fill_uniform};
pub use latens_math::linalg::multiply;
pub use layer_norm::{LayerNorm, LayerNormCache};
pub use linear::Linear;
pub use lstm::{Lstm, LstmScratch};
pub use recurrent::{Squash, Streams};
pub use relu::{bias_relu, relu_backward};
pub use residual::{Residual, ResidualScratch};
pub use schedule::{Halving, Plateau, Schedule, Verdict};
pub use sgd::Sgd;
pub use weights::{Layout, WeightId};
pub use windows::Sequences;
