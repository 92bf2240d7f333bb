//! Layer normalization (Ba, Kiros and Hinton 2016).

use crate::tensors::{Buffer, Layout, WeightId, add_column_sums};
use latens_math::linalg::{MatMut, MatRef, Par};
use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};
use latens_math::{Real, dot, sum_of};

/// Added to the variance to avoid a division by zero for constant rows; the value of PyTorch.
const EPSILON: f64 = 1e-5;

/// Number of independent partial sums.
const LANES: usize = 64;

/// Normalizes each row to mean 0 and variance 1, then scales and shifts each column:
/// y = g ∘ n + o with n_j = (x_j − μ) r, r = 1/√(σ² + ε), σ² = Σ_j (x_j − μ)²/J.
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm {
    gain: WeightId,
    offset: WeightId,
}

/// Intermediate results that the forward pass keeps for the backward pass.
#[derive(Clone, Debug, Default)]
pub struct LayerNormCache<T> {
    /// n, one row per example.
    normalized: Buffer<T>,
    /// r of each example.
    inverse_deviation: Vec<T>,
    /// ∂y ∘ n, whose column sums are the gradient of g.
    product: Buffer<T>,
}

impl LayerNorm {
    /// Adds a layer for rows of length `dim`. Its weights are named `name.gain` and `name.offset`.
    pub fn new(layout: &mut Layout, name: &str, dim: usize) -> LayerNorm {
        let gain = layout.add(&format!("{name}.gain"), &[dim]);
        LayerNorm { gain, offset: layout.add(&format!("{name}.offset"), &[dim]) }
    }

    /// Sets gains to 1 and offsets to 0.
    pub fn init<T: Real>(&self, weights: &mut [T]) {
        self.gain.of_mut(weights).fill(T::one());
        self.offset.of_mut(weights).fill(T::zero());
    }

    /// Replaces each row x by y.
    pub fn forward<T: Real>(
        &self,
        weights: &[T],
        values: MatMut<'_, T>,
        cache: &mut LayerNormCache<T>,
        par: Par,
    ) {
        cache.normalized.resize(values.nrows(), values.ncols());
        cache.inverse_deviation.resize(values.nrows(), T::zero());
        let (gain, offset) = (self.gain.of(weights), self.offset.of(weights));
        let size = rows_per_chunk(gain.len());
        let rows = (values, cache.normalized.view_mut(), &mut cache.inverse_deviation[..]);
        for_each_chunk(
            rows,
            size,
            par,
            #[inline(always)]
            |(mut values, mut normalized, inverse_deviation): (_, _, &mut [T])| {
                for (row_idx, r) in inverse_deviation.iter_mut().enumerate() {
                    let (y, n) = (row_mut(&mut values, row_idx), row_mut(&mut normalized, row_idx));
                    *r = normalize(y, n);
                    scale_and_shift(n, gain, offset, y);
                }
            },
        );
    }

    /// Adds ∂L/∂g and ∂L/∂o to the flat `gradient` and writes ∂L/∂x to `d_x`, given `d_out` = ∂L/∂y.
    ///
    /// With J values per row, ∂ short for ∂L/∂, and sums over examples i:
    ///
    /// ∂g_j = Σ_i ∂y_ij n_ij, ∂o_j = Σ_i ∂y_ij, ∂n_j = ∂y_j g_j
    ///
    /// ∂n_k/∂x_j = r (⟦j = k⟧ − 1/J − n_j n_k/J), since ∂μ/∂x_j = 1/J and ∂r/∂x_j = −r² n_j/J
    ///
    /// ∂x_j = Σ_k ∂n_k ∂n_k/∂x_j = r (∂n_j − Σ_k ∂n_k/J − n_j Σ_k ∂n_k n_k/J)
    pub fn backward<T: Real>(
        &self,
        weights: &[T],
        cache: &mut LayerNormCache<T>,
        d_out: MatRef<'_, T>,
        gradient: &mut [T],
        d_x: MatMut<'_, T>,
        par: Par,
    ) {
        let LayerNormCache { normalized, inverse_deviation, product } = cache;
        product.resize(normalized.n_rows(), normalized.n_cols());
        let gain = self.gain.of(weights);
        let rows = (d_x, product.view_mut(), d_out, normalized.view(), &inverse_deviation[..]);
        for_each_chunk(
            rows,
            rows_per_chunk(gain.len()),
            par,
            #[inline(always)]
            |(mut d_x, mut product, d_out, normalized, inverse_deviation): (_, _, _, _, &[T])| {
                for (row_idx, &r) in inverse_deviation.iter().enumerate() {
                    let (d_y, n) = (row(d_out, row_idx), row(normalized, row_idx));
                    multiply_into(d_y, n, row_mut(&mut product, row_idx));
                    let d_x = row_mut(&mut d_x, row_idx);
                    multiply_into(d_y, gain, d_x);
                    denormalize(d_x, n, r);
                }
            },
        );
        add_column_sums(product.view(), self.gain.of_mut(gradient), par);
        add_column_sums(d_out, self.offset.of_mut(gradient), par);
    }
}

