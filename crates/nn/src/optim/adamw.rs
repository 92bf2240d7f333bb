//! Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter 2019).

use crate::tensors::SparseRows;
use latens_math::Real;
use latens_math::linalg::Par;
use latens_math::rows::for_each_chunk;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Number of weights per task.
const CHUNK: usize = 1 << 14;

/// Hyperparameters of [`AdamW`].
///
/// Exhaustive, as this crate is internal: the parameters of models are the stable interface.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamWParams {
    /// β₁ and β₂, the decay rates of the averages of gradients and squared gradients.
    pub betas: (f64, f64),
    /// ε, added to the root of the mean square.
    pub epsilon: f64,
    /// λ, the weight decay per step relative to the learning rate.
    pub weight_decay: f64,
}

impl Default for AdamWParams {
    /// The values of Kingma and Ba (2015), without weight decay.
    fn default() -> AdamWParams {
        AdamWParams { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.0 }
    }
}

/// The AdamW optimizer: two moments per weight and the number of steps.
///
/// Step t with gradient g and learning rate η:
///
/// m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g²
///
/// w ← w − η λ w − η (m/(1 − β₁ᵗ)) / (√(v/(1 − β₂ᵗ)) + ε)
///
/// This is `torch.optim.AdamW`.
#[derive(Clone, Debug, PartialEq)]
pub struct AdamW<T> {
    params: AdamWParams,
    mean: Vec<T>,
    square: Vec<T>,
    n_steps: u64,
}

impl<T: Real> AdamW<T> {
    /// Creates the optimizer of `n_weights` weights.
    pub fn new(params: AdamWParams, n_weights: usize) -> AdamW<T> {
        let zeros = vec![T::zero(); n_weights];
        AdamW { params, mean: zeros.clone(), square: zeros, n_steps: 0 }
    }

    /// Restores the optimizer after `n_steps` steps from its [moments](AdamW::moments).
    ///
    /// # Panics
    /// If the moments differ in length.
    pub fn from_parts(params: AdamWParams, mean: Vec<T>, square: Vec<T>, n_steps: u64) -> AdamW<T> {
        assert_eq!(mean.len(), square.len(), "there must be two moments per weight");
        AdamW { params, mean, square, n_steps }
    }

    /// m and v, as stored in a checkpoint.
    pub fn moments(&self) -> (&[T], &[T]) {
        (&self.mean, &self.square)
    }

    /// Number of steps made.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// Makes one step with `scale` times the gradient ([`clip_factor`](crate::clip_factor)).
    ///
    /// # Panics
    /// If the number of weights or derivatives differs from that of the optimizer.
    pub fn update(&mut self, weights: &mut [T], gradient: &[T], learning_rate: f64, scale: f64) {
        self.update_sparse(weights, gradient, &SparseRows::default(), learning_rate, scale);
    }

    /// Does the same as [`AdamW::update`] without reading the zeros of the gradient.
    ///
    /// # Panics
    /// If the number of weights or derivatives differs from that of the optimizer.
    pub fn update_sparse(
        &mut self,
        weights: &mut [T],
        gradient: &[T],
        sparse: &SparseRows,
        learning_rate: f64,
        scale: f64,
    ) {
        assert_eq!(
            weights.len(),
            self.mean.len(),
            "the optimizer has a different number of weights"
        );
        assert_eq!(gradient.len(), self.mean.len(), "there must be one derivative per weight");
        // A forged checkpoint may contain any number.
        self.n_steps = self.n_steps.saturating_add(1);
        let step = Step::new(&self.params.step(self.n_steps, learning_rate), scale);
        let places = 0..gradient.len();
        let rows = (weights, &mut self.mean[..], &mut self.square[..], places);
        for_each_chunk(
            rows,
            CHUNK,
            Par::rayon(0),
            #[inline(always)]
            |(weights, mean, square, places): (&mut [T], &mut [T], &mut [T], Range<usize>)| {
                for (part, is_zero) in sparse.parts(places.clone()) {
                    let own = part.start - places.start..part.end - places.start;
                    let (weights, mean) = (&mut weights[own.clone()], &mut mean[own.clone()]);
                    let weights = weights.iter_mut().zip(mean).zip(&mut square[own]);
                    if is_zero {
                        for ((w, m), v) in weights {
                            step.update(w, m, v, T::zero());
                        }
                    } else {
                        for (((w, m), v), &g) in weights.zip(&gradient[part]) {
                            step.update(w, m, v, g);
                        }
                    }
                }
            },
        );
    }
}

/// The constants of one AdamW step, which the CPU and the GPU share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWStep {
    /// β₁ and β₂.
    pub betas: (f64, f64),
    /// ε.
    pub epsilon: f64,
    /// 1 − η λ, the factor of weight decay.
    pub kept: f64,
    /// η/(1 − β₁ᵗ), the bias-corrected learning rate.
    pub rate: f64,
    /// 1/√(1 − β₂ᵗ), the bias correction of the root of the mean square.
    pub root_scale: f64,
}

impl AdamWParams {
    /// Returns the constants of step t = `n_steps`, counted from 1, with learning rate η.
    pub fn step(&self, n_steps: u64, learning_rate: f64) -> AdamWStep {
        let ((beta_1, beta_2), t) = (self.betas, n_steps as f64);
        AdamWStep {
            betas: self.betas,
            epsilon: self.epsilon,
            kept: 1.0 - learning_rate * self.weight_decay,
            rate: learning_rate / (1.0 - beta_1.powf(t)),
            root_scale: 1.0 / (1.0 - beta_2.powf(t)).sqrt(),
        }
    }
}

