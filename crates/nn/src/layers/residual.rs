//! The residual layer of the neural HMM (Chiu and Rush 2020, eq. 3).

use super::dropout::Dropout;
use super::layer_norm::{LayerNorm, LayerNormCache};
use super::linear::Linear;
use super::relu::{bias_relu, relu_backward};
use crate::tensors::{Buffer, Layout};
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_math::rows::{for_each_chunk, row, row_mut, rows_per_chunk};
use latens_math::{Real, Rng};

/// f(x) = LayerNorm(h + d) with d = ReLU(W₁ x + b₁) and h = ReLU(W₂ d + b₂).
///
/// During training, dropout may follow each ReLU.
#[derive(Clone, Copy, Debug)]
pub struct Residual {
    inner: Linear,
    outer: Linear,
    norm: LayerNorm,
}

/// Intermediate results of [`Residual::forward`] and buffers of the backward pass.
#[derive(Clone, Debug, Default)]
pub struct ResidualScratch<T> {
    /// d.
    inner: Buffer<T>,
    /// h.
    outer: Buffer<T>,
    norm: LayerNormCache<T>,
    /// Scale of dropout, or 1 without it.
    scale: T,
    d_sum: Buffer<T>,
    d_outer: Buffer<T>,
}

impl Residual {
    /// Adds a layer from `n_in` to `dim` values. Its weights are named `name.inner.weight`, `name.inner.bias`,
    /// `name.outer.weight`, `name.outer.bias`, `name.norm.gain` and `name.norm.offset`.
    pub fn new(layout: &mut Layout, name: &str, n_in: usize, dim: usize) -> Residual {
        Residual {
            inner: Linear::new(layout, &format!("{name}.inner"), n_in, dim),
            outer: Linear::new(layout, &format!("{name}.outer"), dim, dim),
            norm: LayerNorm::new(layout, &format!("{name}.norm"), dim),
        }
    }

    /// Length of an output.
    pub fn dim(&self) -> usize {
        self.inner.n_out()
    }

    /// Initializes the linear layers as [`Linear::init`] and the normalization as [`LayerNorm::init`].
    pub fn init<T: Real>(&self, weights: &mut [T], rng: &mut Rng) {
        self.inner.init(weights, rng);
        self.outer.init(weights, rng);
        self.norm.init(weights);
    }

    /// Computes f(x) for each row of `x`.
    pub fn forward<T: Real>(
        &self,
        weights: &[T],
        x: MatRef<'_, T>,
        scratch: &mut ResidualScratch<T>,
        out: MatMut<'_, T>,
        dropout: Option<Dropout>,
        par: Par,
    ) {
        let ResidualScratch { inner, outer, norm, scale, .. } = scratch;
        *scale = dropout.map_or(T::one(), Dropout::scale);
        inner.resize(x.nrows(), self.dim());
        linear_relu(&self.inner, weights, x, inner.view_mut(), dropout.map(|d| d.part(0)), par);
        outer.resize(x.nrows(), self.dim());
        let d = inner.view();
        linear_relu(&self.outer, weights, d, outer.view_mut(), dropout.map(|d| d.part(1)), par);
        let mut out = out;
        write_sum(d, outer.view(), out.as_mut(), par);
        self.norm.forward(weights, out, norm, par);
    }

    /// Adds the gradients of all weights to the flat `gradient` and ∂L/∂x to `d_x` if given, with `d_out` = ∂L/∂f and the
    /// `x` and `scratch` of the forward pass.
    ///
    /// With s = h + d, z₁ = W₁ x + b₁, z₂ = W₂ d + b₂, and κ the scale of dropout, in reverse order:
    ///
    /// ∂s by [`LayerNorm::backward`]
    ///
    /// ∂z₂ = κ ⟦h > 0⟧ ∂s
    ///
    /// ∂d = ∂s + W₂ᵀ ∂z₂, through the sum and through the product
    ///
    /// ∂z₁ = κ ⟦d > 0⟧ ∂d
    ///
    /// and ∂W₁, ∂b₁, ∂W₂, ∂b₂ and ∂x = W₁ᵀ ∂z₁ by [`Linear::backward`].
    #[expect(clippy::too_many_arguments, reason = "a layer with its input, output and gradients")]
    pub fn backward<T: Real>(
        &self,
        weights: &[T],
        x: MatRef<'_, T>,
        scratch: &mut ResidualScratch<T>,
        d_out: MatRef<'_, T>,
        gradient: &mut [T],
        d_x: Option<MatMut<'_, T>>,
        par: Par,
    ) {
        let ResidualScratch { inner, outer, norm, scale, d_sum, d_outer } = scratch;
        d_sum.resize(x.nrows(), self.dim());
        d_outer.resize(x.nrows(), self.dim());
        self.norm.backward(weights, norm, d_out, gradient, d_sum.view_mut(), par);
        relu_backward(outer.view(), d_sum.view(), *scale, d_outer.view_mut(), par);
        let d_inner = Some((d_sum.view_mut(), Accum::Add));
        self.outer.backward(weights, inner.view(), d_outer.view(), gradient, d_inner, par);
        let d_inner = d_outer;
        relu_backward(inner.view(), d_sum.view(), *scale, d_inner.view_mut(), par);
        let d_x = d_x.map(|d_x| (d_x, Accum::Add));
        self.inner.backward(weights, x, d_inner.view(), gradient, d_x, par);
    }
}

