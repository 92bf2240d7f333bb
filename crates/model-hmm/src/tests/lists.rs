//! State lists against the sum over all paths, and against dense rows with zeros.

use super::toy::{
    CLUSTERS, assert_close, batch, check_factors_score_like_a_table, expected_transitions,
    for_each_path, mapping, params, random_tables, sentences, space_of, sparse_and_dense, tags,
};
use crate::params::{Constraint, HmmParams, Parameterization, Tying, WordEmbedding};
use crate::recursion::forward_backward::ForwardBackward;
use crate::space::clusters::NO_CLUSTER;
use crate::space::kept_lists::KeptLists;
use crate::space::kept_states::KeptStates;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use crate::steps::counts::initial;
use crate::steps::estimator::{CpuEstimator, Estimator};
use crate::steps::learner::{Choices, CpuLearner, DeviceLearner, LearnerState};
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use crate::weights::mapping::TableMapping;
use crate::weights::neural::Neural;
use latens_corpus::{Vocab, WordId};
use latens_math::{Real, Rng};

/// A space with `k` random states of `n` per word, with sparse lists and with dense rows.
fn random_spaces(n: usize, k: usize, seed: u64) -> Vec<StateSpace> {
    let all = CLUSTERS.iter().map(|&c| if c == NO_CLUSTER { c } else { 0 }).collect();
    let mut space = StateSpace::new(n, 1, all);
    let params = HmmParams {
        n_states: n,
        n_clusters: n / k,
        constraint: Constraint::Uniform,
        seed,
        ..HmmParams::default()
    };
    space.lists = Some(StateLists::draw(&params, space.n_slots()));
    sparse_and_dense(&space)
}

/// Random probabilities of the kept states, as sparse lists and as dense rows. Emissions are not normalized, which the
/// recursion does not need.
fn random<T: Real>(
    space: &StateSpace,
    kept: &KeptStates,
    n_tags: usize,
    seed: u64,
) -> [Tables<T>; 2] {
    let n = kept.states.len();
    let of_kept = StateSpace::new(n, 1, space.cluster_of().to_vec());
    let mut dense = random_tables::<T>(&of_kept, n_tags, seed);
    let lists = KeptLists::short(space, kept).unwrap();
    let mut listed = dense.clone();
    listed.emission = lists.gather(&dense.emission, n);
    dense.emission = lists.scatter(&listed.emission, n);
    listed.lists = Some(lists);
    [listed, dense]
}

fn expect(
    space: &StateSpace,
    tables: &Tables<f64>,
    n_tags: usize,
) -> (Vec<f64>, ExpectedCounts<f64>) {
    let sentences = sentences();
    let tags = if n_tags > 0 { tags(&sentences) } else { vec![] };
    let (batch, mut expected) = (batch(&sentences, &tags), ExpectedCounts::default());
    let log_probs =
        ForwardBackward::default().expected_counts(space, tables, &batch, &mut expected);
    assert_close(&ForwardBackward::default().log_probs(space, tables, &batch), &log_probs);
    (log_probs, expected)
}

/// Expected emissions as dense rows.
fn emitted(space: &StateSpace, tables: &Tables<f64>, expected: &ExpectedCounts<f64>) -> Vec<f64> {
    let n = tables.n_states();
    let mut rows = vec![0.0; space.n_slots() * n];
    let mut rest = &expected.emission[..];
    for &slot in &expected.slots {
        let states = tables.states(if tables.lists.is_some() { slot as usize } else { 0 });
        for (&state, &count) in states.list(n).iter().zip(rest) {
            rows[slot as usize * n + state as usize] = count;
        }
        rest = &rest[states.len(n)..];
    }
    assert!(rest.is_empty());
    rows
}

fn assert_same(
    space: &StateSpace,
    a: (&Tables<f64>, &ExpectedCounts<f64>),
    b: (&Tables<f64>, &ExpectedCounts<f64>),
) {
    assert_close(&a.1.start, &b.1.start);
    assert_close(&a.1.departures, &b.1.departures);
    assert_close(&a.1.tags, &b.1.tags);
    assert_close(&expected_transitions(a.0, a.1), &expected_transitions(b.0, b.1));
    assert_close(&emitted(space, a.0, a.1), &emitted(space, b.0, b.1));
}

#[test]
fn lists_and_dense_rows_have_the_same_expected_counts() {
    for (n, k, dropout, n_tags) in [
        (12, 4, 0.0, 0),
        (12, 4, 0.5, 3),
        (30, 3, 0.5, 0),
        (40, 5, 0.25, 3),
        (7, 7, 0.0, 0),
        (9, 1, 0.5, 0),
        // Products go in chunks of 16 states.
        (32, 4, 0.0, 0),
        (64, 4, 0.5, 3),
        (160, 20, 0.2, 0),
    ] {
        let space = &random_spaces(n, k, n as u64)[0];
        let kept = KeptStates::draw(space, dropout, &mut Rng::new(2));
        let [listed, dense] = random(space, &kept, n_tags, 3);
        let a = expect(space, &listed, n_tags);
        let b = expect(space, &dense, n_tags);
        assert_close(&a.0, &b.0);
        assert_same(space, (&listed, &a.1), (&dense, &b.1));
    }
}

