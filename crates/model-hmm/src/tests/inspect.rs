//! A look inside a fitted model, and samples from it.

use super::toy::{CLUSTERS, emission};
use super::toy_models::{assert_near, blocks, dense, hmm_with, listed, wide};
use crate::model::Hmm;
use crate::params::Memory;
use crate::space::state_space::StateSpace;
use crate::tables::probability_tables::Tables;
use latens_corpus::WordId;

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

#[test]
fn a_sample_ends_in_a_state_without_successors() {
    let (space, mut tables) = blocks(3, 3, 17);
    tables.transition.fill(0.0);
    let hmm = hmm_with(Memory::Carry, &space, &tables);
    assert_eq!(hmm.sample_states(100, 3).words.len(), 1);
}
