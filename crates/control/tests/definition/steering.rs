//! Generated texts against probabilities by brute force.

use crate::toy::{cases, compiled, probability, random_hmm, spelled, texts};
use latens_control::{
    Constraint, ControlError, Guide, Lengths, Lookahead, LookaheadOptions, NextWords, Steerer,
    check_vocabulary,
};
use latens_corpus::{Vocab, WordId};
use latens_math::Rng;
use latens_model::{LanguageModel, Scorer};
use latens_model_hmm::Hmm;
use latens_tasks::{SampleOptions, sample_with};
use std::collections::BTreeMap;

const N: usize = 20_000;
const MAX: usize = 4;

fn lookahead(hmm: &Hmm, constraint: &Constraint) -> Lookahead {
    let options = LookaheadOptions::new(Lengths { min: 0, max: MAX });
    Lookahead::new(hmm, compiled(constraint), options).unwrap()
}

/// Asserts that counts of N draws agree with probabilities, within five standard deviations.
fn assert_frequencies<K: Ord + std::fmt::Debug>(
    n: usize,
    counts: &BTreeMap<K, usize>,
    expected: &BTreeMap<K, f64>,
) {
    assert!(counts.keys().all(|key| expected.contains_key(key)));
    for (key, &p) in expected {
        let found = *counts.get(key).unwrap_or(&0) as f64;
        let allowed = 5.0 * (n as f64 * p * (1.0 - p)).sqrt() + 1.0;
        assert!((found - n as f64 * p).abs() <= allowed, "{key:?}: {found} of {n}, p = {p}");
    }
}

fn conditional(hmm: &Hmm, satisfies: fn(&str) -> bool) -> BTreeMap<String, f64> {
    let texts = texts().filter(|text| text.len() <= MAX && satisfies(&spelled(text)));
    let mut all: BTreeMap<String, f64> =
        texts.map(|text| (spelled(&text), probability(hmm, &text))).collect();
    let total: f64 = all.values().sum();
    all.values_mut().for_each(|p| *p /= total);
    all
}

fn count<K: Ord>(draws: impl Iterator<Item = K>) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    draws.for_each(|draw| *counts.entry(draw).or_insert(0) += 1);
    counts
}

#[test]
fn samples_have_the_frequencies_of_the_conditional_distribution_and_of_rejection_sampling() {
    let hmm = random_hmm(3, 1.0, 8);
    for (constraint, satisfies) in cases().into_iter().step_by(3) {
        let expected = conditional(&hmm, satisfies);
        let lookahead = lookahead(&hmm, &constraint);
        let guide = Guide::new(&hmm, &lookahead);
        let (alone, steered) =
            (Steerer::alone(guide, &[]).unwrap(), Steerer::new(&hmm, guide, &[]).unwrap());
        for steerer in [alone, steered] {
            let mut rng = Rng::new(3);
            let options = SampleOptions::default();
            let draws = (0..N).map(|_| {
                let found = steerer.sample(&options, &mut rng).unwrap();
                let log_prob = probability(&hmm, &found.words).ln();
                assert!((found.log_prob - log_prob).abs() < 1e-4);
                spelled(&found.words)
            });
            assert_frequencies(N, &count(draws), &expected);
        }
        let mut rng = Rng::new(4);
        let mut options = SampleOptions::default();
        (options.keep_unk, options.max_words) = (true, MAX + 1);
        let draws = (0..N).map(|_| sample_with(&hmm, &[], &options, &mut rng));
        let accepted = draws.filter(|text| {
            let is_short = text.len() <= MAX && !text.contains(&WordId::UNK);
            is_short && satisfies(&spelled(text))
        });
        let accepted: Vec<String> = accepted.map(|text| spelled(&text)).collect();
        assert_frequencies(accepted.len(), &count(accepted.iter().cloned()), &expected);
    }
}

/// Words are independent of each other. The last one is impossible.
struct Independent([f64; 6]);

impl LanguageModel for Independent {
    fn n_words(&self) -> usize {
        6
    }

    fn scorer(&self) -> Box<dyn Scorer + '_> {
        Box::new(Independent(self.0))
    }
}

impl Scorer for Independent {
    fn read(&mut self, word: WordId) -> f64 {
        self.0[word.index()].ln()
    }

    fn next_log_probs(&mut self, out: &mut [f64]) {
        out.iter_mut().zip(self.0).for_each(|(out, p)| *out = p.ln());
    }
}

const MODEL: Independent = Independent([0.1, 0.15, 0.2, 0.25, 0.3, 0.0]);