#[test]
fn lists_agree_with_the_sum_over_all_paths() {
    for dropout in [0.0, 0.4] {
        let space = &random_spaces(6, 3, 4)[0];
        let kept = KeptStates::draw(space, dropout, &mut Rng::new(3));
        let [tables, _] = random(space, &kept, 3, 5);
        let (log_probs, expected) = expect(space, &tables, 3);
        let (n, sentences) = (tables.n_states(), sentences());
        let tags = tags(&sentences);
        let (mut start, mut pairs) = (vec![0.0; n], vec![0.0; n * n]);
        let mut words = vec![0.0; space.n_slots() * n];
        for (s, sentence) in sentences.iter().enumerate() {
            let mut total = 0.0;
            for_each_path(space, &tables, sentence, &tags[s], |_, p| total += p);
            assert!((log_probs[s] - total.ln()).abs() < 1e-10);
            for_each_path(space, &tables, sentence, &tags[s], |path, p| {
                for (t, &state) in path.iter().enumerate().filter(|_| p > 0.0) {
                    words[space.slot(sentence[t]).unwrap() * n + state] += p / total;
                    match t {
                        0 => start[state] += p / total,
                        _ => pairs[path[t - 1] * n + state] += p / total,
                    }
                }
            });
        }
        assert_close(&expected.start, &start);
        assert_close(&expected_transitions(&tables, &expected), &pairs);
        assert_close(&emitted(space, &tables, &expected), &words);
    }
}

#[test]
fn lists_handle_underflow_and_impossible_sentences_like_dense_rows() {
    let space = &random_spaces(12, 3, 6)[0];
    let [mut listed, mut dense] = random::<f64>(space, &KeptStates::all(space), 0, 7);
    for tables in [&mut listed, &mut dense] {
        // All paths of a sentence have equally many transitions, so a common factor changes no posterior.
        tables.transition.iter_mut().for_each(|a| *a *= 1e-40);
    }
    let (a, b) = (expect(space, &listed, 0), expect(space, &dense, 0));
    assert!(!a.1.counts.is_empty() && a.0.iter().all(|log_prob| log_prob.is_finite()));
    assert_close(&a.0, &b.0);
    assert_same(space, (&listed, &a.1), (&dense, &b.1));

    let sentences = [vec![WordId(2), WordId(3), WordId(1)]];
    let mut expected = ExpectedCounts::default();
    let log_probs = ForwardBackward::default().expected_counts(
        space,
        &listed,
        &batch(&sentences, &[]),
        &mut expected,
    );
    assert_eq!(log_probs, [f64::NEG_INFINITY]);
    assert!(
        expected.slots.is_empty()
            && expected_transitions(&listed, &expected).iter().all(|&n| n == 0.0)
    );
}

#[test]
fn gradients_of_lists_and_dense_rows_agree() {
    use Parameterization::{Factored, Neural, Scalar};
    // 150 columns are two full strips of the kernels and a rest.
    for (parameterization, word_vectors, dropout, dim) in [
        (Neural, WordEmbedding::Words, 0.0, 150),
        (Neural, WordEmbedding::Chars, 0.5, 64),
        (Factored, WordEmbedding::Words, 0.5, 6),
        (Scalar, WordEmbedding::Words, 0.5, 6),
        (Scalar, WordEmbedding::Words, 0.0, 6),
    ] {
        let params = params(parameterization, Constraint::Uniform, Tying::Shared);
        let params = HmmParams { word_vectors, dim, ..params };
        let [listed, dense] = sparse_and_dense(&space_of(&params)).try_into().unwrap();
        let kept = KeptStates::draw(&listed, dropout, &mut Rng::new(5));
        let sentences = sentences();
        let tags = tags(&sentences);
        let learn = |space: &StateSpace| {
            let mut mapping = mapping::<f64>(&params, space, 3);
            let mut weights = vec![0.0; mapping.layout().len()];
            mapping.init(&mut weights, &mut Rng::new(1));
            let (mut tables, mut expected) = (Tables::default(), ExpectedCounts::default());
            mapping.forward(&weights, space, &kept, None, &mut tables);
            assert_eq!(tables.lists.is_some(), space.lists.as_ref().unwrap().are_short);
            let mut rows = tables.clone();
            rows.expand_lists();
            ForwardBackward::default().expected_counts(
                space,
                &tables,
                &batch(&sentences, &tags),
                &mut expected,
            );
            let mut gradient = vec![0.0; weights.len()];
            mapping.backward(&weights, space, &kept, &mut tables, &expected, &mut gradient);
            (rows.emission, gradient)
        };
        let (a, b) = (learn(&listed), learn(&dense));
        assert_close(&a.0, &b.0);
        assert_close(&a.1, &b.1);
    }
}

