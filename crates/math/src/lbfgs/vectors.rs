//! Arithmetic on long vectors in fixed blocks, so that results do not depend on the number of threads.

use rayon::prelude::*;

/// Number of values per task.
const BLOCK: usize = 1 << 15;

/// Number of independent partial sums, which the compiler vectorizes.
const LANES: usize = 16;

/// Computes Σ_i a_i b_i on all threads.
///
/// Not [`crate::dot`], whose order of additions rounds differently: the path of a search follows from these bits.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let blocks = a.par_chunks(BLOCK).zip(b.par_chunks(BLOCK));
    blocks.map(|(a, b)| dot_block(a, b)).collect::<Vec<f64>>().iter().sum()
}

fn dot_block(a: &[f64], b: &[f64]) -> f64 {
    crate::vectorized(
        #[inline(always)]
        || {
            let mut lanes = [0.0; LANES];
            let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
            let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
            let rest: f64 = rest.map(|(a, b)| a * b).sum();
            for (a, b) in a_chunks.zip(b_chunks) {
                for lane in 0..LANES {
                    lanes[lane] += a[lane] * b[lane];
                }
            }
            lanes.iter().sum::<f64>() + rest
        },
    )
}

pub(super) fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// Computes Σ_i |a_i|.
pub(super) fn norm_1(a: &[f64]) -> f64 {
    let blocks = a.par_chunks(BLOCK).map(|a| a.iter().map(|a| a.abs()).sum::<f64>());
    blocks.collect::<Vec<f64>>().iter().sum()
}

/// Computes a ← a + factor · b.
pub(super) fn add_scaled(a: &mut [f64], factor: f64, b: &[f64]) {
    a.par_chunks_mut(BLOCK).zip(b.par_chunks(BLOCK)).for_each(|(a, b)| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
    });
}

pub(super) fn scale(a: &mut [f64], factor: f64) {
    a.par_chunks_mut(BLOCK).for_each(|a| a.iter_mut().for_each(|a| *a *= factor));
}

/// Returns a + factor · b.
pub(super) fn linear(a: &[f64], factor: f64, b: &[f64]) -> Vec<f64> {
    let mut sum = a.to_vec();
    add_scaled(&mut sum, factor, b);
    sum
}
