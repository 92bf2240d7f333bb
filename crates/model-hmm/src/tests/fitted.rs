//! A fitted model against the sum over all paths, and against equivalent models.

use super::toy::{for_each_path, sentences};
use super::toy_models::{assert_near, blocks, dense, hmm, hmm_with, listed, wide};
use crate::params::Memory;
use crate::tables::probability_tables::Tables;
use latens_corpus::WordId;
use latens_model::LanguageModel;

#[test]
fn a_fitted_model_agrees_with_the_sum_over_all_paths() {
    for (k, n_clusters) in [(2, 3), (1, 3), (5, 1), (3, 2)] {
        let (space, tables) = blocks(k, n_clusters, k as u64);
        let n = space.n_states();
        for (space, tables) in [(space.clone(), tables.clone()), listed(&space, &tables)] {
            let hmm = hmm(&space, &tables);
            for sentence in sentences() {
                let (mut total, mut best) = (0.0, (vec![], 0.0));
                let mut nodes = vec![vec![0.0; n]; sentence.len()];
                for_each_path(&space, &tables, &sentence, &[], |path, p| {
                    total += p;
                    path.iter().enumerate().for_each(|(t, &state)| nodes[t][state] += p);
                    if p > best.1 {
                        best = (path.iter().map(|&state| state as u32).collect(), p);
                    }
                });
                assert_near(&[hmm.log_prob(&sentence)], &[total.ln()]);
                let posterior = hmm.posterior_of(&sentence).unwrap();
                for (row, nodes) in posterior.rows().zip(nodes) {
                    let expected: Vec<f64> = nodes.iter().map(|p| p / total).collect();
                    assert_near(&wide(row), &expected);
                }
                assert_eq!(hmm.viterbi_of(&sentence).unwrap(), best.0);
            }
        }
    }
}

#[test]
fn a_model_that_carries_states_over_scores_running_text_as_one_sequence() {
    let (space, tables) = blocks(2, 3, 13);
    let text = [2, 1, 5, 7, 1, 4].map(WordId);
    for (space, tables) in [(space.clone(), tables.clone()), listed(&space, &tables)] {
        let mut total = 0.0;
        for_each_path(&space, &tables, &text, &[], |_, p| total += p);
        let hmm = hmm_with(Memory::Carry, &space, &tables);
        let mut scorer = hmm.scorer();
        let read: f64 = text.iter().map(|&word| scorer.read(word)).sum();
        assert_near(&[hmm.text_log_prob(&text), read], &[total.ln(); 2]);
    }
}

#[test]
fn clusters_lists_and_dense_tables_are_the_same_model() {
    let (space, tables) = blocks(3, 3, 8);
    let blocked = hmm(&space, &tables);
    for (other_space, other_tables) in [dense(&space, &tables), listed(&space, &tables)] {
        let other = hmm(&other_space, &other_tables);
        let (mut next, mut other_next) = (vec![0.0; 8], vec![0.0; 8]);
        for sentence in sentences() {
            assert_near(&[other.log_prob(&sentence)], &[blocked.log_prob(&sentence)]);
            assert_eq!(other.viterbi_of(&sentence), blocked.viterbi_of(&sentence));
            let posteriors = [&other, &blocked].map(|hmm| hmm.posterior_of(&sentence).unwrap());
            let [a, b] = posteriors.each_ref().map(|posterior| wide(posterior.as_slice()));
            assert_near(&a, &b);
            let (mut scorer, mut other_scorer) = (blocked.scorer(), other.scorer());
            for &word in &sentence {
                scorer.next_log_probs(&mut next);
                other_scorer.next_log_probs(&mut other_next);
                assert_near(&other_next, &next);
                assert_near(&[other_scorer.read(word)], &[scorer.read(word)]);
            }
        }
    }
}

