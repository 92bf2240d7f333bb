//! Tag probabilities from networks, and their gradient.

use latens_math::linalg::{MatRef, Par};
use latens_math::{Real, softmax};
use latens_nn::{Buffer, Linear};

/// g(y|z) for every tag y and state z, one row per tag: the softmax of the logits of each state.
pub(crate) fn tag_probabilities<T: Real>(
    weights: &[T],
    out: &Linear,
    states: MatRef<'_, T>,
    par: Par,
) -> Vec<T> {
    let (n, n_tags) = (states.nrows(), out.n_out());
    let mut logits = Buffer::new();
    logits.resize(n, n_tags);
    out.forward(weights, states, logits.view_mut(), par);
    let mut tags = vec![T::zero(); n * n_tags];
    for (state, row) in logits.values_mut().chunks_exact_mut(n_tags).enumerate() {
        softmax(row);
        row.iter().enumerate().for_each(|(tag, &p)| tags[tag * n + state] = p);
    }
    tags
}

/// N[z, y] − n_z g(y|z), one row per state.
pub(crate) fn tag_gradient<T: Real>(tags: &[T], expected: &[T], n: usize) -> Buffer<T> {
    let n_tags = tags.len() / n;
    let mut derivatives = Buffer::new();
    derivatives.resize(n, n_tags);
    for (state, row) in derivatives.values_mut().chunks_exact_mut(n_tags).enumerate() {
        let column = |values: &[T], tag: usize| values[tag * n + state];
        let total: T = (0..n_tags).map(|tag| column(expected, tag)).sum();
        for (tag, derivative) in row.iter_mut().enumerate() {
            *derivative = column(expected, tag) - total * column(tags, tag);
        }
    }
    derivatives
}