/// Writes n and returns r.
#[inline(always)]
fn normalize<T: Real>(x: &[T], n: &mut [T]) -> T {
    let len = T::of(x.len() as f64);
    let mean = sum(x) / len;
    let squares = sum_of::<LANES, T>(
        x,
        x,
        #[inline(always)]
        |x, _| (x - mean) * (x - mean),
    );
    let r = T::one() / (squares / len + T::of(EPSILON)).sqrt();
    n.iter_mut().zip(x).for_each(|(n, &x)| *n = (x - mean) * r);
    r
}

#[inline(always)]
fn scale_and_shift<T: Real>(n: &[T], gain: &[T], offset: &[T], y: &mut [T]) {
    for (((y, &n), &gain), &offset) in y.iter_mut().zip(n).zip(gain).zip(offset) {
        *y = n * gain + offset;
    }
}

/// Replaces ∂n by ∂x.
#[inline(always)]
fn denormalize<T: Real>(d: &mut [T], n: &[T], r: T) {
    let len = T::of(d.len() as f64);
    let (mean, slope) = (sum(d) / len, dot::<LANES, T>(d, n) / len);
    d.iter_mut().zip(n).for_each(|(d, &n)| *d = r * (*d - mean - n * slope));
}

#[inline(always)]
fn multiply_into<T: Real>(a: &[T], b: &[T], out: &mut [T]) {
    out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = a * b);
}

/// Computes Σ_i a_i.
#[inline(always)]
fn sum<T: Real>(a: &[T]) -> T {
    sum_of::<LANES, T>(
        a,
        a,
        #[inline(always)]
        |a, _| a,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LayerCase, Outcome, buffer, check_layer, check_threads};

    struct Case {
        n_rows: usize,
        dim: usize,
    }

    impl LayerCase for Case {
        fn sizes(&self) -> [usize; 3] {
            [2 * self.dim, self.n_rows * self.dim, self.n_rows * self.dim]
        }

        fn run<T: Real>(&self, weights: &[T], x: &[T], d_out: &[T], par: Par) -> Outcome<T> {
            let (mut layout, mut cache) = (Layout::new(), LayerNormCache::default());
            let layer = LayerNorm::new(&mut layout, "norm", self.dim);
            let mut out = buffer(x, self.n_rows, self.dim);
            layer.forward(weights, out.view_mut(), &mut cache, par);
            let mut outcome = Outcome::new(self, out.values());
            let d_out = buffer(d_out, self.n_rows, self.dim);
            let mut d_x = buffer(x, self.n_rows, self.dim);
            let d_x_view = d_x.view_mut();
            layer.backward(weights, &mut cache, d_out.view(), &mut outcome.gradient, d_x_view, par);
            outcome.d_x = d_x.values().to_vec();
            outcome
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (n_rows, dim) in [(1, 2), (3, 7), (5, 40), (0, 3), (2, 1)] {
            check_layer(&Case { n_rows, dim });
        }
        check_threads(&Case { n_rows: 600, dim: 70 });
    }

    #[test]
    fn rows_have_mean_zero_and_variance_one() {
        let x: Vec<f64> = (0..80).map(|i| f64::from(i * i)).collect();
        let weights = [[1.0; 40], [0.0; 40]].concat();
        let out = Case { n_rows: 2, dim: 40 }.run(&weights, &x, &x, Par::Seq).out;
        for row in out.chunks(40) {
            assert!(row.iter().sum::<f64>().abs() < 1e-10);
            assert!((row.iter().map(|y| y * y).sum::<f64>() - 40.0).abs() < 1e-2);
        }
    }
}
