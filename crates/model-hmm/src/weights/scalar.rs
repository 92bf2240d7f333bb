//! Scalar parameterization: one logit per probability.

use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::tables::emission::clustered as emission;
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use crate::tables::transition;
use crate::weights::mapping::{TableMapping, start_gradient, start_probabilities};
use latens_math::{Real, Rng, softmax};
use latens_nn::{Dropout, Layout, WeightId};
use rayon::prelude::*;

/// Logits of starts (Z), transitions (Z × Z), emissions (k per slot) and tags (Z per tag).
pub(crate) struct Scalar {
    layout: Layout,
    start: WeightId,
    transition: WeightId,
    emission: WeightId,
    tags: Option<WeightId>,
}

impl Scalar {
    pub(crate) fn new(space: &StateSpace, n_tags: usize) -> Scalar {
        let (mut layout, n) = (Layout::new(), space.n_states());
        Scalar {
            start: layout.add("start", &[n]),
            transition: layout.add("transition", &[n, n]),
            emission: layout.add("emission", &[space.n_slots(), space.k]),
            tags: (n_tags > 0).then(|| layout.add("tags", &[n_tags, n])),
            layout,
        }
    }
}

impl<T: Real> TableMapping<T> for Scalar {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Draws from N(0, 1), which is enough variation for states to specialize.
    fn init(&self, weights: &mut [T], rng: &mut Rng) {
        weights.iter_mut().for_each(|weight| *weight = T::of(rng.normal()));
    }

    fn forward(
        &mut self,
        weights: &[T],
        space: &StateSpace,
        kept: &KeptStates,
        _: Option<Dropout>,
        tables: &mut Tables<T>,
    ) {
        let n = kept.states.len();
        tables.k = kept.k;
        gather(self.start.of(weights), &kept.states, &mut tables.start);
        start_probabilities(&mut tables.start);
        let logits = self.transition.of(weights);
        tables.transition.resize(n * n, T::zero());
        tables.transition.par_chunks_exact_mut(n).zip(&kept.states).for_each(|(row, &state)| {
            let all = &logits[state as usize * space.n_states()..][..space.n_states()];
            row.iter_mut().zip(&kept.states).for_each(|(a, &to)| *a = all[to as usize]);
            softmax(row);
        });
        emission::forward_of_logits(space, kept, tables, |slot, states, row| {
            let all = &self.emission.of(weights)[slot * space.k..(slot + 1) * space.k];
            row.iter_mut().zip(states).for_each(|(b, &state)| *b = all[state as usize % space.k]);
        });
        if let Some(tags) = self.tags {
            tables.tags.clear();
            for all in tags.of(weights).chunks_exact(space.n_states()) {
                tables.tags.extend(kept.states.iter().map(|&state| all[state as usize]));
            }
            latens_math::softmax_columns(&mut tables.tags, &mut vec![T::zero(); n]);
        }
    }

    fn backward(
        &mut self,
        _: &[T],
        space: &StateSpace,
        kept: &KeptStates,
        tables: &mut Tables<T>,
        expected: &ExpectedCounts<T>,
        gradient: &mut [T],
    ) {
        let n = kept.states.len();
        start_gradient(&mut tables.start, &expected.start);
        scatter(&tables.start, &kept.states, self.start.of_mut(gradient));
        transition::logit_gradient(tables, expected);
        let mut rows: Vec<Option<&mut [T]>> =
            self.transition.of_mut(gradient).chunks_exact_mut(space.n_states()).map(Some).collect();
        let rows: Vec<&mut [T]> =
            kept.states.iter().filter_map(|&state| rows[state as usize].take()).collect();
        rows.into_par_iter().zip(tables.transition.par_chunks_exact(n)).for_each(
            |(row, derivatives)| {
                scatter(derivatives, &kept.states, row);
            },
        );
        emission::backward_to_logits(space, kept, tables, expected);
        emission_gradient(space, kept, tables, self.emission.of_mut(gradient));
        if let Some(tags) = self.tags {
            let totals: Vec<T> = (0..n)
                .map(|state| expected.tags.iter().skip(state).step_by(n).copied().sum())
                .collect();
            let rows = tables.tags.chunks_exact_mut(n).zip(expected.tags.chunks_exact(n));
            let out = tags.of_mut(gradient).chunks_exact_mut(space.n_states());
            for ((row, counts), out) in rows.zip(out) {
                for ((g, &count), &total) in row.iter_mut().zip(counts).zip(&totals) {
                    *g = count - total * *g;
                }
                scatter(row, &kept.states, out);
            }
        }
    }
}

/// Adds the derivatives, which have replaced b in `tables`, to those of all logits.
fn emission_gradient<T: Real>(
    space: &StateSpace,
    kept: &KeptStates,
    tables: &Tables<T>,
    gradient: &mut [T],
) {
    let mut rows = gradient.chunks_exact_mut(space.k);
    if let Some(lists) = &tables.lists {
        for (slot, row) in rows.enumerate() {
            for (&i, &derivative) in lists.of(slot).iter().zip(tables.emission_of(slot)) {
                row[kept.states[i as usize] as usize] += derivative;
            }
        }
        return;
    }
    for cluster in 0..space.n_clusters() {
        let states = &kept.states[cluster * kept.k..(cluster + 1) * kept.k];
        let states: Vec<u32> = states.iter().map(|&state| state % space.k as u32).collect();
        for (slot, row) in space.slots(cluster).zip(&mut rows) {
            scatter(tables.emission_of(slot), &states, row);
        }
    }
}

/// Overwrites `out` with the values of some states.
fn gather<T: Real>(values: &[T], states: &[u32], out: &mut Vec<T>) {
    out.clear();
    out.extend(states.iter().map(|&state| values[state as usize]));
}

/// Adds the values of some states to `out`, which has all states.
fn scatter<T: Real>(values: &[T], states: &[u32], out: &mut [T]) {
    values.iter().zip(states).for_each(|(&value, &state)| out[state as usize] += value);
}
