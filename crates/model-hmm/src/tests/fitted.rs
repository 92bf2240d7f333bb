//! A fitted model against the sum over all paths, and against other models of the same probabilities.

use super::{CLUSTERS, emission, for_each_path, random_tables, sentences};
use crate::model::Hmm;
use crate::params::{Constraint, HmmParams, Memory};
use crate::space::state_space::{Lists, NONE, Support};
use crate::tables::probability_tables::Tables;
use latens_corpus::{Lexicon, Preprocessing, Vocab, VocabLimits, WordId};
use latens_model::{LanguageModel, Params};
use serde_json::Map;

/// The model of some probabilities.
fn hmm(support: &Support, tables: &Tables<f32>) -> Hmm {
    hmm_with(Memory::Reset, support, tables)
}

fn hmm_with(memory: Memory, support: &Support, tables: &Tables<f32>) -> Hmm {
    let constraint = match (&support.lists, support.n_clusters()) {
        (Some(_), _) => Constraint::Uniform,
        (None, 1) => Constraint::None,
        (None, _) => Constraint::Brown,
    };
    let n_clusters = support.lists.as_ref().map_or(support.n_clusters(), |l| support.k / l.n);
    let n_states = support.n_states();
    let params = HmmParams { n_states, n_clusters, constraint, memory, ..HmmParams::default() };
    let words = ["<unk>", "<eos>", "a", "b", "c", "d", "e", "f"];
    let vocab = Vocab::from_parts(words, vec![1; words.len()]).unwrap();
    let (preprocessing, limits) = (Preprocessing::default(), VocabLimits::default());
    let lexicon = Lexicon { preprocessing, limits, vocab };
    let (params, tables) = (params.validate().unwrap(), tables.clone());
    Hmm::new(params, lexicon, Map::new(), support.clone(), None, tables, None)
}

fn blocks(k: usize, n_clusters: usize, seed: u64) -> (Support, Tables<f32>) {
    let clusters = CLUSTERS.iter().map(|&c| if c == NONE { c } else { c % n_clusters as u32 });
    let support = Support::new(k, n_clusters, clusters.collect());
    let tables = random_tables(&support, 0, seed);
    (support, tables)
}

/// The same probabilities without blocks: every state of one cluster, most with emissions of zero.
fn dense(support: &Support, tables: &Tables<f32>) -> (Support, Tables<f32>) {
    let clusters = CLUSTERS.iter().map(|&c| if c == NONE { c } else { 0 }).collect();
    let dense = Support::new(support.n_states(), 1, clusters);
    let rows = dense.words().iter().flat_map(|&word| {
        let row =
            (0..support.n_states()).map(|state| emission(support, tables, word, state) as f32);
        row.collect::<Vec<_>>()
    });
    let dense_tables = Tables { k: dense.k, emission: rows.collect(), ..tables.clone() };
    (dense, dense_tables)
}

/// The same probabilities as lists of states: those of each word's cluster.
fn listed(support: &Support, tables: &Tables<f32>) -> (Support, Tables<f32>) {
    let (mut listed, listed_tables) = dense(support, tables);
    let states = listed.words().iter().flat_map(|&word| {
        let first = support.cluster(word).unwrap() * support.k;
        first as u32..(first + support.k) as u32
    });
    listed.lists = Some(Lists::new(support.k, support.n_states(), states.collect()));
    (listed, listed_tables)
}

fn full(row: &[(u32, f32)], n_states: usize) -> Vec<f64> {
    let mut full = vec![0.0; n_states];
    row.iter().for_each(|&(state, p)| full[state as usize] = f64::from(p));
    full
}

/// Single precision through a handful of steps.
fn assert_near(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
        assert!(a == b || (a - b).abs() < 2e-6 * b.abs().max(1.0), "{i}: {a} {b}");
    }
}

