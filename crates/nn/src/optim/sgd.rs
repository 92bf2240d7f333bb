//! Stochastic gradient descent.

use latens_math::Real;
use latens_math::linalg::Par;
use latens_math::rows::for_each_chunk;

/// Number of weights per task.
const CHUNK: usize = 1 << 15;

/// Gradient descent, optionally with momentum (Polyak 1964).
///
/// u ← μ u + g, w ← w − η u; without momentum w ← w − η g, and no state is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Sgd<T> {
    momentum: f64,
    velocity: Vec<T>,
}

impl<T: Real> Sgd<T> {
    /// Creates an optimizer without momentum.
    pub fn new() -> Sgd<T> {
        Sgd { momentum: 0.0, velocity: vec![] }
    }

    /// Creates an optimizer of `n_weights` weights with momentum μ.
    pub fn with_momentum(momentum: f64, n_weights: usize) -> Sgd<T> {
        Sgd { momentum, velocity: vec![T::zero(); n_weights] }
    }

    /// Restores an optimizer from its [velocity](Sgd::velocity).
    pub fn from_parts(momentum: f64, velocity: Vec<T>) -> Sgd<T> {
        Sgd { momentum, velocity }
    }

    /// u, as stored in a checkpoint; empty without momentum.
    pub fn velocity(&self) -> &[T] {
        &self.velocity
    }

    /// Makes one step with `scale` times the gradient ([`clip_factor`](crate::clip_factor)).
    ///
    /// # Panics
    /// If the number of weights differs from that of the derivatives or of the optimizer.
    pub fn update(&mut self, weights: &mut [T], gradient: &[T], learning_rate: f64, scale: f64) {
        assert_eq!(weights.len(), gradient.len(), "there must be one derivative per weight");
        if self.velocity.is_empty() {
            return descend(weights, gradient, learning_rate * scale);
        }
        assert_eq!(
            weights.len(),
            self.velocity.len(),
            "the optimizer has a different number of weights"
        );
        let (momentum, scale) = (T::of(self.momentum), T::of(scale));
        for_each_chunk(
            (&mut self.velocity[..], gradient),
            CHUNK,
            Par::rayon(0),
            #[inline(always)]
            |(velocity, gradient): (&mut [T], &[T])| {
                velocity
                    .iter_mut()
                    .zip(gradient)
                    .for_each(|(u, &g)| *u = momentum * *u + scale * g);
            },
        );
        descend(weights, &self.velocity, learning_rate);
    }
}

impl<T: Real> Default for Sgd<T> {
    fn default() -> Sgd<T> {
        Sgd::new()
    }
}

/// Computes w ← w − rate · d.
fn descend<T: Real>(weights: &mut [T], direction: &[T], rate: f64) {
    let rate = T::of(rate);
    for_each_chunk(
        (weights, direction),
        CHUNK,
        Par::rayon(0),
        #[inline(always)]
        |(weights, direction): (&mut [T], &[T])| {
            weights.iter_mut().zip(direction).for_each(|(w, &d)| *w -= rate * d);
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_steps_follow_the_gradient() {
        let mut weights = [1.0, 2.0];
        Sgd::new().update(&mut weights, &[10.0, -10.0], 0.1, 0.5);
        assert_eq!(weights, [0.5, 2.5]);
    }

    #[test]
    fn momentum_accumulates() {
        let mut weights = [0.0];
        let mut sgd = Sgd::with_momentum(0.5, 1);
        for expected in [-1.0, -2.5, -4.25] {
            sgd.update(&mut weights, &[2.0], 0.5, 1.0);
            assert_eq!(weights, [expected]);
        }
        assert_eq!(sgd, Sgd::from_parts(0.5, sgd.velocity().to_vec()));
    }
}
