//! Largest products of rows with the columns of a block.
//!
//! A maximum takes two instructions per product (multiply, maximum), and a matrix product does not compute it. Products
//! that cannot exceed a maximum that is already known, which are most of them, are skipped. The results are exact.

use crate::recursion::products::largest;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

/// Number of columns that are computed at a time, a multiple of the columns that are held in registers.
const STRIP: usize = 64;

/// Number of strips per task. Parts of rows of this length are fast to read from memory.
const STRIPS: usize = 4;

/// Number of rows of a strip that stay in the cache while all rows of `left` pass.
pub(super) const PANEL: usize = 64;

/// Largest products of rows with the columns of a k × k block, and the panels that contain them.
///
/// A maximum is max_i left_mi block_ij, or 0. A panel is [`PANEL`] consecutive rows of the block; that of a maximum
/// contains the first i with this product.
pub(super) struct Maxima {
    n: usize,
    k: usize,
    strips: Vec<[f32; STRIP]>,
    panels: Vec<[u32; STRIP]>,
}

impl Maxima {
    /// # Panics
    /// If the shapes do not match.
    pub(super) fn of(left: &[&[f32]], block: &[f32], k: usize) -> Maxima {
        assert!(block.len() == k * k && left.iter().all(|row| row.len() == k), "a square block");
        let (n, n_strips) = (left.len(), k.div_ceil(STRIP));
        let left: Vec<Row<'_>> = left.iter().map(|values| Row::new(values)).collect();
        let mut strips = vec![[0f32; STRIP]; n_strips * n];
        let mut panels = vec![[0u32; STRIP]; n_strips * n];
        let len = STRIPS * n.max(1);
        let parts = strips.par_chunks_mut(len).zip(panels.par_chunks_mut(len));
        parts.enumerate().for_each(|(part, (maxima, panels))| {
            let (left, first) = (&left[..], part * STRIPS * STRIP);
            pulp::Arch::new().dispatch(Part { left, block, k, first, maxima, panels });
        });
        Maxima { n, k, strips, panels }
    }

    /// The maxima of a row and their panels, for some columns at a time.
    pub(super) fn row(&self, m: usize) -> impl Iterator<Item = (&[f32], &[u32])> {
        let strips = self.strips.iter().zip(&self.panels).skip(m).step_by(self.n);
        strips.enumerate().map(|(strip, (maxima, panels))| {
            let n_columns = STRIP.min(self.k - strip * STRIP);
            (&maxima[..n_columns], &panels[..n_columns])
        })
    }
}

/// A row of `left`.
struct Row<'a> {
    values: &'a [f32],
    /// The largest value for each panel of the block.
    of_panel: Vec<f32>,
    /// The index of the largest value.
    largest: usize,
}

impl<'a> Row<'a> {
    fn new(values: &'a [f32]) -> Row<'a> {
        let of_panel: Vec<f32> = values.chunks(PANEL).map(largest).collect();
        let greater = |best: usize, i: usize| if of_panel[i] > of_panel[best] { i } else { best };
        let panel = (0..of_panel.len()).fold(0, greater);
        let is_largest = |&value: &f32| value == of_panel[panel];
        let largest = values[panel * PANEL..].iter().position(is_largest);
        let largest = panel * PANEL + largest.expect("a panel contains its largest value");
        Row { values, of_panel, largest }
    }
}

/// Some strips of columns of the block from `first` on, for all rows of `left`.
struct Part<'a> {
    left: &'a [Row<'a>],
    block: &'a [f32],
    k: usize,
    first: usize,
    maxima: &'a mut [[f32; STRIP]],
    panels: &'a mut [[u32; STRIP]],
}

impl WithSimd for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Part { left, block, k, first, maxima, panels } = self;
        let n = left.len();
        let columns = |strip: usize| {
            let begin = first + strip * STRIP;
            begin..k.min(begin + STRIP)
        };
        let mut least: Vec<f32> = maxima
            .iter_mut()
            .enumerate()
            .map(|(at, maxima)| {
                let row = &left[at % n];
                let of_largest = &block[row.largest * k..][..k];
                start(row.values[row.largest], &of_largest[columns(at / n)], maxima)
            })
            .collect();
        let mut strips = vec![Panel::default(); maxima.len() / n];
        for (panel_idx, rows) in block.chunks(PANEL * k).enumerate() {
            strips.iter_mut().for_each(|panel| panel.len = 0);
            for row in rows.chunks_exact(k) {
                for (strip, panel) in strips.iter_mut().enumerate() {
                    panel.push(simd, &row[columns(strip)]);
                }
            }
            for (strip, panel) in strips.iter().enumerate() {
                let largest = largest(&panel.largest[..panel.len]);
                for (m, row) in left.iter().enumerate() {
                    let at = strip * n + m;
                    if row.of_panel[panel_idx] * largest > least[at] {
                        let left = &row.values[panel_idx * PANEL..][..panel.len];
                        let best = Best { maxima: &mut maxima[at], panels: &mut panels[at] };
                        let (panel_idx, before) = (panel_idx as u32, least[at]);
                        least[at] = match S::F32_LANES {
                            16 => panel.update::<S, 4>(simd, left, panel_idx, before, best),
                            _ => panel.update::<S, 8>(simd, left, panel_idx, before, best),
                        };
                    }
                }
            }
        }
    }
}

