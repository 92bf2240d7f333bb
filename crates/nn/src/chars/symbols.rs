//! Convolution over sequences of symbols, such as the characters of words.
//!
//! There are many words but few characters. The products of every filter with every character vector e_s at every
//! position of a window, P_k = E W_kᵀ, are therefore computed once. The output for a window is a sum of such rows, which
//! takes w additions where [`Conv::forward`] takes w · dim multiplications.

use super::conv::Conv;
use super::spellings::Spellings;
use crate::tensors::add_column_sums;
use crate::tensors::{Buffer, WeightId};
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, Par, multiply};
use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};
use std::ops::Range;

/// Number of filters per task of the backward pass.
const FILTERS: usize = 8;

/// Intermediate results of the forward pass and buffers of both passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SymbolScratch<T> {
    /// P, one row of filters per position and symbol.
    table: Buffer<T>,
    /// Window of the maximum for each word and filter.
    best: Vec<u32>,
    /// y.
    out: Buffer<T>,
    /// ∂L/∂(b + max a).
    d_max: Buffer<T>,
    /// Transposed ∂L/∂P, one row of positions and symbols per filter.
    d_table: Buffer<T>,
}

/// Returns the positions k of window t that hold one of n symbols: position k holds symbol t + k − (width − 1).
#[inline(always)]
fn places(n: usize, t: usize, width: usize) -> Range<usize> {
    (width - 1).saturating_sub(t)..width.min(n + width - 1 - t)
}

impl Conv {
    /// Computes [`Conv::forward`] for the vectors of symbols, which are rows of the table `vectors`.
    pub(crate) fn forward_symbols<T: Real>(
        &self,
        weights: &[T],
        vectors: WeightId,
        words: Spellings<'_>,
        scratch: &mut SymbolScratch<T>,
        out: MatMut<'_, T>,
        par: Par,
    ) {
        let SymbolScratch { table, best, out: kept, .. } = scratch;
        let (n_symbols, n_filters) = (vectors.n_rows(), self.n_filters());
        table.resize(self.width * n_symbols, n_filters);
        for k in 0..self.width {
            let rows = table.view_mut().subrows_mut(k * n_symbols, n_symbols);
            let filters = self.place(self.filters.mat(weights), k).transpose();
            multiply(rows, Accum::Replace, vectors.mat(weights), filters, par);
        }
        best.resize(words.len() * n_filters, 0);
        kept.resize(words.len(), n_filters);
        let answers = Answers { table: table.view(), n_symbols, width: self.width };
        let best = MatMut::from_row_major_slice_mut(best, words.len(), n_filters);
        for_each_chunk(
            (out, kept.view_mut(), best, 0..words.len()),
            rows_per_chunk(32 * n_filters),
            par,
            #[inline(always)]
            |(mut out, mut kept, mut best, idxs): (_, _, _, Range<usize>)| {
                let mut sums = vec![T::zero(); n_filters];
                for (i, idx) in idxs.enumerate() {
                    let (y, best) = (row_mut(&mut kept, i), row_mut(&mut best, i));
                    answers.maximum(words.word(idx), &mut sums, y, best);
                    self.activation.apply(y, self.bias.of(weights));
                    row_mut(&mut out, i).copy_from_slice(y);
                }
            },
        );
    }

    /// Adds the gradients of filters, biases and symbol vectors to the flat `gradient`, given `d_out` = ∂L/∂y and the
    /// `words` and `scratch` of the forward pass.
    ///
    /// With δ as in [`Conv::backward`], ∂P_k[s, f] = Σ δ_f over the words whose best window for f has s at position k;
    /// then ∂W_k = ∂P_kᵀ E and ∂E = Σ_k ∂P_k W_k.
    #[expect(clippy::too_many_arguments, reason = "a layer with its input, output and gradients")]
    pub(crate) fn backward_symbols<T: Real>(
        &self,
        weights: &[T],
        vectors: WeightId,
        words: Spellings<'_>,
        scratch: &mut SymbolScratch<T>,
        d_out: MatRef<'_, T>,
        gradient: &mut [T],
        par: Par,
    ) {
        let SymbolScratch { best, out, d_max, d_table, .. } = scratch;
        let (n_symbols, n_filters) = (vectors.n_rows(), self.n_filters());
        d_max.resize(words.len(), n_filters);
        self.activation.backward(out.view(), d_out, d_max.view_mut(), par);
        add_column_sums(d_max.view(), self.bias.of_mut(gradient), par);
        d_table.resize_zeroed(n_filters, self.width * n_symbols);
        for_each_chunk(
            (d_table.view_mut(), 0..n_filters),
            FILTERS,
            par,
            #[inline(always)]
            |(mut d_table, filters): (_, Range<usize>)| {
                for idx in 0..words.len() {
                    let symbols = words.word(idx);
                    if symbols.is_empty() {
                        continue;
                    }
                    let (best, d_max) = (&best[idx * n_filters..], row(d_max.view(), idx));
                    for (i, filter_idx) in filters.clone().enumerate() {
                        let (t, d_row) = (best[filter_idx] as usize, row_mut(&mut d_table, i));
                        for k in places(symbols.len(), t, self.width) {
                            let symbol = symbols[t + k + 1 - self.width] as usize;
                            d_row[k * n_symbols + symbol] += d_max[filter_idx];
                        }
                    }
                }
            },
        );
        for k in 0..self.width {
            let d_answers = d_table.view().subcols(k * n_symbols, n_symbols);
            let (vectors_of, filters) = (vectors.mat(weights), self.filters.mat(weights));
            let d_filters = self.filters.mat_mut(gradient).subcols_mut(k * self.dim(), self.dim());
            multiply(d_filters, Accum::Add, d_answers, vectors_of, par);
            let d_vectors = vectors.mat_mut(gradient);
            multiply(d_vectors, Accum::Add, d_answers.transpose(), self.place(filters, k), par);
        }
    }

    /// Length of a vector.
    fn dim(&self) -> usize {
        self.filters.n_cols() / self.width
    }

    /// Returns W_k, the weights of the filters at position k of a window.
    fn place<'a, T>(&self, filters: MatRef<'a, T>, k: usize) -> MatRef<'a, T> {
        filters.subcols(k * self.dim(), self.dim())
    }
}

/// Outputs of every filter for every symbol at every position of a window.
struct Answers<'a, T> {
    table: MatRef<'a, T>,
    n_symbols: usize,
    width: usize,
}

impl<T: Real> Answers<'_, T> {
    /// Computes the largest output of each filter over all windows and the window that attains it; zero if there are no
    /// symbols. `sums` is scratch.
    #[inline(always)]
    fn maximum(&self, symbols: &[u32], sums: &mut [T], maxima: &mut [T], best: &mut [u32]) {
        best.fill(0);
        if symbols.is_empty() {
            return maxima.fill(T::zero());
        }
        maxima.fill(T::neg_infinity());
        for t in 0..symbols.len() + self.width - 1 {
            sums.fill(T::zero());
            for k in places(symbols.len(), t, self.width) {
                let symbol = symbols[t + k + 1 - self.width] as usize;
                let answers = row(self.table, k * self.n_symbols + symbol);
                sums.iter_mut().zip(answers).for_each(|(sum, &answer)| *sum += answer);
            }
            for ((max, best), &sum) in maxima.iter_mut().zip(&mut *best).zip(&*sums) {
                (*max, *best) = if sum > *max { (sum, t as u32) } else { (*max, *best) };
            }
        }
    }
}
