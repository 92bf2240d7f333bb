//! Convolution over sequences followed by the maximum over time, as in character models of words (Kim et al. 2016; Ma
//! and Hovy 2016).

use super::windows::{Sequences, SequencesMut, Window, blocks, lay_out, n_windows};
use crate::layers::Activation;
use crate::tensors::add_column_sums;
use crate::tensors::fill_uniform;
use crate::tensors::{Buffer, Layout, WeightId};
use latens_math::linalg::{Accum, MatMut, MatRef, Par, multiply};
use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};
use latens_math::{Real, Rng};
use std::ops::Range;

/// Approximate number of windows per matrix product.
const BLOCK: usize = 8192;

/// Number of filters per task of the backward pass.
const FILTERS: usize = 8;

/// Filters that slide over sequences of vectors.
///
/// Let x_t be the vectors of a sequence of length n, zero for t < 1 and t > n, and w the width. The output of filter f
/// is y_f = g(b_f + max_t a_ft) with a_ft = Σ_k W_fk · x_{t+k−w}, k = 1 … w, t = 1 … n + w − 1. Every window that
/// overlaps the sequence counts; without any window the maximum is 0.
#[derive(Clone, Copy, Debug)]
pub struct Conv {
    pub(crate) filters: WeightId,
    pub(crate) bias: WeightId,
    pub(crate) width: usize,
    pub(crate) activation: Activation,
}

/// Intermediate results of [`Conv::forward`] and buffers of both passes.
#[derive(Clone, Debug, Default)]
pub struct ConvScratch<T> {
    /// Window of the maximum for each sequence and filter.
    best: Vec<u32>,
    /// y.
    out: Buffer<T>,
    windows: Vec<Window>,
    /// Windows of a block, one per row.
    columns: Buffer<T>,
    /// a, one row per window of a block.
    answers: Buffer<T>,
    /// ∂L/∂(b + max a).
    d_max: Buffer<T>,
}

impl Conv {
    /// Adds filters over windows of `width` vectors of length `dim`. The weights are named `name.filters`
    /// (`n_filters` × `width` × `dim`) and `name.bias`.
    ///
    /// # Panics
    /// If `width` is 0.
    pub fn new(
        layout: &mut Layout,
        name: &str,
        dim: usize,
        width: usize,
        n_filters: usize,
        activation: Activation,
    ) -> Conv {
        assert!(width > 0, "the window width must be positive");
        let filters = layout.add(&format!("{name}.filters"), &[n_filters, width, dim]);
        let bias = layout.add(&format!("{name}.bias"), &[n_filters]);
        Conv { filters, bias, width, activation }
    }

    /// Number of filters, which is the length of an output.
    pub fn n_filters(&self) -> usize {
        self.filters.n_rows()
    }

    /// Draws all weights uniformly from ±1/√(`width` · `dim`), as PyTorch does.
    pub fn init<T: Real>(&self, weights: &mut [T], rng: &mut Rng) {
        let bound = 1.0 / (self.filters.n_cols() as f64).sqrt();
        fill_uniform(self.filters.of_mut(weights), bound, rng);
        fill_uniform(self.bias.of_mut(weights), bound, rng);
    }

    /// Writes the output y of each sequence to a row of `out`.
    pub fn forward<T: Real>(
        &self,
        weights: &[T],
        x: Sequences<'_, T>,
        scratch: &mut ConvScratch<T>,
        out: MatMut<'_, T>,
        par: Par,
    ) {
        let ConvScratch { best, out: kept, windows, columns, answers, .. } = scratch;
        let (n_filters, mut out) = (self.n_filters(), out);
        best.resize(x.len() * n_filters, 0);
        kept.resize(x.len(), n_filters);
        for block in blocks(x.offsets, self.width, BLOCK) {
            lay_out(x, block.clone(), self.width, windows, columns, par);
            answers.resize(windows.len(), n_filters);
            let filters = self.filters.mat(weights).transpose();
            multiply(answers.view_mut(), Accum::Replace, columns.view(), filters, par);
            let best = &mut best[block.start * n_filters..block.end * n_filters];
            let rows = (
                out.as_mut().subrows_mut(block.start, block.len()),
                kept.view_mut().subrows_mut(block.start, block.len()),
                MatMut::from_row_major_slice_mut(best, block.len(), n_filters),
                block,
            );
            self.maximize(weights, x.offsets, answers.view(), rows, par);
        }
    }

