//! CUDA for the models of latens: memory on a device, kernels compiled when a device is opened, and products of
//! matrices by cuBLAS, behind functions that check the lengths of what they are given. What arrays of indices hold is
//! not checked: it lies on the device, and whoever put it there answers for it. An array belongs to the device that
//! made it.
//!
//! Nothing here is needed to build: the libraries of CUDA are looked for when [`Device::open`] is called, and where there
//! are none it says so. The crate knows no words and no models; what a kernel computes is said in its `.cu` file and
//! at the function that starts it. `tests/twins` compares every kernel with a twin on the processor; the tests of
//! `latens-model-hmm` and `latens-model-neural` compare whole steps with those of the CPU.
//!
//! Matrices are row-major. All work of a [`Device`] is done in one stream, in the order of the calls; only downloads wait for it.
//! [`Device::beside`] makes another.

#![allow(unsafe_code)]

mod device;
mod product;
mod derivative;
mod layers;
mod norms;
mod transition;
mod emission;
mod recursion;
mod listed;
mod lockstep;
mod optimizer;
mod counts;
mod recurrent;

pub use derivative::Derivative;
pub use device::{Array, CudaError, Device};
pub use emission::{Emissions, Part};
pub use layers::{Columns, RowGroups};
pub use listed::{Listed, StateTokens};
pub use lockstep::Steps;
pub use norms::NormWeights;
pub use optimizer::{AdamWStep, StepResult};
pub use product::{Precision, Transposed};
pub use recurrent::{Fresh, Squash, WordGroups};
pub use recursion::{Groups, MAX_STATES, Sequences};
pub use transition::Blocks;
