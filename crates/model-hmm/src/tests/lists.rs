//! Lists of states against the sum over all paths, and against rows of all states with zeros.

use super::{
    CLUSTERS, assert_close, batch, both, factors_score_as_a_table, for_each_path, params,
    random_tables, sentences, support, tags, transitions,
};
use crate::params::{Constraint, HmmParams, Parameterization, Tying, WordVectors};
use crate::recursion::expected_counts::{Engine, Expected};
use crate::space::kept_lists::KeptLists;
use crate::space::state_space::{Lists, NONE, Support};
use crate::tables::probability_tables::{Kept, Tables};
use crate::train::baum_welch::{CpuEstimator, Estimator};
use crate::train::counts::initial;
use crate::train::learner::{Choices, CpuLearner, Learner, LearnerState};
use crate::weights::mapping::Parameters;
use crate::weights::neural::Neural;
use crate::weights::scalar::Scalar;
use latens_corpus::{Vocab, WordId};
use latens_math::{Real, Rng};

/// Words whose `k` of `n` states are drawn for each, once as short lists and once as rows of all states.
fn supports(n: usize, k: usize, seed: u64) -> Vec<Support> {
    let all = CLUSTERS.iter().map(|&c| if c == NONE { c } else { 0 }).collect();
    let mut support = Support::new(n, 1, all);
    let params = HmmParams {
        n_states: n,
        n_clusters: n / k,
        constraint: Constraint::Uniform,
        seed,
        ..HmmParams::default()
    };
    support.lists = Some(Lists::draw(&params, support.n_slots()));
    both(&support)
}

/// Random probabilities of the states that take part, by lists and by rows of all states. Emissions are not
/// normalised, which the recursion does not ask for.
fn random<T: Real>(support: &Support, kept: &Kept, n_tags: usize, seed: u64) -> [Tables<T>; 2] {
    let n = kept.states.len();
    let of_kept = Support::new(n, 1, support.cluster_of().to_vec());
    let mut dense = random_tables::<T>(&of_kept, n_tags, seed);
    let lists = support.kept_lists(kept).unwrap();
    let mut listed = dense.clone();
    listed.emission = lists.gather(&dense.emission, n);
    dense.emission = lists.scatter(&listed.emission, n);
    listed.lists = Some(lists);
    [listed, dense]
}

fn expect(support: &Support, tables: &Tables<f64>, n_tags: usize) -> (Vec<f64>, Expected<f64>) {
    let sentences = sentences();
    let tags = if n_tags > 0 { tags(&sentences) } else { vec![] };
    let (batch, mut expected) = (batch(&sentences, &tags), Expected::default());
    let log_probs = Engine::default().expectations(support, tables, &batch, &mut expected);
    assert_close(&Engine::default().log_probs(support, tables, &batch), &log_probs);
    (log_probs, expected)
}

/// Expected emissions as rows of all states.
fn emitted(support: &Support, tables: &Tables<f64>, expected: &Expected<f64>) -> Vec<f64> {
    let n = tables.n_states();
    let mut rows = vec![0.0; support.n_slots() * n];
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
    support: &Support,
    a: (&Tables<f64>, &Expected<f64>),
    b: (&Tables<f64>, &Expected<f64>),
) {
    assert_close(&a.1.start, &b.1.start);
    assert_close(&a.1.left, &b.1.left);
    assert_close(&a.1.tags, &b.1.tags);
    assert_close(&transitions(a.0, a.1), &transitions(b.0, b.1));
    assert_close(&emitted(support, a.0, a.1), &emitted(support, b.0, b.1));
}

#[test]
fn lists_and_rows_with_zeros_expect_the_same() {
    for (n, k, dropout, n_tags) in [
        (12, 4, 0.0, 0),
        (12, 4, 0.5, 3),
        (30, 3, 0.5, 0),
        (40, 5, 0.25, 3),
        (7, 7, 0.0, 0),
        (9, 1, 0.5, 0),
    ] {
        let support = &supports(n, k, n as u64)[0];
        let kept = Kept::draw(support, dropout, &mut Rng::new(2));
        let [listed, dense] = random(support, &kept, n_tags, 3);
        let a = expect(support, &listed, n_tags);
        let b = expect(support, &dense, n_tags);
        assert_close(&a.0, &b.0);
        assert_same(support, (&listed, &a.1), (&dense, &b.1));
    }
}

