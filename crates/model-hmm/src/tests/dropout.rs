//! State dropout: what is left is a model of its own.

use super::{CLUSTERS, assert_close, batch, params, sentences, support, transitions};
use crate::params::{Constraint, HmmParams, Parameterization, Tying};
use crate::recursion::expected_counts::{Engine, Expected};
use crate::space::state_space::{NONE, Support};
use crate::tables::probability_tables::{Kept, Tables};
use crate::weights::mapping::Parameters;
use crate::weights::neural::Neural;
use crate::weights::scalar::Scalar;
use latens_math::Rng;

#[test]
fn no_dropout_keeps_all_states() {
    for constraint in [Constraint::Brown, Constraint::None, Constraint::Uniform] {
        let support = support(&params(Parameterization::Neural, constraint, Tying::Shared));
        // Neither does a share that is less than half a state of a cluster.
        for dropout in [0.0, 1e-3] {
            assert_eq!(Kept::draw(&support, dropout, &mut Rng::new(1)), Kept::all(&support));
        }
        let kept = Kept::draw(&support, 0.5, &mut Rng::new(1));
        assert!(kept.states.is_sorted_by(|a, b| a < b) && kept.states.len() < support.n_states());
    }
}

#[test]
fn the_states_that_take_part_are_a_model_of_their_own() {
    for constraint in [Constraint::Brown, Constraint::None] {
        for parameterization in [Parameterization::Scalar, Parameterization::Neural] {
            for tying in [Tying::Shared, Tying::Separate] {
                check_part(&params(parameterization, constraint, tying));
            }
        }
    }
}

/// Whether the tables and expected counts of half the states are those of a model that has no others.
fn check_part(of_whole: &HmmParams) {
    let whole = support(of_whole);
    let kept = Kept::draw(&whole, 0.5, &mut Rng::new(5));
    let all_in_one = CLUSTERS.map(|c| if c == NONE { c } else { 0 });
    let clusters = if whole.n_clusters() == 1 { all_in_one } else { CLUSTERS };
    let part = Support::new(kept.k, whole.n_clusters(), clusters.to_vec());
    let of_part = HmmParams { n_states: part.n_states(), ..of_whole.clone() };

    let mut parameters = parameters(of_whole, &whole);
    let mut weights = vec![0.0; parameters.layout().len()];
    parameters.init(&mut weights, &mut Rng::new(1));
    let part_weights = weights_of_part(&*parameters, &weights, &whole, &kept);
    let mut part_parameters = self::parameters(&of_part, &part);

    let (mut tables, mut part_tables) = (Tables::default(), Tables::default());
    parameters.forward(&weights, &whole, &kept, None, &mut tables);
    part_parameters.forward(&part_weights, &part, &Kept::all(&part), None, &mut part_tables);
    assert_close(&tables.start, &part_tables.start);
    assert_close(&tables.transition, &part_tables.transition);
    assert_close(&tables.emission, &part_tables.emission);

    let (sentences, mut a, mut b) = (sentences(), Expected::default(), Expected::default());
    let batch = batch(&sentences, &[]);
    let log_probs = Engine::default().expectations(&whole, &tables, &batch, &mut a);
    let part_log_probs = Engine::default().expectations(&part, &part_tables, &batch, &mut b);
    assert_close(&log_probs, &part_log_probs);
    assert_close(&a.start, &b.start);
    assert_close(&a.emission, &b.emission);
    assert_close(&transitions(&tables, &a), &transitions(&part_tables, &b));
}

fn parameters(params: &HmmParams, support: &Support) -> Box<dyn Parameters<f64>> {
    match params.parameterization {
        Parameterization::Scalar => Box::new(Scalar::new(support, 0)),
        _ => Box::new(Neural::new(params, support, &["a", "b", "c", "d", "e", "f", "g"], 0)),
    }
}

/// The weights that belong to no state, or to one that takes part.
fn weights_of_part(
    parameters: &dyn Parameters<f64>,
    weights: &[f64],
    support: &Support,
    kept: &Kept,
) -> Vec<f64> {
    let states: Vec<usize> = kept.states.iter().map(|&state| state as usize).collect();
    let mut out = Vec::new();
    for (name, shape, range) in parameters.layout().entries() {
        let values = &weights[range];
        let row = |i: usize| &values[i * shape[1]..(i + 1) * shape[1]];
        match name {
            "start" => out.extend(states.iter().map(|&state| values[state])),
            "transition" => {
                let rows = states.iter().map(|&from| row(from));
                out.extend(rows.flat_map(|row| states.iter().map(|&to| row[to])));
            }
            "emission" => {
                for (slot, &word) in support.words().iter().enumerate() {
                    let first = support.cluster(word).unwrap() * support.k;
                    let own = states.iter().filter(|&&s| (first..first + support.k).contains(&s));
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