    /// Computes the maximum over the windows of each sequence of a block, and the activation.
    fn maximize<T: Real>(
        &self,
        weights: &[T],
        offsets: &[usize],
        answers: MatRef<'_, T>,
        rows: (MatMut<'_, T>, MatMut<'_, T>, MatMut<'_, u32>, Range<usize>),
        par: Par,
    ) {
        let (bias, block_start) = (self.bias.of(weights), rows.3.start);
        let windows_before = |idx: usize| {
            n_windows(offsets[idx] - offsets[block_start], idx - block_start, self.width)
        };
        for_each_chunk(
            rows,
            rows_per_chunk(8 * self.n_filters()),
            par,
            #[inline(always)]
            |(mut out, mut kept, mut best, sequences): (_, _, _, Range<usize>)| {
                for (i, idx) in sequences.enumerate() {
                    let (y, best) = (row_mut(&mut kept, i), row_mut(&mut best, i));
                    let (start, end) = (windows_before(idx), windows_before(idx + 1));
                    maximum(answers.subrows(start, end - start), y, best);
                    self.activation.apply(y, bias);
                    row_mut(&mut out, i).copy_from_slice(y);
                }
            },
        );
    }

    /// Adds ∂L/∂W and ∂L/∂b to the flat `gradient` and ∂L/∂x to `d_x` if given, with `d_out` = ∂L/∂y and the `x` and
    /// `scratch` of the forward pass.
    ///
    /// Only the best window t* of a filter in a sequence contributes to y. With δ_f = ∂L/∂y_f g′, where g′ = 1 − y_f² for the hyperbolic tangent and ⟦y_f > 0⟧ for ReLU:
    ///
    /// ∂b_f = Σ δ_f, ∂W_fk = Σ δ_f x_{t*+k−w}, summed over sequences
    ///
    /// ∂x_s = Σ δ_f W_fk, summed over filters f and positions k with t* + k − w = s.
    #[expect(clippy::too_many_arguments, reason = "a layer with its input, output and gradients")]
    pub fn backward<T: Real>(
        &self,
        weights: &[T],
        x: Sequences<'_, T>,
        scratch: &mut ConvScratch<T>,
        d_out: MatRef<'_, T>,
        gradient: &mut [T],
        d_x: Option<&mut [T]>,
        par: Par,
    ) {
        let ConvScratch { best, out, d_max, .. } = scratch;
        d_max.resize(x.len(), self.n_filters());
        self.activation.backward(out.view(), d_out, d_max.view_mut(), par);
        add_column_sums(d_max.view(), self.bias.of_mut(gradient), par);
        let maxima = Maxima { best, d_max: d_max.view(), width: self.width, dim: x.dim };
        maxima.add_to_filters(x, self.filters.mat_mut(gradient), par);
        if let Some(d_x) = d_x {
            let d_x = SequencesMut { values: d_x, dim: x.dim, offsets: x.offsets };
            maxima.add_to_input(d_x, self.filters.mat(weights), par);
        }
    }
}

/// The windows of the maxima, and their gradient.
struct Maxima<'a, T> {
    best: &'a [u32],
    d_max: MatRef<'a, T>,
    width: usize,
    dim: usize,
}

impl<T: Real> Maxima<'_, T> {
    #[inline(always)]
    fn window(&self, vectors: Range<usize>, idx: usize, filter_idx: usize) -> Window {
        let t = self.best[idx * self.d_max.ncols() + filter_idx];
        Window::new(vectors, t as usize, self.width, self.dim)
    }

    /// Adds ∂W; threads work on different filters.
    fn add_to_filters(&self, x: Sequences<'_, T>, d_filters: MatMut<'_, T>, par: Par) {
        let n_filters = d_filters.nrows();
        for_each_chunk(
            (d_filters, 0..n_filters),
            FILTERS,
            par,
            #[inline(always)]
            |(mut d_filters, filters): (_, Range<usize>)| {
                for idx in 0..x.len() {
                    for (i, filter_idx) in filters.clone().enumerate() {
                        let window = self.window(x.range(idx), idx, filter_idx);
                        let d_filter = &mut row_mut(&mut d_filters, i)[window.places()];
                        add_scaled(
                            d_filter,
                            self.d_max[(idx, filter_idx)],
                            &x.values[window.values],
                        );
                    }
                }
            },
        );
    }

    /// Adds ∂x; threads work on different sequences.
    fn add_to_input(&self, d_x: SequencesMut<'_, T>, filters: MatRef<'_, T>, par: Par) {
        let n_sequences = self.d_max.nrows();
        if n_sequences == 0 {
            return;
        }
        for_each_chunk(
            (d_x, 0..n_sequences),
            rows_per_chunk(filters.nrows() * filters.ncols()),
            par,
            #[inline(always)]
            |(d_x, sequences): (SequencesMut<'_, T>, Range<usize>)| {
                let offsets = d_x.offsets.windows(2);
                for (offsets, idx) in offsets.zip(sequences) {
                    let vectors = offsets[0] - d_x.offsets[0]..offsets[1] - d_x.offsets[0];
                    for filter_idx in 0..filters.nrows() {
                        let window = self.window(vectors.clone(), idx, filter_idx);
                        let filter = &row(filters, filter_idx)[window.places()];
                        let d_x = &mut d_x.values[window.values];
                        add_scaled(d_x, self.d_max[(idx, filter_idx)], filter);
                    }
                }
            },
        );
    }
}

