//! What makes probabilities of weights: forward, and backward from expected counts.

use crate::recursion::expected_counts::Expected;
use crate::space::state_space::Support;
use crate::tables::probability_tables::{Kept, Tables};
use latens_math::{Real, Rng};
use latens_nn::{Dropout, Layout};

/// A parameterization. The recursion never knows which one made its probabilities.
///
/// The gradient needs no differentiation through the recursion: ∂ ln p / ∂ ln a(j|i) is the expected number
/// of transitions from i to j, and likewise for starts and emissions (Chiu and Rush 2020, appendix A).
pub(crate) trait Parameters<T: Real>: Send {
    /// Where each weight lies.
    fn layout(&self) -> &Layout;

    /// Draws the first weights.
    fn init(&self, weights: &mut [T], rng: &mut Rng);

    /// Overwrites `tables` with the probabilities of the states that take part.
    fn forward(
        &mut self,
        weights: &[T],
        support: &Support,
        kept: &Kept,
        dropout: Option<Dropout>,
        tables: &mut Tables<T>,
    );

    /// Overwrites `tables` with the probabilities of all states, for scores only: where there are very many,
    /// transitions may be left as factors.
    fn forward_to_score(&mut self, weights: &[T], support: &Support, tables: &mut Tables<T>) {
        self.forward(weights, support, &Kept::all(support), None, tables);
    }

    /// Adds the derivatives of Σ ln p, of which `expected` has the counts, to `gradient`. It follows a
    /// `forward` with the same weights, whose tables it uses up.
    fn backward(
        &mut self,
        weights: &[T],
        support: &Support,
        kept: &Kept,
        tables: &mut Tables<T>,
        expected: &Expected<T>,
        gradient: &mut [T],
    );
}