#[test]
fn training_steps_and_scores_of_lists_and_dense_rows_agree() {
    let params = params(Parameterization::Neural, Constraint::Uniform, Tying::Shared);
    let params = HmmParams { word_vectors: WordEmbedding::Chars, ..params };
    let words = ["<unk>", "<eos>", "a", "b", "c", "d", "e", "f"];
    // The count of `<unk>` is 0, so a share of the emissions is reserved for it.
    let vocab = Vocab::from_parts(words, vec![0, 9, 1, 1, 2, 1, 3, 1]).unwrap();
    let space = sparse_and_dense(&space_of(&params).with_unknown_share(&params, &vocab));
    assert!(space[0].unknown.is_some());
    let sentences = sentences();
    let learn = |space: &StateSpace| {
        let mapping =
            Box::new(Neural::new(&params, space, &["<unk>", "a", "b", "c", "d", "e", "f"], 0));
        let mut weights = vec![0.0; TableMapping::<f32>::layout(&*mapping).len()];
        mapping.init(&mut weights, &mut Rng::new(1));
        let mut learner = CpuLearner::new(&params, space, mapping, LearnerState::new(weights));
        for _ in 0..3 {
            let kept = KeptStates::draw(space, 0.5, &mut Rng::new(5));
            let batch = batch(&sentences, &[]);
            let choices = Choices { kept, dropout: None, n_tokens: batch.n_tokens() };
            learner.begin_step(&batch, &(), &choices, 0.01).unwrap();
        }
        (learner.end_step().unwrap(), learner.log_prob(&[batch(&sentences, &[])]).unwrap())
    };
    let (a, b) = (learn(&space[0]), learn(&space[1]));
    assert!(
        (a.0 - b.0).abs() < 1e-4 * b.0.abs() && (a.1 - b.1).abs() < 1e-4 * b.1.abs(),
        "{a:?} {b:?}"
    );
}

#[test]
fn baum_welch_of_lists_and_dense_rows_agrees() {
    let words = ["<unk>", "<eos>", "a", "b", "c", "d", "e", "f"];
    let vocab = Vocab::from_parts(words, vec![1; words.len()]).unwrap();
    let params = HmmParams {
        n_states: 12,
        n_clusters: 4,
        constraint: Constraint::Uniform,
        ..HmmParams::default()
    };
    let sentences = sentences();
    let tags = tags(&sentences);
    let estimate = |space: &StateSpace| {
        let mut estimator = CpuEstimator::new(space, 3, initial(&params, space, &vocab, 3));
        let mut log_probs = vec![];
        for _ in 0..3 {
            estimator.expect(&batch(&sentences, &tags)).unwrap();
            log_probs.push(estimator.log_prob().unwrap());
            estimator.maximize(0.1).unwrap();
        }
        log_probs.push(estimator.score(&[batch(&sentences, &[])]).unwrap());
        (log_probs, estimator.tables().unwrap())
    };
    let [listed, dense] = random_spaces(12, 3, 8).try_into().unwrap();
    let (a, b) = (estimate(&listed), estimate(&dense));
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-5 * b.abs().max(1e-3);
    assert!(a.0.iter().zip(&b.0).all(|(&a, &b)| near(a, b)), "{:?} {:?}", a.0, b.0);
    for (a, b) in [
        (&a.1.start, &b.1.start),
        (&a.1.transition, &b.1.transition),
        (&a.1.emission, &b.1.emission),
        (&a.1.tags, &b.1.tags),
    ] {
        assert_eq!(a.len(), b.len());
        assert!(a.iter().zip(b).all(|(&a, &b)| near(f64::from(a), f64::from(b))));
    }
}

#[test]
fn factors_score_like_a_table_of_transitions_with_lists() {
    let params = params(Parameterization::Neural, Constraint::Uniform, Tying::Shared);
    let space = sparse_and_dense(&space_of(&params)).swap_remove(0);
    assert!(check_factors_score_like_a_table(&params, &space).lists.is_some());
}

#[test]
fn kept_lists_are_the_intersections_with_the_kept_states() {
    let space = &random_spaces(30, 3, 9)[0];
    let lists = space.lists.as_ref().unwrap();
    let kept = KeptStates::draw(space, 0.5, &mut Rng::new(1));
    let left = KeptLists::new(lists, 30, &kept);
    let numbers: Vec<f64> = (0..space.n_slots() * kept.k).map(|i| i as f64).collect();
    let own = left.scatter(&left.gather(&numbers, kept.k), kept.k);
    for slot in 0..space.n_slots() {
        let states: Vec<u32> = left.of(slot).iter().map(|&i| kept.states[i as usize]).collect();
        let shared = lists.of(slot).iter().copied().filter(|state| kept.states.contains(state));
        assert!(!states.is_empty() && shared.eq(states));
        for i in 0..kept.k {
            let is_own = left.of(slot).contains(&(i as u32));
            assert_eq!(
                own[slot * kept.k + i],
                if is_own { numbers[slot * kept.k + i] } else { 0.0 }
            );
        }
    }
}