#[test]
fn words_of_a_steered_model_have_the_product_of_both_distributions() {
    let hmm = random_hmm(3, 2.0, 9);
    let constraint = Constraint::contains("ca b");
    let lookahead = lookahead(&hmm, &constraint);
    let guide = Guide::new(&hmm, &lookahead);
    let mut next = NextWords::default();
    let prefix = [WordId(4)];
    guide.next_words(&guide.start_with(&prefix).unwrap(), &mut next);
    for (weight, temperature) in [(1.0, 1.0), (0.0, 1.0), (0.5, 2.0), (3.0, 1.0)] {
        let weights: Vec<f64> = (0..6)
            .map(|word| match next.conditional[word] {
                f64::NEG_INFINITY => 0.0,
                log_prob => (MODEL.0[word] * (weight * log_prob).exp()).powf(1.0 / temperature),
            })
            .collect();
        let total: f64 = weights.iter().sum();
        let expected = weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        let expected: BTreeMap<u32, f64> =
            expected.map(|(word, weight)| (word as u32, weight / total)).collect();
        let steerer = Steerer::new(&MODEL, guide, &prefix).unwrap().weight(weight);
        let mut rng = Rng::new(1);
        let mut options = SampleOptions::default();
        options.temperature = temperature;
        let draws = (0..N).map(|_| {
            let found = steerer.sample(&options, &mut rng).unwrap();
            let whole: Vec<WordId> = prefix.iter().chain(&found.words).copied().collect();
            assert!(found.words.len() <= MAX && spelled(&whole).contains("ca b"));
            found.words[0].0
        });
        assert_frequencies(N, &count(draws), &expected);
    }
}

#[test]
fn a_wide_beam_finds_the_best_texts() {
    let hmm = random_hmm(3, 2.0, 11);
    for (constraint, satisfies) in cases() {
        let lookahead = lookahead(&hmm, &constraint);
        let guide = Guide::new(&hmm, &lookahead);
        for (steerer, model) in [
            (Steerer::alone(guide, &[]).unwrap(), &hmm as &dyn LanguageModel),
            (Steerer::new(&MODEL, guide, &[]).unwrap().weight(0.5), &MODEL),
        ] {
            let log_prob = |text: &[WordId]| {
                model.log_prob(&text.iter().copied().chain([WordId::EOS]).collect::<Vec<_>>())
            };
            let texts = texts().filter(|text| text.len() <= MAX && satisfies(&spelled(text)));
            let mut all: Vec<f64> = texts.map(|text| log_prob(&text)).collect();
            all.retain(|&log_prob| log_prob > f64::NEG_INFINITY);
            all.sort_by(|a, b| b.total_cmp(a));
            all.truncate(5);
            let found = match steerer.beam(300, 5) {
                Ok(found) => found,
                Err(error) => {
                    assert!(matches!(error, ControlError::ImpossibleModel { .. }));
                    assert!(all.is_empty(), "{constraint}: {error}");
                    continue;
                }
            };
            assert_eq!(found.len(), all.len(), "{constraint}");
            for (found, best) in found.iter().zip(all) {
                assert!((found.log_prob - best).abs() < 1e-4, "{constraint}: {found:?} {best}");
                assert!(satisfies(&spelled(&found.words)), "{constraint}: {found:?}");
                assert!((log_prob(&found.words) - best).abs() < 1e-4);
            }
            // A narrow beam may end where the language model has no word left, but finds nothing wrong.
            let narrow = steerer.beam(1, 3).unwrap_or_default();
            assert!(narrow.iter().all(|found| satisfies(&spelled(&found.words))));
        }
    }
}

#[test]
fn a_model_that_cannot_meet_the_constraint_is_an_error() {
    let hmm = random_hmm(3, 1.0, 1);
    let lookahead = lookahead(&hmm, &Constraint::contains("d"));
    let steerer = Steerer::new(&MODEL, Guide::new(&hmm, &lookahead), &[]).unwrap();
    let error = steerer.sample(&SampleOptions::default(), &mut Rng::new(1)).unwrap_err();
    assert!(matches!(&error, ControlError::ImpossibleModel { .. }), "{error}");
    assert!(matches!(steerer.beam(3, 1).unwrap_err(), ControlError::ImpossibleModel { .. }));
}

#[test]
fn other_vocabularies_are_refused() {
    let vocab = |words: &[&str]| Vocab::from_parts(words, vec![1; words.len()]).unwrap();
    let one = vocab(&["<unk>", "<eos>", "a", "b"]);
    assert_eq!(check_vocabulary(&one, &one), Ok(()));
    let message = check_vocabulary(&one, &vocab(&["<unk>", "<eos>", "a", "c"])).unwrap_err();
    assert_eq!(
        message.to_string(),
        "the vocabulary of the guide differs from that of the model: 4 and 4 words; \
         word 3 is `b` in the guide and `c` in the model"
    );
    assert!(check_vocabulary(&one, &vocab(&["<unk>", "<eos>", "a"])).is_err());
}
