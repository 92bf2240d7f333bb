//! Largest products of vectors with the columns of a block.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

/// Number of columns that are computed at a time, a multiple of [`WIDTH`] vectors.
pub(super) const STRIP: usize = 64;

/// Number of rows of a strip that stay in the cache while all vectors pass.
const PANEL: usize = 128;

/// Number of vectors of columns that are held in registers.
const WIDTH: usize = 4;

/// For each of several vectors v, max_i v_i a_ij for all columns j of a block, and the first i with this product.
pub(super) struct Maxima {
    n_vectors: usize,
    /// For each strip of columns, for each vector.
    values: Vec<f32>,
    /// In the same order. 0 if no product is positive.
    origins: Vec<u32>,
}

impl Maxima {
    /// Maxima for a row-major block with `k` columns and as many rows as the vectors have entries.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub(super) fn new(vectors: &[&[f32]], block: &[f32], k: usize) -> Maxima {
        assert!(vectors.iter().all(|vector| vector.len() * k == block.len()), "one entry per row");
        let n = vectors.len();
        let len = k.div_ceil(STRIP) * n * STRIP;
        let (mut values, mut origins) = (vec![0f32; len], vec![0u32; len]);
        let strips = values.par_chunks_mut(n * STRIP).zip(origins.par_chunks_mut(n * STRIP));
        strips.enumerate().for_each(|(strip, (values, origins))| {
            let first = strip * STRIP;
            pulp::Arch::new().dispatch(Strip { vectors, block, k, first, values, origins });
        });
        Maxima { n_vectors: n, values, origins }
    }

    /// The values and the origins of a vector, [`STRIP`] columns at a time. The last strip may have more of them than the
    /// block has columns.
    pub(super) fn of(&self, vector: usize) -> impl Iterator<Item = (&[f32], &[u32])> {
        let at = move |strip: usize| (strip * self.n_vectors + vector) * STRIP;
        let n_strips = self.values.len() / (self.n_vectors * STRIP);
        (0..n_strips).map(move |strip| {
            (&self.values[at(strip)..][..STRIP], &self.origins[at(strip)..][..STRIP])
        })
    }
}

/// Some columns of the block from `first` on, for all vectors.
struct Strip<'a> {
    vectors: &'a [&'a [f32]],
    block: &'a [f32],
    k: usize,
    first: usize,
    values: &'a mut [f32],
    origins: &'a mut [u32],
}

impl WithSimd for Strip<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let n_columns = STRIP.min(self.k - self.first);
        let mut panel = vec![0f32; PANEL * STRIP];
        for (panel_idx, rows) in self.block.chunks(PANEL * self.k).enumerate() {
            // Rows of the block are far apart, often by a multiple of 4 KiB, and would evict each other from the cache.
            for (copy, row) in panel.chunks_exact_mut(STRIP).zip(rows.chunks_exact(self.k)) {
                copy[..n_columns].copy_from_slice(&row[self.first..self.first + n_columns]);
            }
            let begin = panel_idx * PANEL;
            let end = begin + rows.len() / self.k;
            let values = self.values.chunks_exact_mut(STRIP);
            let results = values.zip(self.origins.chunks_exact_mut(STRIP));
            for (vector, (values, origins)) in self.vectors.iter().zip(results) {
                let (values, origins) =
                    (S::as_mut_simd_f32s(values).0, S::as_mut_simd_u32s(origins).0);
                for tile in 0..values.len() / WIDTH {
                    let at = tile * WIDTH..(tile + 1) * WIDTH;
                    let values = (&mut values[at.clone()]).try_into().expect("whole tiles");
                    let origins = (&mut origins[at.clone()]).try_into().expect("whole tiles");
                    update(simd, &vector[begin..end], begin, &panel, at.start, values, origins);
                }
            }
        }
    }
}

/// Compares the products of some rows of a panel with the largest ones of the rows before them. Ties go to the first row.
#[inline(always)]
fn update<S: Simd>(
    simd: S,
    factors: &[f32],
    first_row: usize,
    panel: &[f32],
    first_vector: usize,
    values: &mut [S::f32s; WIDTH],
    origins: &mut [S::u32s; WIDTH],
) {
    let (mut best, mut origin) = (*values, *origins);
    for (i, (&factor, row)) in factors.iter().zip(panel.chunks_exact(STRIP)).enumerate() {
        let row = &S::as_simd_f32s(row).0[first_vector..first_vector + WIDTH];
        let (factor, index) = (simd.splat_f32s(factor), simd.splat_u32s((first_row + i) as u32));
        for w in 0..WIDTH {
            let product = simd.mul_f32s(factor, row[w]);
            let is_larger = simd.greater_than_f32s(product, best[w]);
            best[w] = simd.select_f32s(is_larger, product, best[w]);
            origin[w] = simd.select_u32s(is_larger, index, origin[w]);
        }
    }
    (*values, *origins) = (best, origin);
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    #[test]
    fn the_largest_products_agree_with_the_definition() {
        let mut rng = Rng::new(1);
        for k in [1, 2, 17, 64, 65, 130, 200] {
            for n in [1, 2, 5] {
                // Few different numbers, so that there are ties.
                let mut numbers = |n: usize| -> Vec<f32> {
                    (0..n).map(|_| (rng.uniform() * 6.0).floor() as f32 / 4.0).collect()
                };
                let (block, vectors) = (numbers(k * k), numbers(n * k));
                let vectors: Vec<&[f32]> = vectors.chunks_exact(k).collect();
                let found = Maxima::new(&vectors, &block, k);
                for (m, vector) in vectors.iter().enumerate() {
                    let (values, origins): (Vec<_>, Vec<_>) = found.of(m).unzip();
                    let (values, origins) = (values.concat(), origins.concat());
                    for j in 0..k {
                        let mut best = (0.0, 0);
                        for i in 0..k {
                            let product = vector[i] * block[i * k + j];
                            if product > best.0 {
                                best = (product, i as u32);
                            }
                        }
                        assert_eq!((values[j], origins[j]), best, "{k} {n} {m} {j}");
                    }
                }
            }
        }
    }
}