/// Computes the maximum of each column and the first row that attains it; zero if there are no rows.
#[inline(always)]
fn maximum<T: Real>(answers: MatRef<'_, T>, maxima: &mut [T], best: &mut [u32]) {
    best.fill(0);
    if answers.nrows() == 0 {
        return maxima.fill(T::zero());
    }
    maxima.copy_from_slice(row(answers, 0));
    for t in 1..answers.nrows() {
        for ((max, best), &a) in maxima.iter_mut().zip(&mut *best).zip(row(answers, t)) {
            (*max, *best) = if a > *max { (a, t as u32) } else { (*max, *best) };
        }
    }
}

#[inline(always)]
fn add_scaled<T: Real>(totals: &mut [T], factor: T, values: &[T]) {
    totals.iter_mut().zip(values).for_each(|(total, &value)| *total += factor * value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LayerCase, Outcome, buffer, check_layer, check_threads};

    struct Case {
        offsets: Vec<usize>,
        dim: usize,
        width: usize,
        n_filters: usize,
        activation: Activation,
    }

    impl Case {
        fn layer(&self, layout: &mut Layout) -> Conv {
            Conv::new(layout, "conv", self.dim, self.width, self.n_filters, self.activation)
        }
    }

    impl LayerCase for Case {
        fn sizes(&self) -> [usize; 3] {
            let mut layout = Layout::new();
            self.layer(&mut layout);
            let n_rows = self.offsets.last().unwrap();
            [layout.len(), n_rows * self.dim, (self.offsets.len() - 1) * self.n_filters]
        }

        fn run<T: Real>(&self, weights: &[T], x: &[T], d_out: &[T], par: Par) -> Outcome<T> {
            let layer = self.layer(&mut Layout::new());
            let mut scratch = ConvScratch::default();
            let sequences = Sequences { values: x, dim: self.dim, offsets: &self.offsets };
            let d_out = buffer(d_out, sequences.len(), self.n_filters);
            let mut out = d_out.clone();
            layer.forward(weights, sequences, &mut scratch, out.view_mut(), par);
            let mut outcome = Outcome::new(self, out.values());
            let gradient = &mut outcome.gradient;
            let added = Some(&mut outcome.d_x[..]);
            layer.backward(weights, sequences, &mut scratch, d_out.view(), gradient, added, par);
            outcome
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for activation in [Activation::Tanh, Activation::Relu] {
            for (dim, width, n_filters) in [(1, 1, 1), (3, 3, 5), (2, 4, 9), (4, 1, 2)] {
                for offsets in [vec![0, 3, 4, 4, 9], vec![0, 1], vec![0, 0], vec![0]] {
                    check_layer(&Case { offsets, dim, width, n_filters, activation });
                }
            }
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let offsets = (0..3000).map(|i| i * 4 + i % 3).collect();
        let activation = Activation::Tanh;
        check_threads(&Case { offsets, dim: 10, width: 3, n_filters: 20, activation });
    }

    #[test]
    fn the_output_agrees_with_the_definition() {
        // One filter (1, 10) over x = 1, −2, 3: windows (0, 1), (1, −2), (−2, 3), (3, 0).
        let case = Case {
            offsets: vec![0, 3],
            dim: 1,
            width: 2,
            n_filters: 1,
            activation: Activation::Relu,
        };
        let run = |x: &[f64]| case.run(&[1.0, 10.0, 0.5], x, &[1.0], Par::Seq);
        let outcome = run(&[1.0, -2.0, 3.0]);
        assert_eq!(outcome.out, [28.5]);
        assert_eq!(outcome.gradient, [-2.0, 3.0, 1.0]);
        assert_eq!(outcome.d_x, [0.0, 1.0, 10.0]);
        let tanh = Case { activation: Activation::Tanh, ..case };
        let out = tanh.run(&[0.1, 0.0, 0.2], &[1.0, -2.0, 3.0], &[1.0], Par::Seq).out;
        assert!((out[0] - 0.5f64.tanh()).abs() < 1e-15);
    }
}
