//! CUDA kernels of latens, wrapped in functions over device arrays.
//!
//! - [`Device`] and [`Array`]: memory, streams and errors. Operations run asynchronously, in the order of the calls.
//! - [`Recordings`]: loops of short kernels that start at once, as CUDA graphs.
//! - Matrix products with cuBLAS ([`Device::multiply`]).
//! - Neural networks: layers, losses and optimizers ([`Columns`], [`NormWeights`], [`Fresh`], [`WordGroups`],
//!   [`AdamWStep`]).
//! - Sums over the devices of several processes with NCCL ([`Nccl`]).
//! - Hidden Markov models: transitions, emissions, the scaled recursions and expected counts ([`Blocks`],
//!   [`Emissions`], [`Sequences`], [`Steps`], [`Listed`]).
//!
//! The crate needs no CUDA to build. [`Device::open`] loads the driver, NVRTC and cuBLAS, compiles the kernels, and
//! returns an error if one of them is missing.
//!
//! ```
//! use latens_cuda::{CudaError, Device};
//!
//! fn main() -> Result<(), CudaError> {
//!     let device = match Device::open() {
//!         Err(error) if error.is_unavailable() => return Ok(()),
//!         device => device?,
//!     };
//!     let mut values = device.upload(&[0.0f32, 0.0, 0.0, 0.0])?;
//!     device.softmax(&mut values, 4)?;
//!     assert_eq!(device.download(&values)?, [0.25; 4]);
//!     Ok(())
//! }
//! ```
//!
//! # Panics
//! Every function checks the length of each array before it launches a kernel, and panics if an array is too short for
//! the given sizes, or belongs to another device. The indices inside arrays of `u32` are **not** checked, since they are
//! in device memory. The caller must keep them in bounds.
//!
//! # Layout
//! Matrices are row-major. Each `.rs` file is next to the `.cu` file with its kernels, and one table lists the signatures
//! of all kernels. `tests/twins` compares every kernel with a CPU implementation; the tests of `latens-model-hmm` and
//! `latens-model-neural` compare whole training steps with those on the CPU.

#![allow(unsafe_code)]

mod device;
mod shape;
mod blas;
mod nccl;
mod nn;
mod hmm;

pub use blas::{Factor, Precision, Transposed};
pub use device::kernels::KERNELS;
pub use device::{Array, CudaError, Device, Element, Recordings};
pub use half::{bf16, f16};
pub use hmm::{
    BlockShape, Blocks, ClusterOrder, ClusterSize, Emissions, Groups, Listed, MAX_STATES,
    PowerBuffers, Sequences, StateTokens, Steps,
};
pub use nccl::{Nccl, NcclId};
pub use nn::{
    AdamWStep, Columns, Derivative, Dropout, Fresh, NormKept, NormWeights, PickedColumns, Purpose,
    RowGroups, Squash, StepResult, TimeStep, WordGroups,
};
pub use shape::{ProductShape, Shape};
