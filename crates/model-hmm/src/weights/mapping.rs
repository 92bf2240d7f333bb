//! The interface between weights and probabilities.

use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::tables::emission::vectors::SMALLEST_PROBABILITY;
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use latens_math::{Real, Rng, softmax};
use latens_nn::{Dropout, Layout};

/// Maps weights to probabilities (forward) and expected counts to gradients (backward).
///
/// The recursion does not know which mapping computed its probabilities, and the gradient does not differentiate
/// through the recursion: ∂ ln p / ∂ ln a(j|i) is the expected number of transitions from i to j, and likewise for
/// starts and emissions (Chiu and Rush 2020, appendix A).
pub(crate) trait TableMapping<T: Real>: Send {
    /// The names, shapes and positions of the weights.
    fn layout(&self) -> &Layout;

    /// Draws the initial weights.
    fn init(&self, weights: &mut [T], rng: &mut Rng);

    /// Overwrites `tables` with the probabilities of the kept states.
    fn forward(
        &mut self,
        weights: &[T],
        space: &StateSpace,
        kept: &KeptStates,
        dropout: Option<Dropout>,
        tables: &mut Tables<T>,
    );

    /// Overwrites `tables` with the probabilities of all states, for scoring only: a model with very many states may
    /// store only the factors of its transitions.
    fn forward_to_score(&mut self, weights: &[T], space: &StateSpace, tables: &mut Tables<T>) {
        self.forward(weights, space, &KeptStates::all(space), None, tables);
    }

    /// Adds the gradient of Σ ln p, given the expected counts, to `gradient`. Must follow a call of `forward` with
    /// the same weights; overwrites its tables.
    fn backward(
        &mut self,
        weights: &[T],
        space: &StateSpace,
        kept: &KeptStates,
        tables: &mut Tables<T>,
        expected: &ExpectedCounts<T>,
        gradient: &mut [T],
    );
}

/// Replaces the logits of π by probabilities. No state becomes impossible because its exponential underflows.
pub(crate) fn start_probabilities<T: Real>(logits: &mut [T]) {
    softmax(logits);
    let floor = T::of(SMALLEST_PROBABILITY);
    logits.iter_mut().for_each(|p| *p = if *p < floor { floor } else { *p });
}

/// Overwrites π with N − (Σ N) π, the derivative with respect to the logits.
pub(crate) fn start_gradient<T: Real>(start: &mut [T], expected: &[T]) {
    let total: T = expected.iter().copied().sum();
    start.iter_mut().zip(expected).for_each(|(start, &count)| *start = count - total * *start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_state_becomes_impossible_as_a_start_by_underflow() {
        let mut start = [0.0f32, 500.0, -500.0];
        start_probabilities(&mut start);
        assert!(start.iter().all(|&p| p > 0.0), "{start:?}");
        assert_eq!(start[1], 1.0);
        let mut start = [0.0, f32::NAN];
        start_probabilities(&mut start);
        assert!(start.iter().all(|p| p.is_nan()), "{start:?}");
    }
}
