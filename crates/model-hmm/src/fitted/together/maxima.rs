//! Largest products of rows with the columns of a block.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

/// Number of columns that are computed at a time, a multiple of [`WIDTH`] vectors of any length.
const STRIP: usize = 64;

/// Number of rows of a strip that stay in the cache while all rows of `left` pass.
const PANEL: usize = 128;

/// Number of vectors of columns and of rows of `left` whose maxima are held in registers.
const WIDTH: usize = 2;
const HEIGHT: usize = 4;

/// out_mj = max_i left_mi block_ij, or 0, for a k × k block and any number of rows.
///
/// # Panics
/// If the shapes do not match.
pub(super) fn maxima(left: &[f32], block: &[f32], k: usize) -> Vec<f32> {
    assert!(block.len() == k * k && left.len().is_multiple_of(k), "a square block and whole rows");
    let n = left.len() / k;
    let mut strips = vec![0f32; k.div_ceil(STRIP) * n * STRIP];
    strips.par_chunks_mut(n * STRIP).enumerate().for_each(|(strip, maxima)| {
        let first = strip * STRIP;
        pulp::Arch::new().dispatch(Strip { left, block, k, first, maxima });
    });
    let mut out = vec![0f32; n * k];
    for (strip, maxima) in strips.chunks_exact(n * STRIP).enumerate() {
        for (out, maxima) in out.chunks_exact_mut(k).zip(maxima.chunks_exact(STRIP)) {
            let columns = &mut out[strip * STRIP..k.min((strip + 1) * STRIP)];
            columns.copy_from_slice(&maxima[..columns.len()]);
        }
    }
    out
}

/// Some columns of the block from `first` on, for all rows of `left`.
struct Strip<'a> {
    left: &'a [f32],
    block: &'a [f32],
    k: usize,
    first: usize,
    maxima: &'a mut [f32],
}

impl WithSimd for Strip<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (k, n) = (self.k, self.left.len() / self.k);
        let n_columns = STRIP.min(k - self.first);
        let mut panel = vec![0f32; PANEL * STRIP];
        for (panel_idx, rows) in self.block.chunks(PANEL * k).enumerate() {
            // Rows of the block are far apart, often by a multiple of 4 KiB, and would evict each other from the cache.
            for (copy, row) in panel.chunks_exact_mut(STRIP).zip(rows.chunks_exact(k)) {
                copy[..n_columns].copy_from_slice(&row[self.first..self.first + n_columns]);
            }
            let panel = &panel[..rows.len() / k * STRIP];
            let begin = panel_idx * PANEL;
            let mut m = 0;
            while m < n {
                let (left, maxima) = (&self.left[m * k + begin..], &mut self.maxima[m * STRIP..]);
                m += match n - m {
                    1..HEIGHT => update_rows::<S, 1>(simd, left, k, panel, maxima),
                    _ => update_rows::<S, HEIGHT>(simd, left, k, panel, maxima),
                };
            }
        }
    }
}

/// Updates the maxima of M rows with the products of a panel, and returns M.
#[inline(always)]
fn update_rows<S: Simd, const M: usize>(
    simd: S,
    left: &[f32],
    k: usize,
    panel: &[f32],
    maxima: &mut [f32],
) -> usize {
    let n_rows = panel.len() / STRIP;
    let left: [&[f32]; M] = std::array::from_fn(
        #[inline(always)]
        |m| &left[m * k..][..n_rows],
    );
    let mut column = 0;
    while column < STRIP {
        let width = WIDTH * S::F32_LANES;
        let mut best = [[simd.splat_f32s(0.0); WIDTH]; M];
        for (m, best) in best.iter_mut().enumerate() {
            let before = S::as_simd_f32s(&maxima[m * STRIP + column..][..width]).0;
            best.copy_from_slice(before);
        }
        for (i, row) in panel.chunks_exact(STRIP).enumerate() {
            let row = S::as_simd_f32s(&row[column..column + width]).0;
            for m in 0..M {
                let factor = simd.splat_f32s(left[m][i]);
                for w in 0..WIDTH {
                    best[m][w] = simd.max_f32s(simd.mul_f32s(factor, row[w]), best[m][w]);
                }
            }
        }
        for (m, best) in best.iter().enumerate() {
            let after = &mut maxima[m * STRIP + column..][..width];
            S::as_mut_simd_f32s(after).0.copy_from_slice(best);
        }
        column += width;
    }
    M
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    #[test]
    fn the_largest_products_agree_with_the_definition() {
        let mut rng = Rng::new(1);
        for k in [1, 2, 17, 64, 65, 130, 200] {
            for n in [1, 2, 5, 9] {
                let mut numbers =
                    |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform() as f32).collect() };
                let (block, vectors) = (numbers(k * k), numbers(n * k));
                let found = maxima(&vectors, &block, k);
                for (m, vector) in vectors.chunks_exact(k).enumerate() {
                    for j in 0..k {
                        let products = (0..k).map(|i| vector[i] * block[i * k + j]);
                        let expected = products.fold(0.0, f32::max);
                        assert_eq!(found[m * k + j], expected, "{k} {n} {m} {j}");
                    }
                }
            }
        }
    }
}