#[test]
fn a_fitted_model_agrees_with_the_sum_over_all_paths() {
    for (k, n_clusters) in [(2, 3), (1, 3), (5, 1), (3, 2)] {
        let (support, tables) = blocks(k, n_clusters, k as u64);
        let n = support.n_states();
        for (support, tables) in [(support.clone(), tables.clone()), listed(&support, &tables)] {
            let hmm = hmm(&support, &tables);
            for sentence in sentences() {
                let (mut total, mut best) = (0.0, (vec![], 0.0));
                let mut nodes = vec![vec![0.0; n]; sentence.len()];
                for_each_path(&support, &tables, &sentence, &[], |path, p| {
                    total += p;
                    path.iter().enumerate().for_each(|(t, &state)| nodes[t][state] += p);
                    if p > best.1 {
                        best = (path.iter().map(|&state| state as u32).collect(), p);
                    }
                });
                assert_near(&[hmm.log_prob(&sentence)], &[total.ln()]);
                let posterior = hmm.posterior(&sentence).unwrap();
                for (row, nodes) in posterior.iter().zip(nodes) {
                    let expected: Vec<f64> = nodes.iter().map(|p| p / total).collect();
                    assert_near(&full(row, n), &expected);
                }
                assert_eq!(hmm.best_states(&sentence).unwrap(), best.0);
            }
        }
    }
}

#[test]
fn running_text_is_one_sequence_for_a_model_that_carries_over() {
    let (support, tables) = blocks(2, 3, 13);
    let text = [2, 1, 5, 7, 1, 4].map(WordId);
    for (support, tables) in [(support.clone(), tables.clone()), listed(&support, &tables)] {
        let mut total = 0.0;
        for_each_path(&support, &tables, &text, &[], |_, p| total += p);
        let hmm = hmm_with(Memory::Carry, &support, &tables);
        let mut scorer = hmm.scorer();
        let read: f64 = text.iter().map(|&word| scorer.read(word)).sum();
        assert_near(&[hmm.text_log_prob(&text), read], &[total.ln(); 2]);
    }
}

