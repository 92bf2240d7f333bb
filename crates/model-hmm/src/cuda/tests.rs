//! The device against the processor. Without a device there is nothing to compare, and the tests pass.

use super::*;
use crate::em::{CpuEstimator, Estimator};
use crate::learner::CpuLearner;
use crate::params::{Constraint, Parameterization, Tying};
use crate::tables::Tables;
use latens_corpus::{Vocab, WordId};
use latens_math::Rng;

/// Sentences of random words.
fn sentences(n_words: usize, n: usize, rng: &mut Rng) -> Vec<Vec<WordId>> {
    let mut below = |n: usize| (rng.uniform() * n as f64) as usize;
    (0..n).map(|_| (0..1 + below(12)).map(|_| WordId::from(below(n_words))).collect()).collect()
}

/// How much gradients may differ, relative to their length.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::Full => 1e-4,
        // bf16 has 8 significant bits.
        Precision::Fast => 1e-2,
    }
}

fn compare(params: &HmmParams, n_words: usize, seed: u64) {
    for precision in [Precision::Full, Precision::Fast] {
        compare_with(precision, params, n_words, seed);
    }
}

fn compare_with(precision: Precision, params: &HmmParams, n_words: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    let n_clusters = if params.constraint == Constraint::None { 1 } else { params.n_clusters };
    let clusters = (0..n_words).map(|word| (word % n_clusters) as u32).collect();
    let support = Support::new(params.n_states / n_clusters, n_clusters, clusters);
    let spellings = vec!["word"; n_words];
    let neural = || Neural::<f32>::new(params, &support, &spellings, 0);
    let mut weights = vec![0.0; neural().layout().len()];
    neural().init(&mut weights, &mut rng);
    let state = LearnerState::new(weights);
    let mut cuda = match CudaLearner::new(params, &support, &neural(), &state, precision) {
        Ok(learner) => learner,
        Err(CudaError::NoLibrary { .. } | CudaError::NoDevice) => return,
        Err(error) => panic!("{error}"),
    };
    let mut cpu = CpuLearner::new(params, &support, Box::new(neural()), state);

    let sentences = sentences(n_words, 20, &mut rng);
    let batch = Batch { sentences: sentences.iter().map(|s| &s[..]).collect(), tags: vec![] };
    let kept = Kept::draw(&support, params.state_dropout, &mut rng);
    // Later weights differ more: Adam makes much of small derivatives, whose signs are a matter of rounding.
    for i in 0..3 {
        let a = step(&mut cpu, &batch, &kept);
        let b = step(&mut cuda, &batch, &kept);
        assert!(
            (a - b).abs() < 0.1 * tolerance(precision) * a.abs(),
            "ln p of a step: {a} and {b}"
        );
        let gradient = cuda.device.download(&cuda.learned.gradient).unwrap();
        if i > 0 && precision == Precision::Fast {
            continue;
        }
        assert_near(&gradient, cpu.gradient(), tolerance(precision));
    }
    let (a, b) =
        (cpu.log_prob(std::slice::from_ref(&batch)).unwrap(), cuda.log_prob(&[batch]).unwrap());
    // Three steps of Adam make much of small derivatives, whose signs are a matter of rounding.
    assert!((a - b).abs() < 10.0 * tolerance(precision) * a.abs(), "ln p after steps: {a} and {b}");
    assert_eq!(cuda.state().n_steps, 3);
}

fn step<L: Learner>(learner: &mut L, batch: &Batch<'_>, kept: &Kept) -> f64 {
    let choices = Choices { kept: kept.clone(), dropout: None };
    let plan = learner.plan(batch);
    learner.begin_step(batch, &plan, &choices, 0.01).unwrap();
    learner.end_step().unwrap()
}

fn assert_near(a: &[f32], b: &[f32], tolerance: f64) {
    let norm =
        |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let difference = norm(&mut a.iter().zip(b).map(|(a, b)| a - b));
    let length = norm(&mut b.iter().copied());
    assert!(difference <= tolerance * length, "gradients differ by {difference} of {length}");
}

#[test]
fn steps_are_those_of_the_processor() {
    let base = HmmParams { dim: 16, clip: 5.0, ..HmmParams::default() };
    for (n_states, n_clusters, state_dropout, n_words, seed) in [
        (24, 3, 0.0, 11, 1),
        (24, 3, 0.5, 11, 2),
        (256, 4, 0.5, 150, 3),
        (70, 7, 0.0, 40, 4),
        (2048, 2, 0.0, 300, 5),
    ] {
        let params = HmmParams { n_states, n_clusters, state_dropout, ..base.clone() };
        compare(&params, n_words, seed);
    }
}

#[test]
fn all_kinds_of_state_vectors_learn_alike() {
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
            state_dropout: 0.25,
            ..HmmParams::default()
        };
        compare(&params, 60, 6);
    }
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
    (log_probs, estimator.tables())
}

#[test]
fn estimates_are_those_of_the_processor() {
    for (n_states, n_clusters, n_words, seed, precision) in [
        (12, 3, 20, 1, Precision::Full),
        (64, 4, 60, 2, Precision::Full),
        (40, 1, 30, 3, Precision::Full),
        (257, 1, 90, 4, Precision::Full),
        (256, 2, 100, 5, Precision::Full),
        (256, 1, 90, 6, Precision::Fast),
    ] {
        let mut rng = Rng::new(seed);
        let params = HmmParams { n_states, n_clusters, seed, ..HmmParams::default() };
        let clusters = (0..n_words).map(|word| (word % n_clusters) as u32).collect();
        let support = Support::new(n_states / n_clusters, n_clusters, clusters);
        let special = ["<unk>".to_owned(), "<eos>".to_owned()].into_iter();
        let words: Vec<String> =
            special.chain((2..n_words).map(|word| format!("w{word}"))).collect();
        let vocab = Vocab::from_parts(words, vec![1; n_words]).unwrap();
        let tables = crate::em::initial(&params, &support, &vocab, 0);
        let sentences = sentences(n_words, 30, &mut rng);
        let batches = [&sentences[..20], &sentences[20..]].map(|part| Batch {
            sentences: part.iter().map(|sentence| &sentence[..]).collect(),
            tags: vec![],
        });
        let cuda = match CudaEstimator::new(&support, &tables, precision) {
            Ok(estimator) => estimate(estimator, &batches),
            Err(CudaError::NoLibrary { .. } | CudaError::NoDevice) => return,
            Err(error) => panic!("{error}"),
        };
        let cpu = estimate(CpuEstimator::new(&support, 0, tables), &batches);
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
            assert_near(b, a, tolerance(precision));
        }
    }
}
