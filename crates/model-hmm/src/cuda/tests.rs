//! The device against the CPU. Without a device the tests are skipped.

use crate::cuda::baum_welch::CudaEstimator;
use crate::cuda::device_model::CudaLearner;
use crate::cuda::plan::batch_plan::BatchPlan;
use crate::cuda::plan::kept_plan::KeptPlan;
use crate::params::{Constraint, HmmParams, Parameterization, Tying};
use crate::recursion::batch::Batch;
use crate::space::kept_states::KeptStates;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use crate::steps::estimator::{CpuEstimator, Estimator};
use crate::steps::learner::{Choices, CpuLearner, DeviceLearner, LearnerState};
use crate::tables::probability_tables::Tables;
use crate::weights::mapping::TableMapping;
use crate::weights::neural::Neural;
use crate::weights::scalar::Scalar;
use latens_corpus::{Vocab, WordId};
use latens_cuda::{CudaError, Precision};
use latens_math::Rng;

/// Sentences of random words.
pub(crate) fn sentences(n_words: usize, n: usize, rng: &mut Rng) -> Vec<Vec<WordId>> {
    let mut below = |n: usize| (rng.uniform() * n as f64) as usize;
    (0..n).map(|_| (0..1 + below(12)).map(|_| WordId::from(below(n_words))).collect()).collect()
}

/// The tolerance of gradients, relative to their norm.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::Full => 1e-4,
        // bf16 has 8 significant bits.
        Precision::Fast => 1e-2,
    }
}

fn compare(params: &HmmParams, n_words: usize, seed: u64) {
    for precision in [Precision::Full, Precision::Fast] {
        compare_with(precision, params, n_words, seed, |_| {});
    }
}

/// Moves the words of sentences to words of few of the six clusters, of which a word has the remainder of its index:
/// transitions start from clusters 4 and 1 only, the last words are of cluster 2, and there are no words of the others.
fn use_few_clusters(sentences: &mut Vec<Vec<WordId>>) {
    for sentence in sentences {
        let last = sentence.len() - 1;
        for (i, word) in sentence.iter_mut().enumerate() {
            let (of, cluster) = (word.index() / 6 * 6, word.index() % 6);
            let cluster = if i == last { 2 } else { [1, 4][cluster % 2] };
            *word = WordId::from(of + cluster);
        }
    }
}

/// A state space whose words take turns in the clusters, or have random state lists.
fn space(params: &HmmParams, n_words: usize) -> StateSpace {
    let n_clusters = if params.constraint == Constraint::Brown { params.n_clusters } else { 1 };
    let clusters = (0..n_words).map(|word| (word % n_clusters) as u32).collect();
    let mut space = StateSpace::new(params.n_states / n_clusters, n_clusters, clusters);
    if params.constraint == Constraint::Uniform {
        space.lists = Some(StateLists::draw(params, n_words));
    }
    space
}

fn mapping(params: &HmmParams, space: &StateSpace) -> Box<dyn TableMapping<f32>> {
    match params.parameterization {
        Parameterization::Scalar => Box::new(Scalar::new(space, 0)),
        _ => Box::new(Neural::new(params, space, &vec!["word"; space.n_slots()], 0)),
    }
}

/// Says once on stderr, past the test harness, that tests on a device are skipped.
pub(crate) fn skip(error: &CudaError) {
    use std::io::Write;
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let _ = writeln!(std::io::stderr(), "skipping the tests on a CUDA device: {error}");
    });
}

