//! Toy models in all representations.

use super::toy::{CLUSTERS, emission, random_tables};
use crate::model::Hmm;
use crate::params::{Constraint, HmmParams, Memory};
use crate::space::clusters::NO_CLUSTER;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use crate::tables::probability_tables::Tables;
use latens_corpus::{Lexicon, Preprocessing, Vocab, VocabLimits};
use latens_model::Params;
use serde_json::Map;

/// The model with some probabilities.
pub(super) fn hmm(space: &StateSpace, tables: &Tables<f32>) -> Hmm {
    hmm_with(Memory::Reset, space, tables)
}

/// The model with some probabilities, with independent sentences or not.
pub(super) fn hmm_with(memory: Memory, space: &StateSpace, tables: &Tables<f32>) -> Hmm {
    let constraint = match (&space.lists, space.n_clusters()) {
        (Some(_), _) => Constraint::Uniform,
        (None, 1) => Constraint::None,
        (None, _) => Constraint::Brown,
    };
    let n_clusters = space.lists.as_ref().map_or(space.n_clusters(), |l| space.k / l.n);
    let n_states = space.n_states();
    let params = HmmParams { n_states, n_clusters, constraint, memory, ..HmmParams::default() };
    let words = ["<unk>", "<eos>", "a", "b", "c", "d", "e", "f"];
    let vocab = Vocab::from_parts(words, vec![1; words.len()]).unwrap();
    let (preprocessing, limits) = (Preprocessing::default(), VocabLimits::default());
    let lexicon = Lexicon::new(preprocessing, limits, vocab);
    let (params, tables) = (params.validate().unwrap(), tables.clone());
    Hmm::new(params, lexicon, Map::new(), space.clone(), None, tables, None)
}

/// Random probabilities with clusters of words.
pub(super) fn blocks(k: usize, n_clusters: usize, seed: u64) -> (StateSpace, Tables<f32>) {
    let clusters =
        CLUSTERS.iter().map(|&c| if c == NO_CLUSTER { c } else { c % n_clusters as u32 });
    let space = StateSpace::new(k, n_clusters, clusters.collect());
    let tables = random_tables(&space, 0, seed);
    (space, tables)
}

/// The same probabilities in a dense model: one cluster, most emissions zero.
pub(super) fn dense(space: &StateSpace, tables: &Tables<f32>) -> (StateSpace, Tables<f32>) {
    let clusters = CLUSTERS.iter().map(|&c| if c == NO_CLUSTER { c } else { 0 }).collect();
    let dense = StateSpace::new(space.n_states(), 1, clusters);
    let rows = dense.words().iter().flat_map(|&word| {
        let row = (0..space.n_states()).map(|state| emission(space, tables, word, state) as f32);
        row.collect::<Vec<_>>()
    });
    let dense_tables = Tables { k: dense.k, emission: rows.collect(), ..tables.clone() };
    (dense, dense_tables)
}

/// The same probabilities with state lists: the states of the word's cluster.
pub(super) fn listed(space: &StateSpace, tables: &Tables<f32>) -> (StateSpace, Tables<f32>) {
    let (mut listed, listed_tables) = dense(space, tables);
    let states = listed.words().iter().flat_map(|&word| {
        let first = space.cluster(word).unwrap() * space.k;
        first as u32..(first + space.k) as u32
    });
    listed.lists = Some(StateLists::new(space.k, space.n_states(), states.collect()));
    (listed, listed_tables)
}

/// Makes whole rows underflow in a scaled recursion in single precision.
pub(super) fn with_tiny_rows(tables: &Tables<f32>, n: usize) -> Tables<f32> {
    let mut tables = tables.clone();
    tables.start[0] = 1e-30;
    tables.transition[..n].fill(1e-30);
    tables.emission.iter_mut().step_by(3).for_each(|b| *b = 1e-30);
    tables
}

pub(super) fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Compares with the tolerance of single precision through a few steps.
pub(super) fn assert_near(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
        assert!(a == b || (a - b).abs() < 2e-6 * b.abs().max(1.0), "{i}: {a} {b}");
    }
}
