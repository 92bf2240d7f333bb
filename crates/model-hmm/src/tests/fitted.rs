//! A fitted model against the sum over all paths, and against equivalent models.

use super::toy::{CLUSTERS, emission, for_each_path, random_tables, sentences};
use crate::model::Hmm;
use crate::params::{Constraint, HmmParams, Memory};
use crate::space::clusters::NO_CLUSTER;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use crate::tables::probability_tables::Tables;
use latens_corpus::{Lexicon, Preprocessing, Vocab, VocabLimits, WordId};
use latens_model::{LanguageModel, Params};
use serde_json::Map;

/// The model with some probabilities.
fn hmm(space: &StateSpace, tables: &Tables<f32>) -> Hmm {
    hmm_with(Memory::Reset, space, tables)
}

fn hmm_with(memory: Memory, space: &StateSpace, tables: &Tables<f32>) -> Hmm {
    let constraint = match (&space.lists, space.n_clusters()) {
        (Some(_), _) => Constraint::Uniform,
        (None, 1) => Constraint::None,
        (None, _) => Constraint::Brown,
    };
    let n_clusters = space.lists.as_ref().map_or(space.n_clusters(), |l| space.k / l.n);
    let n_states = space.n_states();
    let params = HmmParams { n_states, n_clusters, constraint, memory, ..HmmParams::default() };
    let words = ["<unk>", "<eos>", "a", "b", "c", "d", "e", "f"];
    let vocab = Vocab::from_parts(words, vec![1; words.len()]).unwrap();
    let (preprocessing, limits) = (Preprocessing::default(), VocabLimits::default());
    let lexicon = Lexicon { preprocessing, limits, vocab };
    let (params, tables) = (params.validate().unwrap(), tables.clone());
    Hmm::new(params, lexicon, Map::new(), space.clone(), None, tables, None)
}

fn blocks(k: usize, n_clusters: usize, seed: u64) -> (StateSpace, Tables<f32>) {
    let clusters =
        CLUSTERS.iter().map(|&c| if c == NO_CLUSTER { c } else { c % n_clusters as u32 });
    let space = StateSpace::new(k, n_clusters, clusters.collect());
    let tables = random_tables(&space, 0, seed);
    (space, tables)
}

/// The same probabilities in a dense model: one cluster, most emissions zero.
fn dense(space: &StateSpace, tables: &Tables<f32>) -> (StateSpace, Tables<f32>) {
    let clusters = CLUSTERS.iter().map(|&c| if c == NO_CLUSTER { c } else { 0 }).collect();
    let dense = StateSpace::new(space.n_states(), 1, clusters);
    let rows = dense.words().iter().flat_map(|&word| {
        let row = (0..space.n_states()).map(|state| emission(space, tables, word, state) as f32);
        row.collect::<Vec<_>>()
    });
    let dense_tables = Tables { k: dense.k, emission: rows.collect(), ..tables.clone() };
    (dense, dense_tables)
}

