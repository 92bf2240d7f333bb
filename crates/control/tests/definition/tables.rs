//! Probabilities under a constraint against sums over all texts.

use crate::toy::{MAX_WORDS, WORDS, cases, compiled, probability, random_hmm, spelled, texts};
use latens_control::{
    Constraint, ControlError, Guide, Lengths, Lookahead, LookaheadOptions, NextWords,
};
use latens_corpus::WordId;
use latens_math::log_sum_exp;
use latens_model::Device;
use latens_model_hmm::{Expectations, Hmm};
use std::io::Write;

fn lookahead(hmm: &Hmm, constraint: &Constraint, min: usize, max: usize) -> Lookahead {
    let options = LookaheadOptions::new(Lengths { min, max });
    Lookahead::new(hmm, compiled(constraint), options).unwrap()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-5 * expected.abs() + 1e-12
}

#[test]
fn the_probability_of_a_constraint_is_the_sum_over_all_texts() {
    let hmm = random_hmm(3, 1.0, 1);
    let all: Vec<(Vec<WordId>, f64)> =
        texts().map(|text| (text.clone(), probability(&hmm, &text))).collect();
    for (constraint, satisfies) in cases() {
        for (min, max) in [(0, MAX_WORDS), (2, 5), (4, 4)] {
            let lookahead = lookahead(&hmm, &constraint, min, max);
            let guide = Guide::new(&hmm, &lookahead);
            for prefix in [&[][..], &[2], &[3, 2], &[4, 4, 5]] {
                let prefix: Vec<WordId> = prefix.iter().map(|&word| WordId(word)).collect();
                // The prefix counts as a part of the text here: its words use up the length.
                let mut reading = guide.start();
                prefix.iter().for_each(|&word| _ = guide.read(&mut reading, word));
                let begins = |text: &[WordId]| text.starts_with(&prefix);
                let all = all.iter().filter(|(text, _)| begins(text));
                let fits = |text: &[WordId]| {
                    (min..=max).contains(&text.len()) && satisfies(&spelled(text))
                };
                let met: Vec<&(Vec<WordId>, f64)> = all.filter(|(text, _)| fits(text)).collect();
                let expected: f64 = met.iter().map(|(_, p)| p).sum();
                let given = prefix_probability(&hmm, &prefix);
                let found = guide.log_prob(&reading).exp();
                assert!(close(found, expected / given), "{constraint}: {found} {expected}");

                let mut next = NextWords::default();
                guide.next_words(&reading, &mut next);
                assert!(close(log_sum_exp(&next.joint).exp(), found), "{constraint}");
                for word in (0..2 + WORDS.len()).map(WordId::from) {
                    let follows = |text: &&&(Vec<WordId>, f64)| match text.0.get(prefix.len()) {
                        Some(&next) => next == word,
                        None => word == WordId::EOS,
                    };
                    let expected: f64 = met.iter().filter(follows).map(|(_, p)| p).sum();
                    let joint = next.joint[word.index()].exp();
                    assert!(close(joint, expected / given), "{constraint}: {word:?} {joint}");
                    let both: Vec<WordId> = prefix.iter().copied().chain([word]).collect();
                    let conditional = next.conditional[word.index()].exp();
                    let p = prefix_probability(&hmm, &both);
                    assert!(close(conditional, expected / p), "{constraint}: {word:?}");
                    assert!(conditional <= 1.0);
                }
            }
        }
    }
}

/// The probability that a text begins with these words, which may end with `<eos>`.
fn prefix_probability(hmm: &Hmm, prefix: &[WordId]) -> f64 {
    use latens_model::LanguageModel;
    hmm.log_prob(prefix).exp()
}

#[test]
fn more_words_never_make_a_constraint_less_probable() {
    let hmm = random_hmm(4, 2.0, 5);
    for (constraint, _) in cases() {
        let log_prob = |max| {
            let lookahead = lookahead(&hmm, &constraint, 0, max);
            let guide = Guide::new(&hmm, &lookahead);
            guide.log_prob(&guide.start())
        };
        let log_probs: Vec<f64> = [0, 1, 2, 3, 5, 8, 20, 60].map(log_prob).to_vec();
        assert!(log_probs.windows(2).all(|pair| pair[1] >= pair[0] - 1e-12), "{log_probs:?}");
        assert!(log_probs.iter().all(|&log_prob| log_prob <= 0.0), "{log_probs:?}");
    }
}

#[test]
fn the_most_probable_text_is_the_best_of_all_pairs_of_words_and_states() {
    let max = 4;
    for seed in 0..3 {
        let hmm = random_hmm(2, 3.0, seed);
        let a: Vec<Vec<f32>> = (0..2).map(|state| hmm.transition(state)).collect();
        let b: Vec<Vec<f32>> = (0..2).map(|state| hmm.emission(state)).collect();
        for (constraint, satisfies) in cases() {
            let lookahead = lookahead(&hmm, &constraint, 1, max);
            let guide = Guide::new(&hmm, &lookahead);
            let found = guide.most_probable(&guide.start()).unwrap();
            let mut best = f64::NEG_INFINITY;
            let texts = texts().filter(|text| (1..=max).contains(&text.len()));
            for text in texts.filter(|text| satisfies(&spelled(text))) {
                let ended: Vec<usize> =
                    text.iter().map(|word| word.index()).chain([WordId::EOS.index()]).collect();
                for path in 0..1usize << ended.len() {
                    let state = |t: usize| (path >> t) & 1;
                    let mut p = f64::from(hmm.start()[state(0)]);
                    for (t, &word) in ended.iter().enumerate() {
                        p *= if t > 0 { f64::from(a[state(t - 1)][state(t)]) } else { 1.0 };
                        p *= f64::from(b[state(t)][word]);
                    }
                    best = best.max(p.ln());
                }
            }
            let Some(found) = found else {
                assert_eq!(best, f64::NEG_INFINITY, "{constraint}");
                continue;
            };
            assert!((found.log_prob - best).abs() < 1e-5, "{constraint}: {found:?} {best}");
            assert!(satisfies(&spelled(&found.words)), "{constraint}: {found:?}");
            assert_eq!(found.states.len(), found.words.len() + 1);
        }
    }
}

