//! Neural network layers with hand-derived gradients, optimizers and learning rate schedules.
//! Independent of text.
//!
//! All weights of a model are stored in one flat vector, whose [`Layout`] assigns a range to each weight. A layer is a
//! handful of [`WeightId`]s and holds no numbers. `forward` reads the weights and an input with one row per example;
//! `backward` adds to a gradient of the same layout. Intermediate results are kept in a scratch struct that the caller
//! owns and reuses, so that training steps do not allocate. Optimizers ([`AdamW`], [`Sgd`]), the [`norm`] and
//! checkpoints use only the flat vectors.
//!
//! Everything is generic over `f32`, which models use, and `f64`, which finite differences ([`check`]) use. Loops run
//! over fixed chunks and [`multiply`] over fixed tiles, so results are bit for bit the same for any number of threads.
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

mod tensors;
mod layers;
mod chars;
mod recurrent;
mod optim;
pub mod check;
#[cfg(test)]
mod testing;

pub use chars::{CharCnn, CharCnnParams, CharCnnScratch, Conv, ConvScratch, Sequences, Spellings};
pub use latens_math::linalg::multiply;
pub use layers::{
    Activation, Dropout, Embedding, LayerNorm, LayerNormCache, Linear, Residual, ResidualScratch,
    bias_relu, biased_cross_entropy, cross_entropy, gather_rows, relu_backward, scatter_add_rows,
};
pub use optim::{
    AdamW, AdamWParams, AdamWStep, Halving, Plateau, Schedule, Sgd, Verdict, clip_factor, norm,
    sparse_norm,
};
pub use recurrent::{Elman, ElmanScratch, Lstm, LstmScratch, Squash, Streams};
pub use tensors::{
    Buffer, Layout, SparseRows, WeightId, add_column_sums, fill_normal, fill_uniform,
};