#[test]
fn lists_agree_with_the_sum_over_all_paths() {
    for dropout in [0.0, 0.4] {
        let support = &supports(6, 3, 4)[0];
        let kept = Kept::draw(support, dropout, &mut Rng::new(3));
        let [tables, _] = random(support, &kept, 3, 5);
        let (log_probs, expected) = expect(support, &tables, 3);
        let (n, sentences) = (tables.n_states(), sentences());
        let tags = tags(&sentences);
        let (mut start, mut pairs) = (vec![0.0; n], vec![0.0; n * n]);
        let mut words = vec![0.0; support.n_slots() * n];
        for (s, sentence) in sentences.iter().enumerate() {
            let mut total = 0.0;
            for_each_path(support, &tables, sentence, &tags[s], |_, p| total += p);
            assert!((log_probs[s] - total.ln()).abs() < 1e-10);
            for_each_path(support, &tables, sentence, &tags[s], |path, p| {
                for (t, &state) in path.iter().enumerate().filter(|_| p > 0.0) {
                    words[support.slot(sentence[t]).unwrap() * n + state] += p / total;
                    match t {
                        0 => start[state] += p / total,
                        _ => pairs[path[t - 1] * n + state] += p / total,
                    }
                }
            });
        }
        assert_close(&expected.start, &start);
        assert_close(&transitions(&tables, &expected), &pairs);
        assert_close(&emitted(support, &tables, &expected), &words);
    }
}

#[test]
fn unlikely_and_impossible_sentences_are_the_same_by_lists() {
    let support = &supports(12, 3, 6)[0];
    let [mut listed, mut dense] = random::<f64>(support, &Kept::all(support), 0, 7);
    for tables in [&mut listed, &mut dense] {
        // The same factor for all transitions: every path of a sentence has as many.
        tables.transition.iter_mut().for_each(|a| *a *= 1e-40);
    }
    let (a, b) = (expect(support, &listed, 0), expect(support, &dense, 0));
    assert!(!a.1.counts.is_empty() && a.0.iter().all(|log_prob| log_prob.is_finite()));
    assert_close(&a.0, &b.0);
    assert_same(support, (&listed, &a.1), (&dense, &b.1));

    let sentences = [vec![WordId(2), WordId(3), WordId(1)]];
    let mut expected = Expected::default();
    let log_probs =
        Engine::default().expectations(support, &listed, &batch(&sentences, &[]), &mut expected);
    assert_eq!(log_probs, [f64::NEG_INFINITY]);
    assert!(expected.slots.is_empty() && transitions(&listed, &expected).iter().all(|&n| n == 0.0));
}

fn parameters<T: Real>(params: &HmmParams, support: &Support) -> Box<dyn Parameters<T>> {
    match params.parameterization {
        Parameterization::Scalar => Box::new(Scalar::new(support, 3)),
        _ => Box::new(Neural::new(params, support, &["a", "b", "c", "d", "e", "f", "g"], 3)),
    }
}

#[test]
fn parameterizations_learn_the_same_by_lists() {
    use Parameterization::{Factored, Neural, Scalar};
    // 150 numbers are two strips of them and something.
    for (parameterization, word_vectors, dropout, dim) in [
        (Neural, WordVectors::Words, 0.0, 150),
        (Neural, WordVectors::Chars, 0.5, 64),
        (Factored, WordVectors::Words, 0.5, 6),
        (Scalar, WordVectors::Words, 0.5, 6),
        (Scalar, WordVectors::Words, 0.0, 6),
    ] {
        let params = params(parameterization, Constraint::Uniform, Tying::Shared);
        let params = HmmParams { word_vectors, dim, ..params };
        let [listed, dense] = both(&support(&params)).try_into().unwrap();
        let kept = Kept::draw(&listed, dropout, &mut Rng::new(5));
        let sentences = sentences();
        let tags = tags(&sentences);
        let learn = |support: &Support| {
            let mut parameters = parameters::<f64>(&params, support);
            let mut weights = vec![0.0; parameters.layout().len()];
            parameters.init(&mut weights, &mut Rng::new(1));
            let (mut tables, mut expected) = (Tables::default(), Expected::default());
            parameters.forward(&weights, support, &kept, None, &mut tables);
            assert_eq!(tables.lists.is_some(), support.lists.as_ref().unwrap().are_short);
            let mut rows = tables.clone();
            rows.list_all_states();
            Engine::default().expectations(
                support,
                &tables,
                &batch(&sentences, &tags),
                &mut expected,
            );
            let mut gradient = vec![0.0; weights.len()];
            parameters.backward(&weights, support, &kept, &mut tables, &expected, &mut gradient);
            (rows.emission, gradient)
        };
        let (a, b) = (learn(&listed), learn(&dense));
        assert_close(&a.0, &b.0);
        assert_close(&a.1, &b.1);
    }
}

