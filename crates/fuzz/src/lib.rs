//! Fuzz targets as ordinary functions of bytes: [`targets::TARGETS`].
//!
//! A reader may reject any input, but it may not panic, hang, or allocate memory out of proportion
//! to its input. What it accepts is used as a program would use it, and must satisfy the invariants
//! of its type: sentences end where they should, no result is NaN, and what was read can be saved
//! and opened again.
//!
//! The package in `fuzz/` runs the targets with libFuzzer. The tests of this crate run them on
//! [`seeds`] and a fixed set of [mutations](mutation::mutated), without a fuzzer.

use latens_math::linalg::{Accum, MatMut, MatRef, Scalar, matmul};

/// Multiplies two matrices, for which the library of products allocates a buffer as large as the caches of the processor:
/// hundreds of megabytes on some machines, once per thread.
pub fn warm_up() {
    fn product<T: Scalar>(one: T) {
        const N: usize = 64;
        let (ones, mut out) = (vec![one; N * N], vec![one; N * N]);
        let ones = MatRef::from_row_major_slice(&ones, N, N);
        matmul(MatMut::from_row_major_slice_mut(&mut out, N, N), Accum::Replace, ones, ones);
    }
    product(1f32);
    product(1f64);
}

pub mod forge;
pub mod outline;
pub mod mutation;
pub mod scratch;
pub mod use_text;
pub mod use_model;
pub mod use_counts;
pub mod use_shards;
pub mod trainings;
pub mod targets;
pub mod seeds;
