//! Small texts, their counts and their covariances.

use crate::learn::moments::text_moments::Moments;
use latens_math::{Csr, Real, Rng, sample_index};
use std::collections::BTreeMap;

/// The text of the golden numbers. Types are numbered by first occurrence.
pub(super) const GOLDEN_TEXT: &str = "the dog saw the cat . the cat saw the dog . a dog ran . the cat ran . a man saw the dog . \
     the man ran . a cat saw a man . the dog ran .";

pub(super) const GOLDEN_TYPES: [&str; 8] = ["the", "dog", "saw", "cat", ".", "a", "ran", "man"];

pub(super) fn golden_tokens() -> Vec<usize> {
    let id = |word| GOLDEN_TYPES.iter().position(|&known| known == word).unwrap();
    GOLDEN_TEXT.split(' ').map(id).collect()
}

pub(super) fn unigrams(text: &[usize], n_types: usize) -> Vec<u64> {
    let mut counts = vec![0; n_types];
    text.iter().for_each(|&word| counts[word] += 1);
    counts
}

/// N_k of a text; rows are later words.
pub(super) fn lag_counts<T: Real>(text: &[usize], n_types: usize, lag: usize) -> Csr<T> {
    let mut counts: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for (&later, &earlier) in text.iter().skip(lag).zip(text) {
        *counts.entry((later, earlier)).or_default() += 1.0;
    }
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..n_types {
        for (&(_, column), &count) in counts.range((row, 0)..(row + 1, 0)) {
            columns.push(column as u32);
            values.push(T::of(count));
        }
        offsets.push(columns.len() as u64);
    }
    Csr::new(n_types, offsets, columns, values).unwrap()
}

pub(super) fn moments<T: Real>(
    text: &[usize],
    n_types: usize,
    n_lags: usize,
    pseudo_counts: f64,
) -> Moments<T> {
    let lags = (1..=n_lags).map(|lag| lag_counts(text, n_types, lag));
    Moments::new(&unigrams(text, n_types), lags, pseudo_counts)
}

pub(super) fn golden() -> Moments<f64> {
    moments(&golden_tokens(), 8, 7, 1.0)
}

/// A text sampled from a hidden Markov model with eight states, each of which prefers some types.
pub(super) fn markov_text(n_tokens: usize, n_types: usize, seed: u64) -> Vec<usize> {
    sharp_markov_text(n_tokens, n_types, [3.0, 3.0], seed)
}

/// The same, where larger values of `of_states` and `of_types` make transitions and emissions more peaked.
pub(super) fn sharp_markov_text(
    n_tokens: usize,
    n_types: usize,
    [of_states, of_types]: [f64; 2],
    seed: u64,
) -> Vec<usize> {
    let mut rng = Rng::new(seed);
    let mut peaked =
        |n: usize, by: f64| -> Vec<f64> { (0..n).map(|_| (by * rng.normal()).exp()).collect() };
    let transitions: Vec<Vec<f64>> = (0..8).map(|_| peaked(8, of_states)).collect();
    let emissions: Vec<Vec<f64>> = (0..8).map(|_| peaked(n_types, of_types)).collect();
    let mut rng = Rng::stream(seed, 1);
    let mut state = 0;
    let mut token = || {
        state = sample_index(&transitions[state], &mut rng);
        sample_index(&emissions[state], &mut rng)
    };
    // Every type occurs at least once, so that all have a positive probability without pseudo-counts.
    (0..n_tokens).map(|t| if t < n_types { t } else { token() }).collect()
}

/// The sum of sparse matrices.
pub(super) fn sum(parts: Vec<Csr<f64>>) -> Csr<f64> {
    let n = parts[0].n_rows();
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..n {
        let mut entries: BTreeMap<u32, f64> = BTreeMap::new();
        for part in &parts {
            let (columns, values) = part.row(row);
            columns.iter().zip(values).for_each(|(&j, &x)| *entries.entry(j).or_default() += x);
        }
        columns.extend(entries.keys());
        values.extend(entries.values());
        offsets.push(columns.len() as u64);
    }
    Csr::new(n, offsets, columns, values).unwrap()
}