#[test]
fn steps_and_scores_are_the_same_by_lists() {
    let params = params(Parameterization::Neural, Constraint::Uniform, Tying::Shared);
    let params = HmmParams { word_vectors: WordVectors::Chars, ..params };
    let words = ["<unk>", "<eos>", "a", "b", "c", "d", "e", "f"];
    // `<unk>` was never seen, and so has room made for it.
    let vocab = Vocab::from_parts(words, vec![0, 9, 1, 1, 2, 1, 3, 1]).unwrap();
    let support = both(&support(&params).with_unknown(&params, &vocab));
    assert!(support[0].unknown.is_some());
    let sentences = sentences();
    let learn = |support: &Support| {
        let parameters =
            Box::new(Neural::new(&params, support, &["<unk>", "a", "b", "c", "d", "e", "f"], 0));
        let mut weights = vec![0.0; Parameters::<f32>::layout(&*parameters).len()];
        parameters.init(&mut weights, &mut Rng::new(1));
        let mut learner = CpuLearner::new(&params, support, parameters, LearnerState::new(weights));
        for _ in 0..3 {
            let kept = Kept::draw(support, 0.5, &mut Rng::new(5));
            let choices = Choices { kept, dropout: None };
            learner.begin_step(&batch(&sentences, &[]), &(), &choices, 0.01).unwrap();
        }
        (learner.end_step().unwrap(), learner.log_prob(&[batch(&sentences, &[])]).unwrap())
    };
    let (a, b) = (learn(&support[0]), learn(&support[1]));
    assert!(
        (a.0 - b.0).abs() < 1e-4 * b.0.abs() && (a.1 - b.1).abs() < 1e-4 * b.1.abs(),
        "{a:?} {b:?}"
    );
}

#[test]
fn estimates_are_the_same_by_lists() {
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
    let estimate = |support: &Support| {
        let mut estimator = CpuEstimator::new(support, 3, initial(&params, support, &vocab, 3));
        let mut log_probs = vec![];
        for _ in 0..3 {
            estimator.expect(&batch(&sentences, &tags)).unwrap();
            log_probs.push(estimator.log_prob().unwrap());
            estimator.maximize(0.1).unwrap();
        }
        log_probs.push(estimator.score(&[batch(&sentences, &[])]).unwrap());
        (log_probs, estimator.tables().unwrap())
    };
    let [listed, dense] = supports(12, 3, 8).try_into().unwrap();
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
fn scores_by_lists_need_no_table_of_transitions() {
    let params = params(Parameterization::Neural, Constraint::Uniform, Tying::Shared);
    let support = both(&support(&params)).swap_remove(0);
    assert!(factors_score_as_a_table(&params, &support).lists.is_some());
}

#[test]
fn what_dropout_leaves_of_lists_is_what_they_share_with_it() {
    let support = &supports(30, 3, 9)[0];
    let lists = support.lists.as_ref().unwrap();
    let kept = Kept::draw(support, 0.5, &mut Rng::new(1));
    let left = KeptLists::new(lists, 30, &kept);
    let numbers: Vec<f64> = (0..support.n_slots() * kept.k).map(|i| i as f64).collect();
    let own = left.scatter(&left.gather(&numbers, kept.k), kept.k);
    for slot in 0..support.n_slots() {
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
