//! A fitted model against the sum over all paths, and against equivalent models.

use super::toy::{emission, for_each_path, sentences};
use super::toy_models::{assert_near, blocks, dense, hmm, hmm_with, listed, wide, with_tiny_rows};
use crate::params::Memory;
use crate::recursion::batch::Batch;
use crate::recursion::forward_backward::ForwardBackward;
use crate::space::state_space::StateSpace;
use crate::tables::probability_tables::Tables;
use latens_corpus::WordId;
use latens_math::log_sum_exp;
use latens_model::{FeatureRows, LanguageModel, TokenEncoder};

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
fn sentences_that_are_scored_together_have_the_sum_of_their_probabilities() {
    for (k, n_clusters) in [(2, 3), (5, 1), (3, 2)] {
        let (space, tables) = blocks(k, n_clusters, k as u64);
        for (space, tables) in [(space.clone(), tables.clone()), listed(&space, &tables)] {
            let hmm = hmm(&space, &tables);
            // Sentences of different lengths, some of them often, and the last one without an end.
            let (mut text, mut expected) = (Vec::new(), 0.0);
            for (i, mut sentence) in sentences().into_iter().enumerate() {
                sentence.retain(|&word| word != WordId::EOS);
                sentence.push(WordId::EOS);
                let mut total = 0.0;
                for_each_path(&space, &tables, &sentence, &[], |_, p| total += p);
                for _ in 0..=i % 4 {
                    text.extend_from_slice(&sentence);
                    expected += total.ln();
                }
            }
            let rest = [WordId(2), WordId(5)];
            let mut total = 0.0;
            for_each_path(&space, &tables, &rest, &[], |_, p| total += p);
            text.extend(rest);
            assert_near(&[hmm.text_log_prob(&text)], &[expected + total.ln()]);
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

/// Checks that all roles agree on a sentence, and returns its log-probability.
fn one_answer(space: &StateSpace, tables: &Tables<f32>, sentence: &[WordId]) -> f64 {
    let hmm = hmm(space, tables);
    let expected = log_prob_by_paths(space, tables, sentence);
    let (mut scorer, mut next, mut sum) = (hmm.scorer(), vec![0.0; 8], 0.0);
    for &word in sentence {
        scorer.next_log_probs(&mut next);
        let log_prob = scorer.read(word);
        assert_near(&[next[word.index()]], &[log_prob]);
        sum += log_prob;
    }
    let trained = ForwardBackward::default().log_probs(
        space,
        tables,
        &Batch { sentences: vec![sentence], tags: vec![] },
    );
    assert_near(&[hmm.log_prob(sentence), sum, trained[0]], &[expected; 3]);
    let is_possible = expected > f64::NEG_INFINITY;
    assert_eq!(hmm.posterior_of(sentence).is_some(), is_possible);
    assert_eq!(hmm.viterbi_of(sentence).is_some(), is_possible);
    let mut rows = FeatureRows::default();
    hmm.encode(sentence, &mut rows);
    assert_eq!(rows.row(0).0.is_empty(), !is_possible);
    expected
}

/// The logarithm of the sum over all paths, with products that do not underflow.
fn log_prob_by_paths(space: &StateSpace, tables: &Tables<f32>, sentence: &[WordId]) -> f64 {
    let n = tables.n_states();
    let mut alpha: Vec<f64> = tables.start.iter().map(|&p| f64::from(p).ln()).collect();
    for (t, &word) in sentence.iter().enumerate() {
        let before = alpha.clone();
        for (j, alpha) in alpha.iter_mut().enumerate() {
            if t > 0 {
                let into = |i: usize| before[i] + f64::from(tables.transition[i * n + j]).ln();
                *alpha = log_sum_exp(&(0..n).map(into).collect::<Vec<_>>());
            }
            *alpha += emission(space, tables, word, j).ln();
        }
    }
    log_sum_exp(&alpha)
}

#[test]
fn all_roles_agree_on_sentences_whose_products_underflow() {
    let (space, tables) = blocks(2, 3, 14);
    let n = space.n_states();
    // π · b of the first word is below the smallest single-precision number.
    let mut first = tables.clone();
    first.start.fill(1.5e-42);
    first.emission.iter_mut().for_each(|b| *b *= 1e-10);
    // Only state 5 leads to cluster 1, and it is lost in single precision after word 2.
    let mut lost = tables.clone();
    lost.start.fill(0.5);
    lost.start[5] = 1e-37;
    for state in 0..n {
        lost.transition[state * n + 2..state * n + 4].fill(if state == 5 { 0.5 } else { 0.0 });
    }
    let slot = space.slot(WordId(2)).unwrap();
    lost.emission[slot * 2..slot * 2 + 2].copy_from_slice(&[0.5, 1e-37]);
    // Only state 3 emits word 5, but nearly no transition leads to it, while its cluster is likely.
    let mut rare = tables.clone();
    for state in 0..n {
        rare.transition[state * n + 3] = 1e-35;
    }
    let slot = space.slot(WordId(5)).unwrap();
    rare.emission[slot * 2..slot * 2 + 2].copy_from_slice(&[0.0, 0.5]);
    for tables in [first, lost, rare] {
        for sentence in [&[2, 5, 7, 1][..], &[2, 1], &[4, 5, 1], &[2]] {
            let sentence: Vec<WordId> = sentence.iter().map(|&word| WordId(word)).collect();
            let answers = [(space.clone(), tables.clone()), listed(&space, &tables)]
                .map(|(space, tables)| one_answer(&space, &tables, &sentence));
            assert_near(&answers[1..], &answers[..1]);
        }
    }
}

#[test]
fn after_an_impossible_word_the_next_one_is_scored_as_before_it() {
    let (space, mut tables) = blocks(2, 3, 15);
    // No transition leads to cluster 1, and no sentence starts there.
    let n = space.n_states();
    tables.transition.chunks_exact_mut(n).for_each(|row| row[2..4].fill(0.0));
    tables.start[2..4].fill(0.0);
    let hmm = hmm(&space, &tables);
    let mut scorer = hmm.scorer();
    scorer.read(WordId(2));
    assert_eq!(scorer.read(WordId(5)), f64::NEG_INFINITY);
    let mut next = vec![0.0; 8];
    scorer.next_log_probs(&mut next);
    assert_near(&[scorer.read(WordId(7))], &[next[7]]);
    assert!(next[7].is_finite());
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