#[test]
fn renaming_states_changes_nothing() {
    let (space, tables) = blocks(3, 3, 9);
    // Permutes the states within each cluster.
    let (k, n) = (space.k, space.n_states());
    let renamed = |state: usize| state / k * k + (state % k + 1 + state / k) % k;
    let mut other = tables.clone();
    for i in 0..n {
        other.start[renamed(i)] = tables.start[i];
        for j in 0..n {
            other.transition[renamed(i) * n + renamed(j)] = tables.transition[i * n + j];
        }
    }
    for slot in 0..space.n_slots() {
        let first = space.cluster(space.words()[slot]).unwrap() * k;
        for i in 0..k {
            other.emission[slot * k + renamed(first + i) % k] = tables.emission[slot * k + i];
        }
    }
    let (model, other) = (hmm(&space, &tables), hmm(&space, &other));
    for sentence in sentences() {
        assert_near(&[other.log_prob(&sentence)], &[model.log_prob(&sentence)]);
        let path = model.viterbi_of(&sentence).unwrap();
        let path: Vec<u32> = path.iter().map(|&state| renamed(state as usize) as u32).collect();
        assert_eq!(other.viterbi_of(&sentence).unwrap(), path);
        let posteriors = [&model, &other].map(|hmm| hmm.posterior_of(&sentence).unwrap());
        for (a, b) in posteriors[0].rows().zip(posteriors[1].rows()) {
            let (a, b) = (wide(a), wide(b));
            let a_renamed: Vec<f64> = (0..n).map(|state| b[renamed(state)]).collect();
            assert_near(&a_renamed, &a);
        }
    }
}

/// Makes whole rows underflow in a scaled recursion in single precision.
fn with_tiny_rows(tables: &Tables<f32>, n: usize) -> Tables<f32> {
    let mut tables = tables.clone();
    tables.start[0] = 1e-30;
    tables.transition[..n].fill(1e-30);
    tables.emission.iter_mut().step_by(3).for_each(|b| *b = 1e-30);
    tables
}

#[test]
fn a_sentence_of_100_000_words_with_tiny_probabilities_stays_finite() {
    let (space, tables) = blocks(2, 3, 10);
    let words = [2, 5, 7, 4, 6, 6, 0].map(WordId);
    let mut sentence: Vec<WordId> = words.iter().copied().cycle().take(99_999).collect();
    sentence.push(WordId::EOS);
    let tiny = with_tiny_rows(&tables, space.n_states());
    let models = [(space.clone(), tables.clone()), (space.clone(), tiny.clone())];
    let lists = [listed(&space, &tables), listed(&space, &tiny)];
    for (space, tables) in models.iter().chain(&lists) {
        let hmm = hmm(space, tables);
        assert!(hmm.log_prob(&sentence).is_finite());
        let posterior = hmm.posterior_of(&sentence).unwrap();
        assert_eq!(posterior.n_rows(), sentence.len());
        for row in posterior.rows() {
            let sum: f64 = wide(row).iter().sum();
            assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        }
        assert_eq!(hmm.viterbi_of(&sentence).unwrap().len(), sentence.len());
    }
}

#[test]
fn tiny_probabilities_agree_with_the_sum_over_all_paths() {
    let (space, tables) = blocks(2, 3, 11);
    let tables = with_tiny_rows(&tables, space.n_states());
    let hmm = hmm(&space, &tables);
    for sentence in sentences() {
        let mut total = 0.0;
        for_each_path(&space, &tables, &sentence, &[], |_, p| total += p);
        assert_near(&[hmm.log_prob(&sentence)], &[total.ln()]);
    }
}

#[test]
fn impossible_sentences_have_no_posterior_but_are_not_an_error() {
    let (space, mut tables) = blocks(2, 3, 12);
    // No transition leads from cluster 2 to cluster 0.
    let n = space.n_states();
    for i in 4..6 {
        tables.transition[i * n..i * n + 2].fill(0.0);
        let sum: f32 = tables.transition[i * n..(i + 1) * n].iter().sum();
        tables.transition[i * n..(i + 1) * n].iter_mut().for_each(|a| *a /= sum);
    }
    for (space, tables) in [(space.clone(), tables.clone()), listed(&space, &tables)] {
        let hmm = hmm(&space, &tables);
        // No state emits word 3; word 2 is in cluster 2, word 4 in cluster 0.
        for impossible in [&[3][..], &[2, 3, 1], &[2, 4, 1]] {
            let sentence: Vec<WordId> = impossible.iter().map(|&word| WordId(word)).collect();
            assert_eq!(hmm.log_prob(&sentence), f64::NEG_INFINITY);
            assert_eq!(hmm.posterior_of(&sentence), None);
            assert_eq!(hmm.viterbi_of(&sentence), None);
        }
        let possible = [2, 5, 4, 1].map(WordId);
        assert!(hmm.log_prob(&possible).is_finite() && hmm.posterior_of(&possible).is_some());
        assert_eq!(hmm.posterior_of(&[]).unwrap().n_rows(), 0);
        assert_eq!(hmm.viterbi_of(&[]), Some(vec![]));
    }
}