/// Computes D(ReLU(W x + b)).
fn linear_relu<T: Real>(
    layer: &Linear,
    weights: &[T],
    x: MatRef<'_, T>,
    out: MatMut<'_, T>,
    dropout: Option<Dropout>,
    par: Par,
) {
    let mut out = out;
    layer.multiply(weights, x, out.as_mut(), par);
    let bias = layer.bias().expect("residual layers have biases");
    bias_relu(out, bias.of(weights), dropout, par);
}

fn write_sum<T: Real>(a: MatRef<'_, T>, b: MatRef<'_, T>, out: MatMut<'_, T>, par: Par) {
    let size = rows_per_chunk(a.ncols());
    for_each_chunk(
        (out, a, b),
        size,
        par,
        #[inline(always)]
        |(mut out, a, b): (_, MatRef<'_, T>, _)| {
            for row_idx in 0..a.nrows() {
                add_into(row(a, row_idx), row(b, row_idx), row_mut(&mut out, row_idx));
            }
        },
    );
}

#[inline(always)]
fn add_into<T: Real>(a: &[T], b: &[T], out: &mut [T]) {
    out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = a + b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LayerCase, Outcome, buffer, check_layer, check_threads};

    struct Case {
        n_rows: usize,
        n_in: usize,
        dim: usize,
        dropout: Option<Dropout>,
    }

    impl LayerCase for Case {
        fn sizes(&self) -> [usize; 3] {
            let mut layout = Layout::new();
            Residual::new(&mut layout, "residual", self.n_in, self.dim);
            [layout.len(), self.n_rows * self.n_in, self.n_rows * self.dim]
        }

        fn run<T: Real>(&self, weights: &[T], x: &[T], d_out: &[T], par: Par) -> Outcome<T> {
            let layer = Residual::new(&mut Layout::new(), "residual", self.n_in, self.dim);
            let mut scratch = ResidualScratch::default();
            let x = buffer(x, self.n_rows, self.n_in);
            let d_out = buffer(d_out, self.n_rows, self.dim);
            let mut out = d_out.clone();
            layer.forward(weights, x.view(), &mut scratch, out.view_mut(), self.dropout, par);
            let mut outcome = Outcome::new(self, out.values());
            let gradient = &mut outcome.gradient;
            let mut d_x = Buffer::new();
            d_x.resize_zeroed(self.n_rows, self.n_in);
            let added = Some(d_x.view_mut());
            layer.backward(weights, x.view(), &mut scratch, d_out.view(), gradient, added, par);
            outcome.d_x = d_x.values().to_vec();
            outcome
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (n_rows, n_in, dim) in [(1, 2, 3), (6, 4, 8), (20, 9, 5), (0, 2, 2)] {
            check_layer(&Case { n_rows, n_in, dim, dropout: None });
            check_layer(&Case { n_rows, n_in, dim, dropout: Some(Dropout::new(0.3, 1)) });
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        for dropout in [None, Some(Dropout::new(0.5, 2))] {
            check_threads(&Case { n_rows: 500, n_in: 100, dim: 130, dropout });
        }
    }

    #[test]
    fn the_output_agrees_with_the_definition() {
        let case = Case { n_rows: 1, n_in: 2, dim: 2, dropout: None };
        // W₁, b₁, W₂, b₂, gain, offset: d = (3, 0), h = (0, 4), s = (3, 4).
        let weights = [
            [1.0, 0.0, 0.0, 1.0].as_slice(),
            &[1.0, 1.0],
            &[-1.0, 0.0, 1.0, 1.0],
            &[1.0, 1.0],
            &[1.0, 1.0],
            &[0.0, 10.0],
        ]
        .concat();
        let out = case.run(&weights, &[2.0, -3.0], &[0.0, 0.0], Par::Seq).out;
        let y = 0.5 / f64::sqrt(0.25 + 1e-5);
        assert!((out[0] + y).abs() < 1e-12 && (out[1] - 10.0 - y).abs() < 1e-12);
    }
}
