//! State dropout: the kept states are a model of their own.

use super::toy::{
    CLUSTERS, assert_close, batch, expected_transitions, mapping, params, sentences, space_of,
};
use crate::params::{Constraint, HmmParams, Parameterization, Tying};
use crate::recursion::forward_backward::ForwardBackward;
use crate::space::clusters::NO_CLUSTER;
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use crate::weights::mapping::TableMapping;
use latens_math::Rng;

#[test]
fn no_dropout_keeps_all_states() {
    for constraint in [Constraint::Brown, Constraint::None, Constraint::Uniform] {
        let space = space_of(&params(Parameterization::Neural, constraint, Tying::Shared));
        // So does a rate below half a state per cluster.
        for dropout in [0.0, 1e-3] {
            assert_eq!(
                KeptStates::draw(&space, dropout, &mut Rng::new(1)),
                KeptStates::all(&space)
            );
        }
        let kept = KeptStates::draw(&space, 0.5, &mut Rng::new(1));
        assert!(kept.states.is_sorted_by(|a, b| a < b) && kept.states.len() < space.n_states());
    }
}

#[test]
fn the_kept_states_are_a_model_of_their_own() {
    for constraint in [Constraint::Brown, Constraint::None] {
        for parameterization in [Parameterization::Scalar, Parameterization::Neural] {
            for tying in [Tying::Shared, Tying::Separate] {
                check_part(&params(parameterization, constraint, tying));
            }
        }
    }
}

/// Checks that the tables and expected counts of half the states are those of a model without the others.
fn check_part(of_whole: &HmmParams) {
    let whole = space_of(of_whole);
    let kept = KeptStates::draw(&whole, 0.5, &mut Rng::new(5));
    let all_in_one = CLUSTERS.map(|c| if c == NO_CLUSTER { c } else { 0 });
    let clusters = if whole.n_clusters() == 1 { all_in_one } else { CLUSTERS };
    let part = StateSpace::new(kept.k, whole.n_clusters(), clusters.to_vec());
    let of_part = HmmParams { n_states: part.n_states(), ..of_whole.clone() };

    let mut of_all = mapping::<f64>(of_whole, &whole, 0);
    let mut weights = vec![0.0; of_all.layout().len()];
    of_all.init(&mut weights, &mut Rng::new(1));
    let part_weights = weights_of_part(&*of_all, &weights, &whole, &kept);
    let mut of_kept = mapping::<f64>(&of_part, &part, 0);

    let (mut tables, mut part_tables) = (Tables::default(), Tables::default());
    of_all.forward(&weights, &whole, &kept, None, &mut tables);
    of_kept.forward(&part_weights, &part, &KeptStates::all(&part), None, &mut part_tables);
    assert_close(&tables.start, &part_tables.start);
    assert_close(&tables.transition, &part_tables.transition);
    assert_close(&tables.emission, &part_tables.emission);

    let (sentences, mut a, mut b) =
        (sentences(), ExpectedCounts::default(), ExpectedCounts::default());
    let batch = batch(&sentences, &[]);
    let log_probs = ForwardBackward::default().expected_counts(&whole, &tables, &batch, &mut a);
    let part_log_probs =
        ForwardBackward::default().expected_counts(&part, &part_tables, &batch, &mut b);
    assert_close(&log_probs, &part_log_probs);
    assert_close(&a.start, &b.start);
    assert_close(&a.emission, &b.emission);
    assert_close(&expected_transitions(&tables, &a), &expected_transitions(&part_tables, &b));
}

/// The weights that belong to a kept state or to no state.
fn weights_of_part(
    mapping: &dyn TableMapping<f64>,
    weights: &[f64],
    space: &StateSpace,
    kept: &KeptStates,
) -> Vec<f64> {
    let states: Vec<usize> = kept.states.iter().map(|&state| state as usize).collect();
    let mut out = Vec::new();
    for (name, shape, range) in mapping.layout().entries() {
        let values = &weights[range];
        let row = |i: usize| &values[i * shape[1]..(i + 1) * shape[1]];
        match name {
            "start" => out.extend(states.iter().map(|&state| values[state])),
            "transition" => {
                let rows = states.iter().map(|&from| row(from));
                out.extend(rows.flat_map(|row| states.iter().map(|&to| row[to])));
            }
            "emission" => {
                for (slot, &word) in space.words().iter().enumerate() {
                    let first = space.cluster(word).unwrap() * space.k;
                    let own = states.iter().filter(|&&s| (first..first + space.k).contains(&s));
                    out.extend(own.map(|state| row(slot)[state - first]));
                }
            }
            _ if name.starts_with("states.") => {
                states.iter().for_each(|&state| out.extend_from_slice(row(state)));
            }
            _ => out.extend_from_slice(values),
        }
    }
    out
}
