//! Toy models and sentences, and the definitions that tests compare with.

use crate::params::{Constraint, HmmParams, Parameterization, Tying};
use crate::recursion::batch::Batch;
use crate::recursion::forward_backward::ForwardBackward;
use crate::space::clusters::NO_CLUSTER;
use crate::space::kept_states::KeptStates;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use crate::tables::expected_counts::{Block, ExpectedCounts};
use crate::tables::probability_tables::Tables;
use crate::weights::mapping::TableMapping;
use crate::weights::neural::Neural;
use crate::weights::scalar::Scalar;
use latens_corpus::WordId;
use latens_math::{Real, Rng, softmax, softmax_columns};

/// The clusters of words 0 to 7. Word 3 is never emitted.
pub(super) const CLUSTERS: [u32; 8] = [0, 1, 2, NO_CLUSTER, 0, 1, 2, 0];

pub(super) fn sentences() -> Vec<Vec<WordId>> {
    let words = [&[2u32, 5, 7, 1][..], &[4], &[6, 6, 0, 5, 2, 1], &[7, 1], &[2, 5, 7, 4, 1], &[]];
    words.iter().map(|words| words.iter().map(|&word| WordId(word)).collect()).collect()
}

pub(super) fn tags(sentences: &[Vec<WordId>]) -> Vec<Vec<u32>> {
    let tag = |(i, word): (usize, &WordId)| (word.0 + i as u32) % 3;
    let of_words =
        |s: &Vec<WordId>| s.iter().enumerate().map(tag).take(s.len().max(1) - 1).collect();
    sentences.iter().map(of_words).collect()
}

pub(super) fn batch<'a>(sentences: &'a [Vec<WordId>], tags: &'a [Vec<u32>]) -> Batch<'a> {
    Batch {
        sentences: sentences.iter().map(|sentence| &sentence[..]).collect(),
        tags: tags.iter().map(|tags| &tags[..]).collect(),
    }
}

pub(super) fn random_tables<T: Real>(space: &StateSpace, n_tags: usize, seed: u64) -> Tables<T> {
    let (mut rng, n) = (Rng::new(seed), space.n_states());
    let mut logits =
        |n: usize| -> Vec<T> { (0..n).map(|_| T::of(rng.normal())).collect::<Vec<T>>() };
    let mut tables = Tables {
        k: space.k,
        start: logits(n),
        transition: logits(n * n),
        emission: logits(space.n_slots() * space.k),
        tags: logits(n_tags * n),
        ..Tables::default()
    };
    softmax(&mut tables.start);
    tables.transition.chunks_exact_mut(n).for_each(|row| {
        softmax(row);
    });
    for cluster in 0..space.n_clusters() {
        let slots = space.slots(cluster);
        let table = &mut tables.emission[slots.start * space.k..slots.end * space.k];
        softmax_columns(table, &mut vec![T::zero(); space.k]);
    }
    if n_tags > 0 {
        softmax_columns(&mut tables.tags, &mut vec![T::zero(); n]);
    }
    tables
}

/// b(x|z) of any state, zero outside the cluster or list of the word.
pub(super) fn emission<T: Real>(
    space: &StateSpace,
    tables: &Tables<T>,
    word: WordId,
    state: usize,
) -> f64 {
    let (Some(cluster), Some(slot)) = (space.cluster(word), space.slot(word)) else {
        return 0.0;
    };
    if let Some(lists) = &tables.lists {
        let at = lists.of(slot).iter().position(|&other| other as usize == state);
        return at.map_or(0.0, |at| tables.emission_of(slot)[at].wide());
    }
    if state / tables.k != cluster {
        0.0
    } else {
        tables.emission[slot * tables.k + state % tables.k].wide()
    }
}

/// Visits every path of states through a sentence with its probability, straight from the definition.
pub(super) fn for_each_path<T: Real>(
    space: &StateSpace,
    tables: &Tables<T>,
    sentence: &[WordId],
    tags: &[u32],
    mut visit: impl FnMut(&[usize], f64),
) {
    let n = tables.n_states();
    for code in 0..n.pow(sentence.len() as u32) {
        let path: Vec<usize> = (0..sentence.len()).map(|t| code / n.pow(t as u32) % n).collect();
        let mut p = 1.0;
        for (t, (&state, &word)) in path.iter().zip(sentence).enumerate() {
            p *= match t {
                0 => tables.start[state].wide(),
                _ => tables.transition[path[t - 1] * n + state].wide(),
            };
            p *= emission(space, tables, word, state);
            p *= tags.get(t).map_or(1.0, |&tag| tables.tags[tag as usize * n + state].wide());
        }
        visit(&path, p);
    }
}