#[test]
fn lengths_that_do_not_fit_are_explained() {
    let hmm = random_hmm(3, 1.0, 2);
    let error = |constraint: &Constraint, min, max, prefix: &[u32]| {
        let lookahead = lookahead(&hmm, constraint, min, max);
        let prefix: Vec<WordId> = prefix.iter().map(|&word| WordId(word)).collect();
        Guide::new(&hmm, &lookahead).start_with(&prefix).unwrap_err()
    };
    let phrase = Constraint::contains("ab b ca");
    assert_eq!(error(&phrase, 0, 2, &[]), ControlError::TooShort { needed: 3, max: 2 });
    assert_eq!(error(&phrase, 0, 0, &[5, 2, 3]), ControlError::TooShort { needed: 1, max: 0 });
    let even = Constraint::regex("(. .)*");
    let message = error(&even, 3, 3, &[]).to_string();
    assert_eq!(message, "the constraint and the length of 3 to 3 words contradict each other");
    let message = error(&Constraint::excludes("d"), 0, 9, &[2, 5]).to_string();
    assert_eq!(message, "no text that begins with `ab d` satisfies the constraint");
    let options = LookaheadOptions::new(Lengths { min: 3, max: 2 });
    let lengths = Lookahead::new(&hmm, compiled(&phrase), options).err().unwrap();
    assert!(lengths.to_string().contains("minimum 3 is above the maximum 2"));
}

#[test]
fn a_given_beginning_may_contain_unknown_words_but_what_follows_may_not() {
    let hmm = random_hmm(3, 1.0, 4);
    let constraint = Constraint::contains("d");
    let lookahead = lookahead(&hmm, &constraint, 0, 4);
    let guide = Guide::new(&hmm, &lookahead);
    let reading = guide.start_with(&[WordId::UNK, WordId(2)]).unwrap();
    assert_eq!(reading.n_left(), 4);
    let mut next = NextWords::default();
    guide.next_words(&reading, &mut next);
    assert_eq!(next.joint[0], f64::NEG_INFINITY);
    let options = LookaheadOptions::new(Lengths { min: 0, max: 4 }).keep_unk(true);
    let with_unk = Lookahead::new(&hmm, compiled(&constraint), options).unwrap();
    let with_unk = Guide::new(&hmm, &with_unk);
    let log_prob = with_unk.log_prob(&with_unk.start());
    assert!(log_prob > guide.log_prob(&guide.start()));
}

#[test]
fn costs_are_those_of_the_tables() {
    let hmm = random_hmm(3, 1.0, 1);
    let automaton = compiled(&Constraint::contains("ab b"));
    let options = LookaheadOptions::new(Lengths { min: 0, max: 7 });
    let cost = Lookahead::cost(&hmm, &automaton, &options);
    // Three states; the edges: to itself and on from the first, to all from the second, to itself from the last.
    assert_eq!(cost.parts()[0].bytes, (7 * 3 * 3 * 8) as f64);
    assert_eq!(cost.parts()[1].bytes, (6 * 3 * 16) as f64);
    assert_eq!(cost.multiply_adds_per_iteration(), 27.0);
    let absurd = LookaheadOptions::new(Lengths { min: 0, max: usize::MAX / 2 });
    let error = Lookahead::new(&hmm, automaton, absurd).err().unwrap();
    assert!(matches!(error, ControlError::TooLittleMemory { .. }), "{error}");
}

#[test]
fn tables_of_a_device_are_those_of_the_cpu() {
    // Tables of smaller models are in double precision, which the device does not have.
    let hmm = random_hmm(1025, 1.0, 4);
    let constraint = Constraint::contains("ab b") & Constraint::excludes("d");
    let options = LookaheadOptions::new(Lengths { min: 1, max: 6 });
    let on_device = match Expectations::on(&hmm, Device::Cuda) {
        Ok(on_device) => on_device,
        Err(error) if cfg!(feature = "cuda") => {
            // Past the test harness, so that it is seen.
            let _ = writeln!(std::io::stderr(), "skipping the tests on a CUDA device: {error}");
            return;
        }
        Err(error) => return assert!(error.problem.contains("without CUDA"), "{error}"),
    };
    let cpu = Lookahead::new(&hmm, compiled(&constraint), options).unwrap();
    let cuda = Lookahead::with(&on_device, compiled(&constraint), options).unwrap();
    let (cpu, cuda) = (Guide::new(&hmm, &cpu), Guide::new(&hmm, &cuda));
    let (mut reading, mut next) = (cpu.start(), [NextWords::default(), NextWords::default()]);
    for word in [2, 3] {
        let [a, b] = [&cpu, &cuda].map(|guide| guide.log_prob(&reading));
        assert!((a - b).abs() < 1e-4, "{a} and {b}");
        cpu.next_words(&reading, &mut next[0]);
        cuda.next_words(&reading, &mut next[1]);
        for (a, b) in next[0].joint.iter().zip(&next[1].joint) {
            assert!(a == b || (a - b).abs() < 1e-4, "{a} and {b}");
        }
        cpu.read(&mut reading, WordId(word));
    }
}
