use super::fit::log_likelihood;
use super::params::{LdaParams, LdaSampler};
use super::sampler::{LdaState, Sampling};
use crate::counts::TypeCounts;
use crate::documents::TypedDocuments;
use latens_math::{Rng, log_sum_exp, sample_index};
use std::ops::Range;

const N_TOKENS: usize = 5;
const ALPHA: [f64; 3] = [0.5, 0.8, 0.2];
/// Three topics for each of five tokens.
const N_STATES: usize = 243;
const BETA: f64 = 0.3;
const N_TYPES: usize = 3;

fn documents() -> TypedDocuments {
    TypedDocuments::new([vec![0, 1, 2], vec![2, 0]])
}

fn topics(state: usize) -> Vec<u16> {
    (0..N_TOKENS as u32).map(|i| (state / 3usize.pow(i) % 3) as u16).collect()
}

fn log_joint(topics: &[u16]) -> f64 {
    let state = LdaState::new(&documents(), topics.to_vec(), N_TYPES, ALPHA.to_vec());
    log_likelihood(&documents(), topics, &ALPHA, &state.counts(), N_TYPES, BETA)
}

#[test]
fn the_likelihood_equals_the_product_of_two_polya_urns() {
    let (documents, topics) = (documents(), topics(142));
    let mut expected = 0.0;
    let (mut of_topic, mut totals) = ([[0.0; N_TYPES]; 3], [0.0; 3]);
    for d in 0..documents.len() {
        let mut of_document = [0.0; 3];
        for (i, token) in documents.range(d).enumerate() {
            let (t, k) = (documents.types[token] as usize, usize::from(topics[token]));
            expected += f64::ln((of_document[k] + ALPHA[k]) / (i as f64 + 1.5));
            expected += f64::ln((of_topic[k][t] + BETA) / (totals[k] + 0.9));
            of_document[k] += 1.0;
            of_topic[k][t] += 1.0;
            totals[k] += 1.0;
        }
    }
    assert!((log_joint(&topics) - expected).abs() < 1e-12);
}

/// χ² of the states after one sweep from exact posterior samples, obtained by enumerating all states.
fn sweep_from_the_posterior(sampler: LdaSampler) -> f64 {
    let documents = documents();
    let sampling = Sampling::new(sampler, &documents, N_TYPES);
    let logs: Vec<f64> = (0..N_STATES).map(|s| log_joint(&topics(s))).collect();
    let evidence = log_sum_exp(&logs);
    let posterior: Vec<f64> = logs.iter().map(|log| (log - evidence).exp()).collect();
    let (n, mut rng) = (200_000, Rng::new(1));
    let mut counts = vec![0.0; N_STATES];
    for i in 0..n {
        let start = topics(sample_index(&posterior, &mut rng));
        let mut state = LdaState::new(&documents, start, N_TYPES, ALPHA.to_vec());
        sampling.sweep(&mut state, &documents, BETA, i);
        let number = state.topics.iter().rev().fold(0, |n, &k| 3 * n + usize::from(k));
        counts[number] += 1.0;
    }
    let cells = counts.iter().zip(&posterior).map(|(count, p)| {
        let expected = p * n as f64;
        (count - expected).powi(2) / expected
    });
    cells.sum()
}

#[test]
fn a_sweep_leaves_the_posterior_invariant() {
    let freedom = (N_STATES - 1) as f64;
    for sampler in [LdaSampler::Dense, LdaSampler::Sparse] {
        let sum = sweep_from_the_posterior(sampler);
        assert!(sum < freedom + 4.5 * (2.0 * freedom).sqrt(), "{sampler:?}: {sum}");
    }
}

/// Themes of ten words each, two per document, and random topics of all tokens.
fn themes() -> (TypedDocuments, Vec<u16>) {
    let mut rng = Rng::new(3);
    let draw = |n: usize, rng: &mut Rng| (rng.uniform() * n as f64) as u32;
    let documents = TypedDocuments::new((0..200).map(|_| {
        let themes = [draw(20, &mut rng), draw(20, &mut rng)];
        (0..40)
            .map(|_| 10 * themes[draw(2, &mut rng) as usize] + draw(10, &mut rng))
            .collect::<Vec<u32>>()
    }));
    let topics = documents.types.iter().map(|_| draw(20, &mut rng) as u16).collect();
    (documents, topics)
}