/// Initializes the maxima with the products of a single row, and returns the least of them.
///
/// Products are decreased to the next smaller number, so that the first product as large as they were replaces them.
#[inline(always)]
fn start(factor: f32, row: &[f32], maxima: &mut [f32; STRIP]) -> f32 {
    // Columns beyond the block are never the least.
    maxima.fill(f32::INFINITY);
    let mut least = f32::INFINITY;
    for (max, &value) in maxima.iter_mut().zip(row) {
        *max = (factor * value).next_down().max(0.0);
        least = least.min(*max);
    }
    least
}

/// The largest products of a row of `left`, for the columns of a strip.
struct Best<'a> {
    maxima: &'a mut [f32; STRIP],
    panels: &'a mut [u32; STRIP],
}

/// Some rows of a strip, copied: rows of the block are far apart, often by a multiple of 4 KiB, and would evict each other
/// from the cache.
#[derive(Clone)]
struct Panel {
    rows: [[f32; STRIP]; PANEL],
    /// The largest value of each row.
    largest: [f32; PANEL],
    len: usize,
}

impl Default for Panel {
    fn default() -> Panel {
        Panel { rows: [[0.0; STRIP]; PANEL], largest: [0.0; PANEL], len: 0 }
    }
}

impl Panel {
    #[inline(always)]
    fn push<S: Simd>(&mut self, simd: S, row: &[f32]) {
        let copy = &mut self.rows[self.len];
        copy[..row.len()].copy_from_slice(row);
        let mut max = simd.splat_f32s(0.0);
        for &vector in S::as_simd_f32s(&copy[..]).0 {
            max = simd.max_f32s(max, vector);
        }
        self.largest[self.len] = simd.reduce_max_f32s(max);
        self.len += 1;
    }

    /// Updates the maxima of a row with its products, and returns the least maximum, which was `least` before. Holds W
    /// vectors of maxima in registers.
    #[inline(always)]
    fn update<S: Simd, const W: usize>(
        &self,
        simd: S,
        left: &[f32],
        panel_idx: u32,
        least: f32,
        best: Best<'_>,
    ) -> f32 {
        // Only these products may exceed a maximum.
        let (mut chosen, mut n_chosen) = ([0u8; PANEL], 0);
        for (i, (&factor, &largest)) in left.iter().zip(&self.largest).enumerate() {
            chosen[n_chosen % PANEL] = i as u8;
            n_chosen += usize::from(factor * largest > least);
        }
        let chosen = &chosen[..n_chosen];
        let mut least = simd.splat_f32s(f32::INFINITY);
        let width = W * S::F32_LANES;
        let mut column = 0;
        while column < STRIP {
            let maxima = S::as_mut_simd_f32s(&mut best.maxima[column..column + width]).0;
            let panels = S::as_mut_simd_u32s(&mut best.panels[column..column + width]).0;
            let mut max = [simd.splat_f32s(0.0); W];
            max.copy_from_slice(maxima);
            for &i in chosen {
                let i = usize::from(i) % PANEL;
                let factor = simd.splat_f32s(left[i]);
                let row = S::as_simd_f32s(&self.rows[i][column..column + width]).0;
                for w in 0..W {
                    max[w] = simd.max_f32s(simd.mul_f32s(factor, row[w]), max[w]);
                }
            }
            for w in 0..W {
                let is_new = simd.greater_than_f32s(max[w], maxima[w]);
                panels[w] = simd.select_u32s(is_new, simd.splat_u32s(panel_idx), panels[w]);
                maxima[w] = max[w];
                least = simd.min_f32s(least, max[w]);
            }
            column += width;
        }
        simd.reduce_min_f32s(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    /// Compares the maxima and their panels with the definition.
    fn check(vectors: &[f32], block: &[f32], k: usize) {
        let left: Vec<&[f32]> = vectors.chunks_exact(k).collect();
        let found = Maxima::of(&left, block, k);
        for (m, vector) in left.iter().enumerate() {
            let maxima: Vec<f32> = found.row(m).flat_map(|(maxima, _)| maxima).copied().collect();
            let panels: Vec<u32> = found.row(m).flat_map(|(_, panels)| panels).copied().collect();
            assert_eq!((maxima.len(), panels.len()), (k, k));
            for j in 0..k {
                let products = (0..k).map(|i| (i, vector[i] * block[i * k + j]));
                let (first, expected) =
                    products.fold((0, 0.0), |best, new| if new.1 > best.1 { new } else { best });
                assert_eq!(maxima[j], expected, "{k} {m} {j}");
                if expected > 0.0 {
                    assert_eq!(panels[j] as usize, first / PANEL, "{k} {m} {j}");
                }
            }
        }
    }

    #[test]
    fn the_largest_products_agree_with_the_definition() {
        let mut rng = Rng::new(1);
        for k in [1, 2, 17, 64, 65, 130, 200, 300] {
            for n in [0, 1, 2, 5, 9] {
                let mut numbers = |n: usize, power: i32| -> Vec<f32> {
                    (0..n).map(|_| (rng.uniform() as f32).powi(power)).collect()
                };
                check(&numbers(n * k, 1), &numbers(k * k, 1), k);
                // Most products are skipped.
                check(&numbers(n * k, 20), &numbers(k * k, 5), k);
                // Most products are subnormal or zero.
                check(&numbers(n * k, 50), &numbers(k * k, 80), k);
                // Many products are equal.
                let round = |values: Vec<f32>| -> Vec<f32> {
                    values.iter().map(|value| (value * 3.0).round()).collect()
                };
                check(&round(numbers(n * k, 1)), &round(numbers(k * k, 1)), k);
            }
        }
    }
}
