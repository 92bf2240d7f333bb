//! Posteriors and paths of many sentences together, against the sum over all paths and against each sentence alone.

use super::toy::{for_each_path, sentences};
use super::toy_models::{assert_near, blocks, hmm, listed, wide, with_tiny_rows};
use crate::fitted::encoder::Features;
use crate::model::Hmm;
use crate::space::state_space::StateSpace;
use crate::tables::factors::Factors;
use crate::tables::probability_tables::Tables;
use latens_corpus::WordId;
use latens_math::Rng;
use latens_model::{FeatureRows, LanguageModel, TokenEncoder};

/// Dense rows of each sentence, encoded together.
fn rows_together(hmm: &Hmm, features: Features, sentences: &[Vec<WordId>]) -> Vec<Vec<Vec<f32>>> {
    let sentences: Vec<&[WordId]> = sentences.iter().map(Vec::as_slice).collect();
    let encoder = hmm.encoder(features);
    let rows = encoder.encode_all(&sentences);
    rows.iter().map(|rows| dense_rows(rows, encoder.n_features())).collect()
}

fn dense_rows(rows: &FeatureRows, n: usize) -> Vec<Vec<f32>> {
    let dense = |(columns, values): (&[u32], &[f32])| {
        let mut row = vec![0.0; n];
        columns.iter().zip(values).for_each(|(&column, &value)| row[column as usize] = value);
        row
    };
    rows.iter().map(dense).collect()
}

#[test]
fn sentences_together_agree_with_the_sum_over_all_paths() {
    for (k, n_clusters) in [(2, 3), (5, 1), (3, 2)] {
        let (space, tables) = blocks(k, n_clusters, k as u64);
        let (hmm, n) = (hmm(&space, &tables), space.n_states());
        // Some sentences occur several times, so that they share blocks.
        let mut text = sentences();
        text.extend(sentences());
        text.extend(sentences().into_iter().take(3));
        let posteriors = rows_together(&hmm, Features::Posterior, &text);
        let paths = rows_together(&hmm, Features::State, &text);
        for ((sentence, posterior), states) in text.iter().zip(posteriors).zip(paths) {
            let (mut total, mut best) = (0.0, (vec![], 0.0));
            let mut nodes = vec![vec![0.0; n]; sentence.len()];
            for_each_path(&space, &tables, sentence, &[], |path, p| {
                total += p;
                path.iter().enumerate().for_each(|(t, &state)| nodes[t][state] += p);
                if p > best.1 {
                    best = (path.to_vec(), p);
                }
            });
            assert_eq!((posterior.len(), states.len()), (sentence.len(), sentence.len()));
            for (row, nodes) in posterior.iter().zip(nodes) {
                let expected: Vec<f64> = nodes.iter().map(|p| p / total).collect();
                assert_near(&wide(row), &expected);
            }
            for (row, &state) in states.iter().zip(&best.0) {
                let mut expected = vec![0.0; n];
                expected[state] = 1.0;
                assert_eq!(row, &expected);
            }
        }
    }
}

/// Random sentences of different lengths, some with the word 3, which no state emits.
fn random_text(n: usize, seed: u64) -> Vec<Vec<WordId>> {
    let mut rng = Rng::new(seed);
    let mut number = |below: usize| (rng.uniform() * below as f64) as u32;
    let mut sentence = || {
        let mut words: Vec<WordId> = (0..number(13)).map(|_| WordId(number(8))).collect();
        if number(8) > 0 {
            words.retain(|&word| word != WordId(3));
        }
        words.push(WordId::EOS);
        words
    };
    let mut text: Vec<Vec<WordId>> = (0..n).map(|_| sentence()).collect();
    text.insert(n / 2, vec![]);
    text
}

/// Compares all features of sentences together with those of each sentence alone, and returns how many sentences are
/// impossible.
fn assert_equal_alone(hmm: &Hmm, text: &[Vec<WordId>]) -> usize {
    let sentences: Vec<&[WordId]> = text.iter().map(Vec::as_slice).collect();
    for (name, features) in Features::ALL {
        let encoder = hmm.encoder(features);
        let together = encoder.encode_all(&sentences);
        assert_eq!(together.len(), sentences.len());
        for (sentence, rows) in sentences.iter().zip(&together) {
            let mut alone = FeatureRows::new();
            encoder.encode(sentence, &mut alone);
            assert_eq!(rows.offsets(), alone.offsets(), "{name}");
            assert_eq!(rows.columns(), alone.columns(), "{name}");
            for (a, b) in rows.values().iter().zip(alone.values()) {
                assert!((a - b).abs() < 1e-5, "{name}: {a} {b}");
            }
        }
    }
    text.iter().filter(|sentence| hmm.log_prob(sentence) == f64::NEG_INFINITY).count()
}