#[test]
fn models_do_not_depend_on_the_number_of_threads() {
    let (documents, start) = themes();
    for sampler in [LdaSampler::Dense, LdaSampler::Sparse] {
        let sampling = Sampling::new(sampler, &documents, 200);
        let [one, two, five] = [1, 2, 5].map(|n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                let mut state = LdaState::new(&documents, start.clone(), 200, vec![0.05; 20]);
                let changed = [0, 1, 2, 3].map(|i| sampling.sweep(&mut state, &documents, 0.01, i));
                assert_eq!(state.counts(), TypeCounts::of(&documents, &state.topics, 200, 20));
                (state.topics, changed)
            })
        });
        assert_ne!(one.0, start);
        assert!(one == two && two == five, "{sampler:?}");
    }
}

#[test]
fn both_samplers_reach_the_same_likelihood() {
    let (documents, start) = themes();
    let alpha = vec![0.05; 20];
    let learned = [LdaSampler::Dense, LdaSampler::Sparse].map(|sampler| {
        let sampling = Sampling::new(sampler, &documents, 200);
        let mut state = LdaState::new(&documents, start.clone(), 200, alpha.clone());
        (0..100).for_each(|i| _ = sampling.sweep(&mut state, &documents, 0.01, i));
        let counts = state.counts();
        assert_eq!(counts, TypeCounts::of(&documents, &state.topics, 200, 20));
        log_likelihood(&documents, &state.topics, &alpha, &counts, 200, 0.01)
            / documents.n_tokens() as f64
    });
    // The true model has −3.0 nats per token: one of ten words of one of two themes.
    assert!(learned.iter().all(|&nats| nats > -3.5), "{learned:?}");
    assert!((learned[0] - learned[1]).abs() < 0.1, "{learned:?}");
}

#[test]
fn auto_uses_the_sparse_sampler_for_many_topics_and_short_documents() {
    let chosen = |n_topics, sampler, length| {
        LdaParams { n_topics, sampler, ..LdaParams::default() }.chosen_sampler(length)
    };
    assert_eq!(chosen(50, LdaSampler::Auto, 80.0), LdaSampler::Dense);
    assert_eq!(chosen(200, LdaSampler::Auto, 80.0), LdaSampler::Sparse);
    assert_eq!(chosen(200, LdaSampler::Auto, 1200.0), LdaSampler::Dense);
    assert_eq!(chosen(2, LdaSampler::Sparse, 80.0), LdaSampler::Sparse);
}

/// Probabilities of the topics of the first token of the last document, given the topics of all others.
fn conditional(
    documents: &TypedDocuments,
    topics: &[u16],
    alpha: &[f64],
    n_types: usize,
) -> Vec<f64> {
    let token = documents.range(documents.len() - 1).start;
    let weight = |k: usize| {
        let (mut of_document, mut of_type, mut total) = (alpha[k], BETA, BETA * n_types as f64);
        for other in (0..topics.len()).filter(|&i| i != token && usize::from(topics[i]) == k) {
            of_document += f64::from(u8::from(other > token));
            of_type += f64::from(u8::from(documents.types[other] == documents.types[token]));
            total += 1.0;
        }
        of_document * of_type / total
    };
    let weights: Vec<f64> = (0..alpha.len()).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[test]
fn topics_are_drawn_from_the_conditional_for_any_number_of_blocks() {
    let mut rng = Rng::new(5);
    let mut draw = |n: usize| (rng.uniform() * n as f64) as u32;
    let n_types = 6;
    let documents = TypedDocuments::new((0..40).map(|_| [0; 12].map(|_| draw(n_types))));
    for n_topics in [2, 8, 20, 30, 39, 41, 50, 64, 70] {
        let start: Vec<u16> = documents.types.iter().map(|_| draw(n_topics) as u16).collect();
        let alpha: Vec<f64> = (1..=n_topics).map(|k| 0.1 + 1.0 / k as f64).collect();
        let p = conditional(&documents, &start, &alpha, n_types);
        let (last, n) = (documents.len() - 1, 20_000);
        let mut counts = vec![0.0; n_topics];
        let sampling = Sampling::new(LdaSampler::Dense, &documents, n_types);
        for seed in 0..n {
            let mut state = LdaState::new(&documents, start.clone(), n_types, alpha.clone());
            state.set_shards(vec![Range { start: last, end: documents.len() }]);
            sampling.sweep(&mut state, &documents, BETA, seed);
            counts[usize::from(state.topics[documents.range(last).start])] += 1.0;
        }
        for (k, (count, p)) in counts.into_iter().zip(p).enumerate() {
            let expected = p * n as f64;
            let allowed = 5.0 * (expected * (1.0 - p)).sqrt() + 2.0;
            assert!((count - expected).abs() < allowed, "{n_topics}, {k}: {count} {expected}");
        }
    }
}
