//! Stochastic gradient descent.

use latens_math::Real;
use latens_math::linalg::Par;
use latens_math::rows::for_each_chunk;

/// How many weights one task updates.
const CHUNK: usize = 1 << 15;

/// Steps against the gradient, with momentum (Polyak 1964) if so wanted.
///
/// u ← μ u + g, w ← w − η u; without momentum w ← w − η g, and no state is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Sgd<T> {
    momentum: f64,
    velocity: Vec<T>,
}

impl<T: Real> Sgd<T> {
    /// Plain descent.
    pub fn new() -> Sgd<T> {
        Sgd { momentum: 0.0, velocity: vec![] }
    }

    /// Descent with momentum μ for so many weights.
    pub fn with_momentum(momentum: f64, n_weights: usize) -> Sgd<T> {
        Sgd { momentum, velocity: vec![T::zero(); n_weights] }
    }

    /// Descent that goes on from a stored [velocity](Sgd::velocity).
    pub fn from_parts(momentum: f64, velocity: Vec<T>) -> Sgd<T> {
        Sgd { momentum, velocity }
    }

    /// u, which goes into a checkpoint; empty without momentum.
    pub fn velocity(&self) -> &[T] {
        &self.velocity
    }

    /// One step with `scale` times the gradient ([`clip_factor`](crate::clip_factor)).
    ///
    /// # Panics
    /// If there are not as many derivatives as weights, or other weights than at the beginning.
    pub fn update(&mut self, weights: &mut [T], gradient: &[T], learning_rate: f64, scale: f64) {
        assert_eq!(weights.len(), gradient.len(), "one derivative for each weight");
        if self.velocity.is_empty() {
            return descend(weights, gradient, learning_rate * scale);
        }
        assert_eq!(weights.len(), self.velocity.len(), "the optimiser is one of other weights");
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

/// w ← w − rate · d.
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
    fn momentum_adds_up() {
        let mut weights = [0.0];
        let mut sgd = Sgd::with_momentum(0.5, 1);
        for expected in [-1.0, -2.5, -4.25] {
            sgd.update(&mut weights, &[2.0], 0.5, 1.0);
            assert_eq!(weights, [expected]);
        }
        assert_eq!(sgd, Sgd::from_parts(0.5, sgd.velocity().to_vec()));
    }
}