/// The expected transitions as a Z × Z table.
pub(super) fn expected_transitions<T: Real>(
    tables: &Tables<T>,
    expected: &ExpectedCounts<T>,
) -> Vec<f64> {
    let (k, n) = (tables.k, tables.n_states());
    let mut counts = vec![0.0; n * n];
    let mut add = |block: &Block<T>, divided: bool| {
        for (i, &value) in block.values.iter().enumerate() {
            let at = (block.from as usize * k + i / k) * n + block.to as usize * k + i % k;
            let a = if divided { tables.transition[at].wide() } else { 1.0 };
            counts[at] += value.wide() * a;
        }
    };
    expected.ratios.iter().for_each(|block| add(block, true));
    expected.counts.iter().for_each(|block| add(block, false));
    for (state, counts) in counts.chunks_exact_mut(n).enumerate() {
        let Some(lists) = &tables.lists else { continue };
        let mut ratios = vec![T::zero(); n];
        expected.listed.add_row(lists, state, &mut ratios);
        let a = &tables.transition[state * n..(state + 1) * n];
        for ((count, ratio), a) in counts.iter_mut().zip(ratios).zip(a) {
            *count += ratio.wide() * a.wide();
        }
    }
    counts
}

pub(super) fn assert_close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < 1e-10, "{i}: {a} {b}");
    }
}

pub(super) fn params(
    parameterization: Parameterization,
    constraint: Constraint,
    tying: Tying,
) -> HmmParams {
    let (n_states, n_clusters, dim) = (12, 3, 6);
    HmmParams {
        n_states,
        n_clusters,
        dim,
        parameterization,
        constraint,
        tying,
        ..HmmParams::default()
    }
}

pub(super) fn space_of(params: &HmmParams) -> StateSpace {
    match params.constraint {
        Constraint::Brown => StateSpace::new(4, 3, CLUSTERS.to_vec()),
        _ => {
            let all = CLUSTERS.iter().map(|&c| if c == NO_CLUSTER { c } else { 0 }).collect();
            let mut space = StateSpace::new(12, 1, all);
            if params.constraint == Constraint::Uniform {
                space.lists = Some(StateLists::draw(params, space.n_slots()));
            }
            space
        }
    }
}

/// The space with sparse state lists and with dense rows, or the space alone if it has no lists.
pub(super) fn sparse_and_dense(space: &StateSpace) -> Vec<StateSpace> {
    let with = |are_short: bool| {
        let mut space = space.clone();
        space.lists.iter_mut().for_each(|lists| lists.are_short = are_short);
        space
    };
    if space.lists.is_some() { vec![with(true), with(false)] } else { vec![space.clone()] }
}

/// The mapping from weights to probabilities.
pub(super) fn mapping<T: Real>(
    params: &HmmParams,
    space: &StateSpace,
    n_tags: usize,
) -> Box<dyn TableMapping<T>> {
    match params.parameterization {
        Parameterization::Scalar => Box::new(Scalar::new(space, n_tags)),
        _ => {
            let spellings = ["a", "b", "c", "d", "e", "f", "g"];
            Box::new(Neural::new(params, space, &spellings, n_tags))
        }
    }
}

/// Checks that factors give the same probabilities as a table of transitions. Returns the tables with factors.
pub(super) fn check_factors_score_like_a_table(
    params: &HmmParams,
    space: &StateSpace,
) -> Tables<f64> {
    let mut neural = Neural::<f64>::new(params, space, &["a", "b", "c", "d", "e", "f", "g"], 0);
    let mut weights = vec![0.0; neural.layout().len()];
    neural.init(&mut weights, &mut Rng::new(1));
    let (mut table, mut factors) = (Tables::default(), Tables::default());
    neural.forward(&weights, space, &KeptStates::all(space), None, &mut table);
    neural.forward_to_factors(&weights, space, &KeptStates::all(space), None, &mut factors);
    factors.factors.as_mut().unwrap().normalize();
    assert!(factors.transition.is_empty());
    let sentences = sentences();
    let log_probs =
        |tables| ForwardBackward::default().log_probs(space, tables, &batch(&sentences, &[]));
    assert_close(&log_probs(&factors), &log_probs(&table));
    factors
}
