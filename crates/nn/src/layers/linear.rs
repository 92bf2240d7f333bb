//! The linear layer y = W x + b.

use crate::tensors::add_column_sums;
use crate::tensors::fill_uniform;
use crate::tensors::{Layout, WeightId};
use latens_math::linalg::{Accum, MatMut, MatRef, Par, multiply};
use latens_math::rows::{for_each_chunk, row_mut, rows_per_chunk};
use latens_math::{Real, Rng};

/// A linear layer y = W x + b for each row x, with or without b.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    weight: WeightId,
    bias: Option<WeightId>,
}

impl Linear {
    /// Adds a layer with a bias. Its weights are named `name.weight` (`n_out` × `n_in`) and `name.bias`.
    pub fn new(layout: &mut Layout, name: &str, n_in: usize, n_out: usize) -> Linear {
        let without = Linear::without_bias(layout, name, n_in, n_out);
        Linear { bias: Some(layout.add(&format!("{name}.bias"), &[n_out])), ..without }
    }

    /// Adds a layer without a bias.
    pub fn without_bias(layout: &mut Layout, name: &str, n_in: usize, n_out: usize) -> Linear {
        Linear { weight: layout.add(&format!("{name}.weight"), &[n_out, n_in]), bias: None }
    }

    /// Length of an input.
    pub fn n_in(&self) -> usize {
        self.weight.n_cols()
    }

    /// Length of an output.
    pub fn n_out(&self) -> usize {
        self.weight.n_rows()
    }

    /// W.
    pub fn weight(&self) -> WeightId {
        self.weight
    }

    /// b.
    pub fn bias(&self) -> Option<WeightId> {
        self.bias
    }

    /// Draws the weights uniformly from ±1/√`n_in`, as PyTorch does.
    pub fn init<T: Real>(&self, weights: &mut [T], rng: &mut Rng) {
        let bound = 1.0 / (self.n_in() as f64).sqrt();
        for weight in [Some(self.weight), self.bias].into_iter().flatten() {
            fill_uniform(weight.of_mut(weights), bound, rng);
        }
    }

    /// Computes Y = X Wᵀ + 1 bᵀ, with one row of `out` per row of `x`.
    pub fn forward<T: Real>(&self, weights: &[T], x: MatRef<'_, T>, out: MatMut<'_, T>, par: Par) {
        let mut out = out;
        self.multiply(weights, x, out.as_mut(), par);
        if let Some(bias) = self.bias {
            add_to_rows(bias.of(weights), out, par);
        }
    }

    /// Computes X Wᵀ, the forward pass without the bias.
    pub(crate) fn multiply<T: Real>(
        &self,
        weights: &[T],
        x: MatRef<'_, T>,
        out: MatMut<'_, T>,
        par: Par,
    ) {
        multiply(out, Accum::Replace, x, self.weight.mat(weights).transpose(), par);
    }

    /// Adds ∂L/∂W and ∂L/∂b to the flat `gradient` and writes or adds ∂L/∂X to `d_x`, given `d_out` = ∂L/∂Y and the `x`
    /// of the forward pass.
    ///
    /// With y_io = Σ_j x_ij w_oj + b_o for example i:
    ///
    /// ∂L/∂w_oj = Σ_i ∂L/∂y_io x_ij, which is ∂Yᵀ X
    ///
    /// ∂L/∂b_o = Σ_i ∂L/∂y_io, the sums of the columns of ∂Y
    ///
    /// ∂L/∂x_ij = Σ_o ∂L/∂y_io w_oj, which is ∂Y W
    pub fn backward<T: Real>(
        &self,
        weights: &[T],
        x: MatRef<'_, T>,
        d_out: MatRef<'_, T>,
        gradient: &mut [T],
        d_x: Option<(MatMut<'_, T>, Accum)>,
        par: Par,
    ) {
        let d_weight = self.weight.mat_mut(gradient);
        multiply(d_weight, Accum::Add, d_out.transpose(), x, par);
        if let Some(bias) = self.bias {
            add_column_sums(d_out, bias.of_mut(gradient), par);
        }
        if let Some((d_x, accum)) = d_x {
            multiply(d_x, accum, d_out, self.weight.mat(weights), par);
        }
    }
}

/// Adds `bias` to every row.
fn add_to_rows<T: Real>(bias: &[T], rows: MatMut<'_, T>, par: Par) {
    let size = rows_per_chunk(rows.ncols());
    for_each_chunk(
        rows,
        size,
        par,
        #[inline(always)]
        |mut chunk: MatMut<'_, T>| {
            for row_idx in 0..chunk.nrows() {
                let row = row_mut(&mut chunk, row_idx);
                row.iter_mut().zip(bias).for_each(|(value, &b)| *value += b);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LayerCase, Outcome, buffer, check_layer, check_threads};

    struct Case {
        n_rows: usize,
        n_in: usize,
        n_out: usize,
        bias: bool,
    }

    impl Case {
        fn layer(&self, layout: &mut Layout) -> Linear {
            let new = if self.bias { Linear::new } else { Linear::without_bias };
            new(layout, "linear", self.n_in, self.n_out)
        }
    }

    impl LayerCase for Case {
        fn sizes(&self) -> [usize; 3] {
            let mut layout = Layout::new();
            self.layer(&mut layout);
            [layout.len(), self.n_rows * self.n_in, self.n_rows * self.n_out]
        }

        fn run<T: Real>(&self, weights: &[T], x: &[T], d_out: &[T], par: Par) -> Outcome<T> {
            let layer = self.layer(&mut Layout::new());
            let x = buffer(x, self.n_rows, self.n_in);
            let d_out = buffer(d_out, self.n_rows, self.n_out);
            let mut out = d_out.clone();
            layer.forward(weights, x.view(), out.view_mut(), par);
            let mut outcome = Outcome::new(self, out.values());
            let gradient = &mut outcome.gradient;
            let mut d_x = x.clone();
            let replace = Some((d_x.view_mut(), Accum::Replace));
            layer.backward(weights, x.view(), d_out.view(), gradient, replace, par);
            outcome.d_x = d_x.values().to_vec();
            outcome
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for (n_rows, n_in, n_out) in [(1, 1, 1), (5, 3, 4), (7, 1, 9), (9, 6, 1), (0, 2, 3)] {
            for bias in [true, false] {
                check_layer(&Case { n_rows, n_in, n_out, bias });
            }
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        for (n_rows, n_in, n_out) in [(2048, 256, 256), (700, 100, 1), (3, 1000, 700)] {
            check_threads(&Case { n_rows, n_in, n_out, bias: true });
        }
    }

    #[test]
    fn the_gradient_of_the_input_is_added_on_request() {
        let mut layout = Layout::new();
        let layer = Linear::without_bias(&mut layout, "linear", 1, 1);
        let (one, mut d_x) = (buffer(&[1.0], 1, 1), buffer(&[5.0], 1, 1));
        let (weights, mut gradient) = ([3.0], [10.0]);
        let d_x_view = Some((d_x.view_mut(), Accum::Add));
        layer.backward(&weights, one.view(), one.view(), &mut gradient, d_x_view, Par::Seq);
        assert_eq!((d_x.values()[0], gradient[0]), (8.0, 11.0));
    }

    #[test]
    fn weights_are_drawn_within_their_bound() {
        let mut layout = Layout::new();
        let layer = Linear::new(&mut layout, "linear", 100, 30);
        let mut weights = vec![0f32; layout.len()];
        layer.init(&mut weights, &mut Rng::new(1));
        assert!(weights.iter().all(|w| w.abs() <= 0.1 && *w != 0.0));
    }
}
