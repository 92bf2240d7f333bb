use super::fit::log_likelihood;
use super::sampler::LdaState;
use crate::documents::TypedDocuments;
use latens_math::{Rng, log_sum_exp, sample_index};

const N_TOKENS: usize = 6;
const ALPHA: [f64; 2] = [0.5, 0.8];
const BETA: f64 = 0.3;
const N_TYPES: usize = 3;

fn documents() -> TypedDocuments {
    TypedDocuments::new([vec![0, 1, 2], vec![2, 0, 0]])
}

fn topics(state: usize) -> Vec<u16> {
    (0..N_TOKENS).map(|i| (state >> i & 1) as u16).collect()
}

fn log_joint(topics: &[u16]) -> f64 {
    let state = LdaState::new(&documents(), topics.to_vec(), N_TYPES, ALPHA.to_vec());
    log_likelihood(&documents(), topics, &ALPHA, &state.counts(), N_TYPES, BETA)
}

#[test]
fn the_likelihood_is_the_product_of_two_urns() {
    let (documents, topics) = (documents(), topics(0b011010));
    let mut expected = 0.0;
    let (mut of_topic, mut totals) = ([[0.0; N_TYPES]; 2], [0.0; 2]);
    for d in 0..documents.len() {
        let mut of_document = [0.0; 2];
        for (i, token) in documents.range(d).enumerate() {
            let (t, k) = (documents.types[token] as usize, usize::from(topics[token]));
            expected += f64::ln((of_document[k] + ALPHA[k]) / (i as f64 + 1.3));
            expected += f64::ln((of_topic[k][t] + BETA) / (totals[k] + 0.9));
            of_document[k] += 1.0;
            of_topic[k][t] += 1.0;
            totals[k] += 1.0;
        }
    }
    assert!((log_joint(&topics) - expected).abs() < 1e-12);
}

/// States from the posterior, one sweep, and χ² of the states after it.
#[test]
fn a_sweep_leaves_the_posterior_as_it_is() {
    let logs: Vec<f64> = (0..1 << N_TOKENS).map(|s| log_joint(&topics(s))).collect();
    let evidence = log_sum_exp(&logs);
    let posterior: Vec<f64> = logs.iter().map(|log| (log - evidence).exp()).collect();
    let (n, mut rng) = (40_000, Rng::new(1));
    let mut counts = vec![0.0; 1 << N_TOKENS];
    for i in 0..n {
        let start = topics(sample_index(&posterior, &mut rng));
        let mut state = LdaState::new(&documents(), start, N_TYPES, ALPHA.to_vec());
        state.sweep(&documents(), BETA, i);
        let number = state.topics.iter().rev().fold(0, |n, &k| 2 * n + usize::from(k));
        counts[number] += 1.0;
    }
    let cells = counts.iter().zip(&posterior).map(|(count, p)| {
        let expected = p * n as f64;
        (count - expected).powi(2) / expected
    });
    let sum: f64 = cells.sum();
    // 63 degrees of freedom.
    assert!(sum < 63.0 + 4.5 * 126f64.sqrt(), "{sum}");
}