/// An [`AdamWStep`] in the precision of the weights.
struct Step<T> {
    scale: T,
    beta_1: T,
    beta_2: T,
    rest_1: T,
    rest_2: T,
    epsilon: T,
    kept: T,
    rate: T,
    root_scale: T,
}

impl<T: Real> Step<T> {
    fn new(step: &AdamWStep, scale: f64) -> Step<T> {
        let (beta_1, beta_2) = step.betas;
        Step {
            scale: T::of(scale),
            beta_1: T::of(beta_1),
            beta_2: T::of(beta_2),
            rest_1: T::of(1.0 - beta_1),
            rest_2: T::of(1.0 - beta_2),
            epsilon: T::of(step.epsilon),
            kept: T::of(step.kept),
            rate: T::of(step.rate),
            root_scale: T::of(step.root_scale),
        }
    }

    #[inline(always)]
    fn update(&self, w: &mut T, m: &mut T, v: &mut T, g: T) {
        let g = g * self.scale;
        *m = self.beta_1 * *m + self.rest_1 * g;
        *v = self.beta_2 * *v + self.rest_2 * g * g;
        *w = self.kept * *w - self.rate * *m / (v.sqrt() * self.root_scale + self.epsilon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    /// Three steps for one weight by the formulas of PyTorch's documentation.
    fn reference(params: &AdamWParams, w: f64, gradients: [f64; 3], rate: f64) -> f64 {
        let (mut w, mut m, mut v) = (w, 0.0, 0.0);
        let (b1, b2) = params.betas;
        for (t, g) in (1..).zip(gradients) {
            w -= rate * params.weight_decay * w;
            m = b1 * m + (1.0 - b1) * g;
            v = b2 * v + (1.0 - b2) * g * g;
            let (m_hat, v_hat) = (m / (1.0 - b1.powi(t)), v / (1.0 - b2.powi(t)));
            w -= rate * m_hat / (v_hat.sqrt() + params.epsilon);
        }
        w
    }

    #[test]
    fn three_steps_agree_with_the_formulas() {
        let params = AdamWParams { weight_decay: 0.1, ..AdamWParams::default() };
        let start = [0.5, -1.0, 0.0, 2.0];
        let gradients = [[0.1, -2.0, 0.0, 1e-9], [0.3, 1.0, 0.0, 1e-9], [-0.2, 5.0, 0.0, 1e-9]];
        let mut weights = start;
        let mut adam = AdamW::new(params, 4);
        for gradient in gradients {
            adam.update(&mut weights, &gradient.map(|g| 2.0 * g), 0.01, 0.5);
        }
        for i in 0..4 {
            let expected =
                reference(&params, start[i], gradients.map(|gradient| gradient[i]), 0.01);
            assert!((weights[i] - expected).abs() < 1e-14, "{} and {expected}", weights[i]);
        }
    }

    #[test]
    fn the_first_step_without_decay_has_the_length_of_the_learning_rate() {
        let mut weights = [0.0f32; 3];
        AdamW::new(AdamWParams::default(), 3).update(&mut weights, &[1e-3, -7.0, 0.0], 0.1, 1.0);
        for (w, expected) in weights.iter().zip([-0.1, 0.1, 0.0]) {
            assert!((w - expected).abs() < 2e-6);
        }
    }

    #[test]
    fn sparse_rows_make_the_same_steps() {
        let mut layout = Layout::new();
        layout.add("before", &[16_390]);
        let table = layout.add("table", &[50, 7]);
        layout.add("after", &[5]);
        let (mut sparse, n) = (SparseRows::new(table), layout.len());
        let mut gradient: Vec<f32> = (0..n).map(|i| (i as f32).sin()).collect();
        gradient[table.range()].fill(0.0);
        let [mut all, mut some] = [(); 2].map(|()| AdamW::new(AdamWParams::default(), n));
        let [mut weights, mut weights_too] = [(); 2].map(|()| vec![1.0; n]);
        for rows in [&[3, 8, 49][..], &[0, 8]] {
            sparse.restart(&mut gradient, rows);
            for &row in rows {
                gradient[table.range().start + 7 * row as usize..][..7].fill(0.4);
            }
            all.update(&mut weights, &gradient, 0.1, 0.5);
            some.update_sparse(&mut weights_too, &gradient, &sparse, 0.1, 0.5);
        }
        assert_eq!(weights, weights_too);
        assert_eq!(all, some);
    }

    #[test]
    fn a_restored_optimizer_makes_the_same_steps() {
        let gradient: Vec<f32> = (0..40_000).map(|i| (i as f32).sin()).collect();
        let mut weights = vec![1.0; 40_000];
        let mut adam = AdamW::new(AdamWParams::default(), 40_000);
        adam.update(&mut weights, &gradient, 0.1, 1.0);
        let (mean, square) = adam.moments();
        let mut stored =
            AdamW::from_parts(adam.params, mean.to_vec(), square.to_vec(), adam.n_steps());
        let mut weights_too = weights.clone();
        adam.update(&mut weights, &gradient, 0.1, 1.0);
        stored.update(&mut weights_too, &gradient, 0.1, 1.0);
        assert_eq!(weights, weights_too);
        assert_eq!(adam, stored);
    }
}
