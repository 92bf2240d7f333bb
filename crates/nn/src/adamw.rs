//! Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter 2019).

use latens_math::Real;
use latens_math::linalg::Par;
use latens_math::rows::for_each_chunk;
use serde::{Deserialize, Serialize};

/// How many weights one task updates.
const CHUNK: usize = 1 << 14;

/// The constants of [`AdamW`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamWParams {
    /// β₁ and β₂: how much of the averages of gradients and of their squares is kept in a step.
    pub betas: (f64, f64),
    /// ε, added to the root of the average square.
    pub epsilon: f64,
    /// λ: this times the learning rate is the share that every weight loses in a step.
    pub weight_decay: f64,
}

impl Default for AdamWParams {
    /// The values of the paper on Adam, without decay.
    fn default() -> AdamWParams {
        AdamWParams { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.0 }
    }
}

/// The optimiser with its state: two numbers for each weight, and the count of steps.
///
/// Step t with gradient g and learning rate η:
///
/// m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g²
///
/// w ← w − η λ w − η (m/(1 − β₁ᵗ)) / (√(v/(1 − β₂ᵗ)) + ε)
///
/// as `torch.optim.AdamW` does.
#[derive(Clone, Debug, PartialEq)]
pub struct AdamW<T> {
    params: AdamWParams,
    mean: Vec<T>,
    square: Vec<T>,
    n_steps: u64,
}

impl<T: Real> AdamW<T> {
    /// The optimiser of so many weights, before its first step.
    pub fn new(params: AdamWParams, n_weights: usize) -> AdamW<T> {
        let zeros = vec![T::zero(); n_weights];
        AdamW { params, mean: zeros.clone(), square: zeros, n_steps: 0 }
    }

    /// The optimiser after `n_steps` steps, from its stored [moments](AdamW::moments).
    ///
    /// # Panics
    /// If the moments are not of the same number of weights.
    pub fn from_parts(params: AdamWParams, mean: Vec<T>, square: Vec<T>, n_steps: u64) -> AdamW<T> {
        assert_eq!(mean.len(), square.len(), "two moments for each weight");
        AdamW { params, mean, square, n_steps }
    }

    /// m and v, which go into a checkpoint.
    pub fn moments(&self) -> (&[T], &[T]) {
        (&self.mean, &self.square)
    }

    /// The number of steps made.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// One step with `scale` times the gradient ([`clip_factor`](crate::clip_factor)).
    ///
    /// # Panics
    /// If there are not as many weights or derivatives as at the beginning.
    pub fn update(&mut self, weights: &mut [T], gradient: &[T], learning_rate: f64, scale: f64) {
        assert_eq!(weights.len(), self.mean.len(), "the optimiser is one of other weights");
        assert_eq!(gradient.len(), self.mean.len(), "one derivative for each weight");
        self.n_steps += 1;
        let step = Step::new(&self.params, self.n_steps, learning_rate, scale);
        let rows = (weights, &mut self.mean[..], &mut self.square[..], gradient);
        for_each_chunk(
            rows,
            CHUNK,
            Par::rayon(0),
            #[inline(always)]
            |(weights, mean, square, gradient): (&mut [T], &mut [T], &mut [T], &[T])| {
                for (((w, m), v), &g) in weights.iter_mut().zip(mean).zip(square).zip(gradient) {
                    step.update(w, m, v, g);
                }
            },
        );
    }
}

/// The constants of one step.
struct Step<T> {
    scale: T,
    beta_1: T,
    beta_2: T,
    rest_1: T,
    rest_2: T,
    epsilon: T,
    /// 1 − η λ.
    kept: T,
    /// η/(1 − β₁ᵗ).
    rate: T,
    /// 1/√(1 − β₂ᵗ).
    root_scale: T,
}

impl<T: Real> Step<T> {
    fn new(params: &AdamWParams, n_steps: u64, learning_rate: f64, scale: f64) -> Step<T> {
        let (beta_1, beta_2) = params.betas;
        let t = n_steps as f64;
        Step {
            scale: T::of(scale),
            beta_1: T::of(beta_1),
            beta_2: T::of(beta_2),
            rest_1: T::of(1.0 - beta_1),
            rest_2: T::of(1.0 - beta_2),
            epsilon: T::of(params.epsilon),
            kept: T::of(1.0 - learning_rate * params.weight_decay),
            rate: T::of(learning_rate / (1.0 - beta_1.powf(t))),
            root_scale: T::of(1.0 / (1.0 - beta_2.powf(t)).sqrt()),
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

    /// Three steps by the formulas of PyTorch's documentation, for one weight.
    fn textbook(params: &AdamWParams, w: f64, gradients: [f64; 3], rate: f64) -> f64 {
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
    fn three_steps_are_those_of_the_textbook() {
        let params = AdamWParams { weight_decay: 0.1, ..AdamWParams::default() };
        let start = [0.5, -1.0, 0.0, 2.0];
        let gradients = [[0.1, -2.0, 0.0, 1e-9], [0.3, 1.0, 0.0, 1e-9], [-0.2, 5.0, 0.0, 1e-9]];
        let mut weights = start;
        let mut adam = AdamW::new(params, 4);
        for gradient in gradients {
            adam.update(&mut weights, &gradient.map(|g| 2.0 * g), 0.01, 0.5);
        }
        for i in 0..4 {
            let expected = textbook(&params, start[i], gradients.map(|gradient| gradient[i]), 0.01);
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
    fn a_stored_optimiser_goes_on_as_before() {
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