/// The model whose transitions are computed from random factors.
fn factored(space: &StateSpace, tables: &Tables<f32>, seed: u64) -> Hmm {
    let (mut rng, n, dim) = (Rng::new(seed), space.n_states(), 7);
    let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.normal() as f32).collect() };
    let (from, to) = (numbers(n * dim), numbers(n * dim));
    let factors = Some(Factors { dim, from, to, log_sums: vec![] });
    hmm(space, &Tables { factors, transition: vec![], ..tables.clone() })
}

#[test]
fn sentences_together_have_the_features_of_each_alone() {
    let text = random_text(50, 1);
    for (k, n_clusters) in [(2, 3), (7, 1), (70, 3), (65, 1), (300, 1), (260, 2)] {
        let (space, tables) = blocks(k, n_clusters, 20 + k as u64);
        let n_impossible = assert_equal_alone(&hmm(&space, &tables), &text);
        assert!((1..text.len() / 2).contains(&n_impossible), "{n_impossible}");
        assert_equal_alone(&factored(&space, &tables, k as u64), &text);
        let (lists, listed_tables) = listed(&space, &tables);
        assert_equal_alone(&hmm(&lists, &listed_tables), &text);
    }
}

#[test]
fn sentences_that_underflow_or_have_no_path_do_not_disturb_the_others() {
    let text = random_text(30, 2);
    for (k, n_clusters) in [(2, 3), (70, 3), (300, 1), (260, 2)] {
        let (space, tables) = blocks(k, n_clusters, 30 + k as u64);
        let (n, is_clustered) = (space.n_states(), n_clusters > 1);
        assert_equal_alone(&hmm(&space, &with_tiny_rows(&tables, n)), &text);
        // π · b of the first word is below the smallest single-precision number.
        let mut first = tables.clone();
        first.start.fill(1.5e-42);
        first.emission.iter_mut().for_each(|b| *b *= 1e-10);
        assert_equal_alone(&hmm(&space, &first), &text);
        // Only a state that is lost in single precision leads to the last state, which alone emits word 5.
        let mut lost = tables.clone();
        let slot = space.slot(WordId(5)).unwrap();
        let cluster = space.cluster(WordId(5)).unwrap();
        lost.emission[slot * k..(slot + 1) * k - 1].fill(0.0);
        let last = (cluster + 1) * k - 1;
        (0..n).for_each(|state| lost.transition[state * n + last] = 0.0);
        lost.transition[last] = 1e-27;
        assert_equal_alone(&hmm(&space, &lost), &text);
        if is_clustered {
            // No transition leads from the first cluster to itself.
            let mut none = tables.clone();
            (0..k).for_each(|state| none.transition[state * n..state * n + k].fill(0.0));
            let n_impossible = assert_equal_alone(&hmm(&space, &none), &text);
            assert!(n_impossible > assert_equal_alone(&hmm(&space, &tables), &text));
        }
    }
}

#[test]
fn features_do_not_depend_on_the_number_of_threads() {
    let text = random_text(60, 3);
    let sentences: Vec<&[WordId]> = text.iter().map(Vec::as_slice).collect();
    for (k, n_clusters) in [(300, 1), (260, 2), (70, 3)] {
        let (space, tables) = blocks(k, n_clusters, 40 + k as u64);
        let hmm = hmm(&space, &tables);
        for (name, features) in Features::ALL {
            let values = [1, 5].map(|n_threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
                let rows = pool.install(|| hmm.encoder(features).encode_all(&sentences));
                let rows = rows.iter().map(|rows| {
                    (rows.offsets().to_vec(), rows.columns().to_vec(), rows.values().to_vec())
                });
                rows.collect::<Vec<_>>()
            });
            assert_eq!(values[0], values[1], "{name}");
        }
    }
}

#[test]
fn scores_of_sentences_together_are_those_of_each_alone_on_any_number_of_threads() {
    let text = random_text(200, 4);
    for (k, n_clusters) in [(300, 1), (260, 2), (130, 1), (70, 3)] {
        let (space, tables) = blocks(k, n_clusters, 50 + k as u64);
        let hmm = hmm(&space, &tables);
        let mut words: Vec<WordId> = Vec::new();
        for sentence in &text {
            words.extend(sentence.iter().filter(|&&word| word != WordId::EOS));
            words.push(WordId::EOS);
        }
        let mut scorer = hmm.scorer();
        let alone: Vec<f64> = words.iter().map(|&word| scorer.read(word)).collect();
        let [one, five] = [1, 5].map(|n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| hmm.token_log_probs(&words))
        });
        assert_eq!(one, five, "{k}");
        for (at, (one, alone)) in one.iter().zip(&alone).enumerate() {
            let is_equal = one == alone || (one - alone).abs() < 1e-5 * (1.0 + alone.abs());
            assert!(is_equal, "{k}: {one} and {alone} for token {at}");
        }
    }
}