/// A learner on the device; `None` without a device.
fn cuda<'a>(
    params: &'a HmmParams,
    space: &'a StateSpace,
    state: &LearnerState,
    precision: Precision,
) -> Option<CudaLearner<'a>> {
    let mapping = mapping(params, space);
    match CudaLearner::new(params, space, mapping.layout(), state, precision) {
        Ok(learner) => Some(learner),
        Err(error) if error.is_unavailable() => {
            skip(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn first_state(params: &HmmParams, space: &StateSpace, rng: &mut Rng) -> LearnerState {
    let mapping = mapping(params, space);
    let mut weights = vec![0.0; mapping.layout().len()];
    mapping.init(&mut weights, rng);
    LearnerState::new(weights)
}

/// Compares three steps with a batch of random sentences, which `change` may change.
fn compare_with(
    precision: Precision,
    params: &HmmParams,
    n_words: usize,
    seed: u64,
    change: fn(&mut Vec<Vec<WordId>>),
) {
    let mut rng = Rng::new(seed);
    let space = space(params, n_words);
    let state = first_state(params, &space, &mut rng);
    let Some(mut cuda) = cuda(params, &space, &state, precision) else { return };
    let first = state.weights.clone();
    let mut cpu = CpuLearner::new(params, &space, mapping(params, &space), state);

    let mut sentences = sentences(n_words, 20, &mut rng);
    change(&mut sentences);
    let batch = Batch { sentences: sentences.iter().map(|s| &s[..]).collect(), tags: vec![] };
    let kept = KeptStates::draw(&space, params.state_dropout.unwrap_or(0.0), &mut rng);
    // Adam normalizes small derivatives, whose signs depend on rounding. Compares how weights moved only where derivatives
    // exceed the rounding errors.
    let mut is_clear = vec![true; first.len()];
    for i in 0..3 {
        // Derivatives with 8 significant bits let the weights drift, so every step is also compared with a CPU step from
        // the same weights.
        let state = cuda.state().unwrap();
        let mut same = CpuLearner::new(params, &space, mapping(params, &space), state);
        let (a, b) =
            (step(&mut same, &batch, &kept, params), step(&mut cuda, &batch, &kept, params));
        // Later gradients are smaller relative to their terms.
        let share = if i > 0 && precision == Precision::Fast { 3.0 } else { 1.0 };
        assert!(
            (a - b).abs() < 0.1 * share * tolerance(precision) * a.abs(),
            "ln p of step {i}, {precision:?}, {params:?}: {a} and {b}"
        );
        let gradient = cuda.device.download(&cuda.learned.gradient).unwrap();
        let what = format!("gradient of step {i}, {precision:?}, {params:?}");
        match precision {
            Precision::Full => assert_near(&what, &gradient, same.gradient(), tolerance(precision)),
            // A hidden unit within a rounding error of zero passes its derivative on one side and not on the other, which
            // changes the gradient of its weights altogether.
            Precision::Fast => {
                let (a, b) = without_most_different(&gradient, same.gradient(), 0.02);
                assert_near(&what, &a, &b, share * tolerance(precision));
                assert_near(&what, &gradient, same.gradient(), 0.2);
            }
        }

        let a = step(&mut cpu, &batch, &kept, params);
        let clear = 10.0 * tolerance(precision) * root_mean_square(cpu.gradient());
        is_clear.iter_mut().zip(cpu.gradient()).for_each(|(is_clear, derivative)| {
            *is_clear &= f64::from(derivative.abs()) > clear;
        });
        if precision == Precision::Full {
            assert!((a - b).abs() < 0.1 * tolerance(precision) * a.abs(), "ln p: {a} and {b}");
            assert_near(&what, &gradient, cpu.gradient(), tolerance(precision));
        }
        // Scoring uses all states and must not affect the next step.
        cuda.log_prob(std::slice::from_ref(&batch)).unwrap();
    }
    let (a, b) =
        (cpu.log_prob(std::slice::from_ref(&batch)).unwrap(), cuda.log_prob(&[batch]).unwrap());
    assert!((a - b).abs() < 10.0 * tolerance(precision) * a.abs(), "ln p after steps: {a} and {b}");
    assert_eq!(cuda.state().unwrap().n_steps, 3);
    let moved = |weights: Vec<f32>| {
        let moves = weights.iter().zip(&first).zip(&is_clear);
        moves.filter(|(_, is_clear)| **is_clear).map(|((a, b), _)| a - b).collect::<Vec<_>>()
    };
    let (on_device, on_cpu) = (moved(cuda.weights().unwrap()), moved(cpu.weights().unwrap()));
    assert!(on_cpu.len() > first.len() / 20, "{} of {} are compared", on_cpu.len(), first.len());
    let what = format!("moves of weights, {precision:?}, {params:?}");
    assert_near(&what, &on_device, &on_cpu, 10.0 * tolerance(precision));
}

/// Both arrays without the given share of elements, those that differ most.
fn without_most_different(a: &[f32], b: &[f32], share: f64) -> (Vec<f32>, Vec<f32>) {
    let mut pairs: Vec<(f32, f32)> = a.iter().copied().zip(b.iter().copied()).collect();
    pairs.sort_by(|(a, b), (c, d)| (a - b).abs().total_cmp(&(c - d).abs()));
    pairs.truncate(pairs.len() - (pairs.len() as f64 * share) as usize);
    pairs.into_iter().unzip()
}

fn root_mean_square(values: &[f32]) -> f64 {
    let sum: f64 = values.iter().map(|&value| f64::from(value).powi(2)).sum();
    (sum / values.len() as f64).sqrt()
}

fn step<L: DeviceLearner>(
    learner: &mut L,
    batch: &Batch<'_>,
    kept: &KeptStates,
    params: &HmmParams,
) -> f64 {
    // Weights of many dimensions change logits more.
    let learning_rate = if params.dim < 256 { 0.01 } else { 0.001 };
    let choices = Choices { kept: kept.clone(), dropout: None, n_tokens: batch.n_tokens() };
    let plan = learner.plan(batch, kept);
    learner.begin_step(batch, &plan, &choices, learning_rate).unwrap();
    learner.end_step().unwrap()
}

fn assert_near(what: &str, a: &[f32], b: &[f32], tolerance: f64) {
    let norm =
        |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let difference = norm(&mut a.iter().zip(b).map(|(a, b)| a - b));
    let length = norm(&mut b.iter().copied());
    assert!(
        difference <= tolerance * length,
        "{what}: the difference is {difference}, the norm {length}"
    );
}

#[test]
fn training_steps_agree_with_the_cpu() {
    let base = HmmParams { clip: 5.0, ..HmmParams::default() };
    for (n_states, n_clusters, state_dropout, n_words, seed, dim) in [
        (24, 3, 0.0, 11, 1, 16),
        (24, 3, 0.5, 11, 2, 16),
        (256, 4, 0.5, 150, 3, 16),
        (256, 4, 0.5, 150, 3, 17),
        (70, 7, 0.0, 40, 4, 16),
        (2048, 2, 0.0, 300, 5, 16),
    ] {
        let state_dropout = Some(state_dropout);
        let params = HmmParams { n_states, n_clusters, state_dropout, dim, ..base.clone() };
        compare(&params, n_words, seed);
    }
}

#[test]
fn all_kinds_of_state_vectors_agree_with_the_cpu() {
    for (parameterization, tying, constraint) in [
        (Parameterization::Neural, Tying::Separate, Constraint::Brown),
        (Parameterization::Factored, Tying::Shared, Constraint::Brown),
        (Parameterization::Neural, Tying::Shared, Constraint::None),
    ] {
        let params = HmmParams {
            n_states: 64,
            n_clusters: 4,
            dim: 32,
            parameterization,
            tying,
            constraint,
            state_dropout: Some(0.25),
            ..HmmParams::default()
        };
        compare(&params, 60, 6);
    }
}

/// With 48 states per cluster networks have logits in half precision, with 12 in single precision.
#[test]
fn clusters_without_tokens_agree_with_the_cpu() {
    for (parameterization, tying, n_states) in [
        (Parameterization::Neural, Tying::Shared, 288),
        (Parameterization::Neural, Tying::Shared, 72),
        (Parameterization::Neural, Tying::Separate, 288),
        (Parameterization::Factored, Tying::Shared, 288),
        (Parameterization::Factored, Tying::Shared, 72),
        (Parameterization::Scalar, Tying::Shared, 72),
    ] {
        let params = HmmParams {
            n_states,
            n_clusters: 6,
            dim: 32,
            parameterization,
            tying,
            state_dropout: Some(0.5),
            ..HmmParams::default()
        };
        for precision in [Precision::Full, Precision::Fast] {
            compare_with(precision, &params, 120, 8, use_few_clusters);
        }
    }
}

/// With 256 dimensions and a multiple of 128 kept states, devices of compute capability 9.0 write no logits.
///
/// Factored models are not compared: their first step makes transitions smaller than the lower bound of the device.
#[test]
fn steps_without_logits_agree_with_the_cpu() {
    for (n_states, n_clusters, state_dropout, change) in [
        (256, 4, 0.5, None),
        (1024, 8, 0.25, None),
        (1536, 6, 0.5, Some(use_few_clusters as fn(&mut _))),
    ] {
        let params = HmmParams {
            n_states,
            n_clusters,
            dim: 256,
            state_dropout: Some(state_dropout),
            ..HmmParams::default()
        };
        let kept = KeptStates::draw(&space(&params, 120), state_dropout, &mut Rng::new(11));
        assert!(kept.k.is_multiple_of(8) && kept.states.len().is_multiple_of(128));
        compare_with(Precision::Fast, &params, 120, 11, change.unwrap_or(|_| {}));
    }
}

/// Sentences of one word have no transitions.
#[test]
fn sentences_of_one_word_agree_with_the_cpu() {
    let params = HmmParams {
        n_states: 96,
        n_clusters: 3,
        dim: 32,
        state_dropout: Some(0.5),
        ..HmmParams::default()
    };
    for precision in [Precision::Full, Precision::Fast] {
        compare_with(precision, &params, 60, 9, |sentences| {
            sentences.iter_mut().for_each(|sentence| sentence.truncate(1));
        });
    }
}

#[test]
fn a_plan_orders_clusters_by_their_use() {
    let params = HmmParams { n_states: 48, n_clusters: 6, ..HmmParams::default() };
    let (space, mut rng) = (space(&params, 30), Rng::new(10));
    let kept = KeptStates::draw(&space, 0.5, &mut rng);
    // Words of the clusters 4, 1, 2 and 4, 1.
    let sentences =
        [[4usize, 7, 14].map(WordId::from).to_vec(), [10usize, 1].map(WordId::from).to_vec()];
    let batch = Batch { sentences: sentences.iter().map(|s| &s[..]).collect(), tags: vec![] };
    let plan = KeptPlan::by_use(&space, &batch, &kept, true);
    let order = [1u32, 4, 2, 0, 3, 5];
    assert_eq!(plan.ints[plan.clusters.clone()], order);
    assert_eq!(plan.places(), [3, 0, 2, 4, 1, 5]);
    assert_eq!((plan.k, plan.n(), plan.n_from, plan.n_emit), (4, 24, 8, 12));
    for (i, &state) in plan.ints[plan.states.clone()].iter().enumerate() {
        let cluster = order[i / 4] as usize;
        assert_eq!(state, kept.states[cluster * 4 + i % 4]);
        assert_eq!(plan.ints[plan.cluster_of.clone()][i] as usize, cluster);
        assert_eq!(state as usize / space.k, cluster);
    }
    let batch = BatchPlan::to_learn(&space, &batch, Some((&kept, plan.places())));
    let ints = |range: &std::ops::Range<usize>| &batch.ints()[range.clone()];
    assert_eq!(ints(&batch.clusters), [1, 0, 2, 1, 0]);
    // 4 → 1 twice, and 1 → 2.
    assert_eq!((ints(&batch.from), ints(&batch.to)), (&[0, 1][..], &[2, 0][..]));
}

#[test]
fn all_constraints_and_parameterizations_agree_with_the_cpu() {
    for (parameterization, constraint, state_dropout, n_states, n_clusters) in [
        (Parameterization::Neural, Constraint::Uniform, 0.0, 64, 2),
        (Parameterization::Factored, Constraint::Uniform, 0.25, 64, 2),
        (Parameterization::Scalar, Constraint::Brown, 0.5, 48, 3),
        (Parameterization::Scalar, Constraint::None, 0.0, 33, 3),
        (Parameterization::Scalar, Constraint::Uniform, 0.25, 60, 2),
        // Sparse state lists.
        (Parameterization::Neural, Constraint::Uniform, 0.0, 64, 8),
        (Parameterization::Factored, Constraint::Uniform, 0.5, 64, 8),
        (Parameterization::Neural, Constraint::Uniform, 0.5, 64, 16),
        (Parameterization::Scalar, Constraint::Uniform, 0.25, 64, 16),
    ] {
        let params = HmmParams {
            n_states,
            n_clusters,
            dim: 32,
            parameterization,
            constraint,
            state_dropout: Some(state_dropout),
            ..HmmParams::default()
        };
        compare(&params, 60, 7);
    }
}

#[test]
fn training_is_deterministic_and_resumes_from_a_checkpoint() {
    let params = HmmParams { n_states: 256, n_clusters: 4, dim: 32, ..HmmParams::default() };
    check_determinism(&params);
    check_determinism(&HmmParams { dim: 256, ..params.clone() });
    // Sparse state lists.
    let (n_clusters, constraint) = (32, Constraint::Uniform);
    check_determinism(&HmmParams { n_clusters, constraint, ..params });
}

fn check_determinism(params: &HmmParams) {
    let (space, mut rng) = (space(params, 90), Rng::new(8));
    let first = first_state(params, &space, &mut rng);
    let sentences = sentences(90, 20, &mut rng);
    let batch = Batch { sentences: sentences.iter().map(|s| &s[..]).collect(), tags: vec![] };
    let kept = KeptStates::all(&space);
    let open = |state: &LearnerState| cuda(params, &space, state, Precision::Fast);
    let (Some(mut whole), Some(mut begun)) = (open(&first), open(&first)) else { return };
    for _ in 0..4 {
        step(&mut whole, &batch, &kept, params);
    }
    for _ in 0..2 {
        step(&mut begun, &batch, &kept, params);
    }
    let middle = begun.state().unwrap();
    let mut resumed = open(&middle).unwrap();
    let mut on_cpu = CpuLearner::new(params, &space, mapping(params, &space), middle);
    for _ in 0..2 {
        let (a, b) =
            (step(&mut resumed, &batch, &kept, params), step(&mut on_cpu, &batch, &kept, params));
        assert!((a - b).abs() < 1e-2 * a.abs(), "ln p on the CPU and on the device: {a} and {b}");
    }
    assert_eq!(whole.state().unwrap(), resumed.state().unwrap(), "bit-identical states");
}

/// Two iterations of Baum–Welch, in two batches each.
fn estimate<E: Estimator>(mut estimator: E, batches: &[Batch<'_>]) -> (Vec<f64>, Tables<f32>) {
    let mut log_probs = vec![];
    for _ in 0..2 {
        batches.iter().for_each(|batch| estimator.expect(batch).unwrap());
        log_probs.push(estimator.log_prob().unwrap());
        estimator.maximize(0.1).unwrap();
    }
    log_probs.push(estimator.score(batches).unwrap());
    (log_probs, estimator.tables().unwrap())
}

#[test]
fn baum_welch_agrees_with_the_cpu() {
    use Constraint::{Brown, Uniform};
    for (n_states, n_clusters, n_words, constraint, precision) in [
        (12, 3, 20, Brown, Precision::Full),
        (64, 4, 60, Brown, Precision::Full),
        (40, 1, 30, Brown, Precision::Full),
        (257, 1, 90, Brown, Precision::Full),
        (256, 2, 100, Brown, Precision::Full),
        (256, 1, 90, Brown, Precision::Fast),
        (40, 4, 60, Uniform, Precision::Full),
        // The CPU uses sparse state lists.
        (64, 16, 100, Uniform, Precision::Full),
    ] {
        let seed = n_states as u64 + n_clusters as u64;
        let mut rng = Rng::new(seed);
        let params = HmmParams { n_states, n_clusters, constraint, seed, ..HmmParams::default() };
        let space = space(&params, n_words);
        let special = ["<unk>".to_owned(), "<eos>".to_owned()].into_iter();
        let words: Vec<String> =
            special.chain((2..n_words).map(|word| format!("w{word}"))).collect();
        let vocab = Vocab::from_parts(words, vec![1; n_words]).unwrap();
        let tables = crate::steps::counts::initial(&params, &space, &vocab, 0);
        let sentences = sentences(n_words, 30, &mut rng);
        let batches = [&sentences[..20], &sentences[20..]].map(|part| Batch {
            sentences: part.iter().map(|sentence| &sentence[..]).collect(),
            tags: vec![],
        });
        let cuda = match CudaEstimator::new(&space, &tables, precision) {
            Ok(estimator) => estimate(estimator, &batches),
            Err(error) if error.is_unavailable() => return skip(&error),
            Err(error) => panic!("{error}"),
        };
        let cpu = estimate(CpuEstimator::new(&space, 0, tables), &batches);
        for (a, b) in cpu.0.iter().zip(&cuda.0) {
            assert!(
                (a - b).abs() < tolerance(precision) * a.abs(),
                "ln p: {:?} and {:?}",
                cpu.0,
                cuda.0
            );
        }
        for (a, b) in [
            (&cpu.1.start, &cuda.1.start),
            (&cpu.1.transition, &cuda.1.transition),
            (&cpu.1.emission, &cuda.1.emission),
        ] {
            assert_eq!(a.len(), b.len());
            assert_near("probabilities", b, a, tolerance(precision));
        }
    }
}