#[test]
fn blocks_lists_and_dense_tables_are_the_same_model() {
    let (support, tables) = blocks(3, 3, 8);
    let blocked = hmm(&support, &tables);
    for (other_support, other_tables) in [dense(&support, &tables), listed(&support, &tables)] {
        let other = hmm(&other_support, &other_tables);
        let (mut next, mut other_next) = (vec![0.0; 8], vec![0.0; 8]);
        for sentence in sentences() {
            assert_near(&[other.log_prob(&sentence)], &[blocked.log_prob(&sentence)]);
            assert_eq!(other.best_states(&sentence), blocked.best_states(&sentence));
            let posteriors = [&other, &blocked].map(|hmm| hmm.posterior(&sentence).unwrap());
            for (a, b) in posteriors[0].iter().zip(&posteriors[1]) {
                assert_near(&full(a, 9), &full(b, 9));
            }
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
fn other_names_for_states_change_nothing() {
    let (support, tables) = blocks(3, 3, 9);
    // Clusters keep their words; the states of each take other numbers.
    let (k, n) = (support.k, support.n_states());
    let renamed = |state: usize| state / k * k + (state % k + 1 + state / k) % k;
    let mut other = tables.clone();
    for i in 0..n {
        other.start[renamed(i)] = tables.start[i];
        for j in 0..n {
            other.transition[renamed(i) * n + renamed(j)] = tables.transition[i * n + j];
        }
    }
    for slot in 0..support.n_slots() {
        let first = support.cluster(support.words()[slot]).unwrap() * k;
        for i in 0..k {
            other.emission[slot * k + renamed(first + i) % k] = tables.emission[slot * k + i];
        }
    }
    let (model, other) = (hmm(&support, &tables), hmm(&support, &other));
    for sentence in sentences() {
        assert_near(&[other.log_prob(&sentence)], &[model.log_prob(&sentence)]);
        let path = model.best_states(&sentence).unwrap();
        let path: Vec<u32> = path.iter().map(|&state| renamed(state as usize) as u32).collect();
        assert_eq!(other.best_states(&sentence).unwrap(), path);
        let posteriors = [&model, &other].map(|hmm| hmm.posterior(&sentence).unwrap());
        for (a, b) in posteriors[0].iter().zip(&posteriors[1]) {
            let (a, b) = (full(a, n), full(b, n));
            let a_renamed: Vec<f64> = (0..n).map(|state| b[renamed(state)]).collect();
            assert_near(&a_renamed, &a);
        }
    }
}

/// Probabilities such that whole rows are too small for scaled recursions in single precision.
fn with_tiny_rows(tables: &Tables<f32>, n: usize) -> Tables<f32> {
    let mut tables = tables.clone();
    tables.start[0] = 1e-30;
    tables.transition[..n].fill(1e-30);
    tables.emission.iter_mut().step_by(3).for_each(|b| *b = 1e-30);
    tables
}

#[test]
fn a_sentence_of_100_000_words_with_tiny_probabilities_stays_finite() {
    let (support, tables) = blocks(2, 3, 10);
    let words = [2, 5, 7, 4, 6, 6, 0].map(WordId);
    let mut sentence: Vec<WordId> = words.iter().copied().cycle().take(99_999).collect();
    sentence.push(WordId::EOS);
    let tiny = with_tiny_rows(&tables, support.n_states());
    let models = [(support.clone(), tables.clone()), (support.clone(), tiny.clone())];
    let lists = [listed(&support, &tables), listed(&support, &tiny)];
    for (support, tables) in models.iter().chain(&lists) {
        let hmm = hmm(support, tables);
        assert!(hmm.log_prob(&sentence).is_finite());
        let posterior = hmm.posterior(&sentence).unwrap();
        assert_eq!(posterior.len(), sentence.len());
        for row in posterior {
            let sum: f64 = row.iter().map(|&(_, p)| f64::from(p)).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        }
        assert_eq!(hmm.best_states(&sentence).unwrap().len(), sentence.len());
    }
}

#[test]
fn tiny_probabilities_agree_with_the_sum_over_all_paths() {
    let (support, tables) = blocks(2, 3, 11);
    let tables = with_tiny_rows(&tables, support.n_states());
    let hmm = hmm(&support, &tables);
    for sentence in sentences() {
        let mut total = 0.0;
        for_each_path(&support, &tables, &sentence, &[], |_, p| total += p);
        assert_near(&[hmm.log_prob(&sentence)], &[total.ln()]);
    }
}

#[test]
fn what_no_state_can_do_is_impossible_but_no_error() {
    let (support, mut tables) = blocks(2, 3, 12);
    // Nothing leads from cluster 2 to cluster 0.
    let n = support.n_states();
    for i in 4..6 {
        tables.transition[i * n..i * n + 2].fill(0.0);
        let sum: f32 = tables.transition[i * n..(i + 1) * n].iter().sum();
        tables.transition[i * n..(i + 1) * n].iter_mut().for_each(|a| *a /= sum);
    }
    for (support, tables) in [(support.clone(), tables.clone()), listed(&support, &tables)] {
        let hmm = hmm(&support, &tables);
        // Word 3 is emitted by no state; 2 is in cluster 2, 4 in cluster 0.
        for impossible in [&[3][..], &[2, 3, 1], &[2, 4, 1]] {
            let sentence: Vec<WordId> = impossible.iter().map(|&word| WordId(word)).collect();
            assert_eq!(hmm.log_prob(&sentence), f64::NEG_INFINITY);
            assert_eq!(hmm.posterior(&sentence), None);
            assert_eq!(hmm.best_states(&sentence), None);
        }
        let possible = [2, 5, 4, 1].map(WordId);
        assert!(hmm.log_prob(&possible).is_finite() && hmm.posterior(&possible).is_some());
        assert_eq!((hmm.posterior(&[]), hmm.best_states(&[])), (Some(vec![]), Some(vec![])));
    }
}