/// The same probabilities with state lists: the states of the word's cluster.
fn listed(space: &StateSpace, tables: &Tables<f32>) -> (StateSpace, Tables<f32>) {
    let (mut listed, listed_tables) = dense(space, tables);
    let states = listed.words().iter().flat_map(|&word| {
        let first = space.cluster(word).unwrap() * space.k;
        first as u32..(first + space.k) as u32
    });
    listed.lists = Some(StateLists::new(space.k, space.n_states(), states.collect()));
    (listed, listed_tables)
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Compares with the tolerance of single precision through a few steps.
fn assert_near(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (i, (&a, &b)) in a.iter().zip(b).enumerate() {
        assert!(a == b || (a - b).abs() < 2e-6 * b.abs().max(1.0), "{i}: {a} {b}");
    }
}

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

/// The model with clusters, with state lists and without either.
fn equivalent_models(seed: u64, memory: Memory) -> [(StateSpace, Tables<f32>, Hmm); 3] {
    let (space, tables) = blocks(3, 3, seed);
    [(space.clone(), tables.clone()), listed(&space, &tables), dense(&space, &tables)].map(
        |(space, tables)| {
            let hmm = hmm_with(memory, &space, &tables);
            (space, tables, hmm)
        },
    )
}

#[test]
fn a_fitted_model_shows_the_probabilities_it_was_made_of() {
    for (space, tables, hmm) in equivalent_models(14, Memory::Reset) {
        let n = space.n_states();
        assert_eq!((hmm.n_states(), hmm.n_words()), (n, CLUSTERS.len()));
        assert_eq!(hmm.start(), tables.start);
        for state in 0..n {
            assert_eq!(hmm.transition(state), tables.transition[state * n..(state + 1) * n]);
            let words = (0..hmm.n_words())
                .map(|word| emission(&space, &tables, WordId::from(word), state) as f32);
            let words: Vec<f32> = words.collect();
            assert_eq!(hmm.emission(state), words);
            let best = (0..words.len()).max_by(|&a, &b| words[a].total_cmp(&words[b])).unwrap();
            assert_eq!(hmm.top_word_ids(state, 1), [(WordId::from(best), words[best])]);
            let word = hmm.lexicon.vocab.word(WordId::from(best));
            assert_eq!(hmm.top_words(state, 1), [(word, words[best])]);
        }
    }
}

#[test]
#[should_panic(expected = "state 9 of a model with 9 states")]
fn a_state_that_does_not_exist_has_no_transitions() {
    equivalent_models(14, Memory::Reset)[0].2.transition(9);
}

/// p(state of the next token | state of a token), with new sentences after `<eos>` if sentences are independent.
fn next_states(hmm: &Hmm, state: usize) -> Vec<f64> {
    let ends = match hmm.params.memory {
        Memory::Reset => f64::from(hmm.emission(state)[WordId::EOS.index()]),
        Memory::Carry => 0.0,
    };
    let next = wide(&hmm.transition(state)).into_iter().zip(wide(hmm.start()));
    next.map(|(a, start)| (1.0 - ends) * a + ends * start).collect()
}

#[test]
fn the_stationary_distribution_is_a_fixed_point() {
    for memory in [Memory::Reset, Memory::Carry] {
        for (_, _, hmm) in equivalent_models(15, memory) {
            let (shares, n) = (hmm.stationary(), hmm.n_states());
            let mut next = vec![0.0; n];
            for (state, share) in shares.iter().enumerate() {
                let of_state = next_states(&hmm, state);
                next.iter_mut().zip(of_state).for_each(|(next, p)| *next += share * p);
            }
            assert_near(&next, &shares);
        }
    }
}

#[test]
fn samples_follow_the_probabilities_of_the_model() {
    const N: usize = 100_000;
    for memory in [Memory::Reset, Memory::Carry] {
        for (_, _, hmm) in equivalent_models(16, memory) {
            let sample = hmm.sample_states(N, /* seed */ 3);
            assert_eq!((sample.states.len(), sample.words.len()), (N, N));
            assert_eq!(sample, hmm.sample_states(N, 3));
            assert_ne!(sample, hmm.sample_states(N, 4));
            let n = hmm.n_states();
            let mut pairs = vec![0.0; n * n];
            let mut words = vec![0.0; n * hmm.n_words()];
            for pair in sample.states.windows(2) {
                pairs[pair[0] as usize * n + pair[1] as usize] += 1.0 / N as f64;
            }
            for (&state, word) in sample.states.iter().zip(&sample.words) {
                words[state as usize * hmm.n_words() + word.index()] += 1.0 / N as f64;
            }
            // Five standard deviations of the share of a pair or a word, which is at most 1/2, with successive
            // tokens that are nearly independent.
            let tolerance = 5.0 * (0.25 / N as f64).sqrt();
            let is_near = |a: f64, b: f64| (a - b).abs() < tolerance;
            for (state, share) in hmm.stationary().into_iter().enumerate() {
                let next = next_states(&hmm, state).into_iter().zip(&pairs[state * n..]);
                next.for_each(|(p, &pair)| assert!(is_near(share * p, pair), "{p} {pair}"));
                let emitted = wide(&hmm.emission(state)).into_iter();
                let emitted = emitted.zip(&words[state * hmm.n_words()..]);
                emitted.for_each(|(p, &word)| assert!(is_near(share * p, word), "{p} {word}"));
            }
        }
    }
}
