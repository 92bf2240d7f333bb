//! The model against the definition of modified Kneser–Ney, written with maps and sets.

use latens_corpus::{Corpus, Lexicon, Preprocessing, Sentences, Vocab, VocabLimits, WordId};
use latens_math::Rng;
use latens_model::{Fit, LanguageModel};
use latens_model_ngram::{Ngram, NgramParams};
use std::collections::{BTreeMap, BTreeSet};

const BEGIN: u32 = u32::MAX;

/// Chen & Goodman 1998, with raw counts for n-grams at the start of a sentence.
struct Definition {
    order: usize,
    n_words: usize,
    /// Adjusted counts a(u) of each order.
    adjusted: Vec<BTreeMap<Vec<u32>, u64>>,
    counts: Vec<BTreeMap<Vec<u32>, u64>>,
    min_counts: Vec<u64>,
}

impl Definition {
    fn new(sentences: &Sentences, n_words: usize, params: &NgramParams) -> Definition {
        let order = params.order;
        let mut counts = vec![BTreeMap::new(); order];
        let mut before: Vec<BTreeMap<Vec<u32>, BTreeSet<u32>>> = vec![BTreeMap::new(); order];
        for sentence in sentences.iter() {
            let mut words = vec![BEGIN];
            words.extend(sentence.iter().map(|word| word.0));
            for end in 2..=words.len() {
                for n in 1..=order.min(end) {
                    let ngram = words[end - n..end].to_vec();
                    *counts[n - 1].entry(ngram.clone()).or_insert(0) += 1;
                    if end > n {
                        before[n - 1].entry(ngram).or_default().insert(words[end - n - 1]);
                    }
                }
            }
        }
        let adjust = |(n, counts): (usize, &BTreeMap<Vec<u32>, u64>)| {
            let adjusted = counts.iter().map(|(ngram, &count)| {
                let raw = n + 1 == order || ngram[0] == BEGIN;
                let adjusted = if raw { count } else { before[n][ngram].len() as u64 };
                (ngram.clone(), adjusted)
            });
            adjusted.collect()
        };
        let adjusted = counts.iter().enumerate().map(adjust).collect();
        let min_counts =
            (1..=order).map(|n| if n == 1 { 0 } else { params.min_count(n) }).collect();
        Definition { order, n_words, adjusted, counts, min_counts }
    }

    fn discount(&self, n: usize, count: u64) -> f64 {
        let with = |k: u64| self.adjusted[n - 1].values().filter(|&&a| a == k).count() as f64;
        let y = with(1) / (with(1) + 2.0 * with(2));
        let d = |k: u64| k as f64 - (k + 1) as f64 * y * with(k + 1) / with(k);
        let all = [d(1), d(2), d(3)];
        let sound = (1..=3).all(|k| all[k - 1] > 0.0 && all[k - 1] <= k as f64);
        let all = if sound { all } else { [0.5, 1.0, 1.5] };
        if count == 0 { 0.0 } else { all[count.min(3) as usize - 1] }
    }

    /// p(word | history), with the history in reading order.
    fn prob(&self, history: &[u32], word: u32) -> f64 {
        let n = history.len() + 1;
        let shorter = if history.is_empty() {
            1.0 / self.n_words as f64
        } else {
            self.prob(&history[1..], word)
        };
        let (mut total, mut left, mut own) = (0.0, 0.0, 0.0);
        for (ngram, &a) in self.adjusted[n - 1].iter().filter(|(u, _)| u[..n - 1] == *history) {
            let is_pruned = self.counts[n - 1][ngram] < self.min_counts[n - 1];
            let taken = if is_pruned { a as f64 } else { self.discount(n, a) };
            total += a as f64;
            left += taken;
            if ngram[n - 1] == word {
                own = a as f64 - taken;
            }
        }
        if total == 0.0 { shorter } else { own / total + left / total * shorter }
    }

    /// ln p of a sentence that ends with `<eos>`.
    fn log_prob(&self, sentence: &[WordId]) -> f64 {
        let mut history = vec![BEGIN];
        let mut log_prob = 0.0;
        for word in sentence {
            let known = history.len().min(self.order - 1);
            log_prob += self.prob(&history[history.len() - known..], word.0).ln();
            history.push(word.0);
        }
        log_prob
    }
}

/// Sentences over a few words, so that n-grams repeat; some words of the vocabulary never occur.
fn corpus(seed: u64, n_sentences: usize) -> Corpus {
    let mut rng = Rng::new(seed);
    let vocab = Vocab::from_counts(
        [("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)],
        &VocabLimits::default(),
    );
    let n_words = vocab.len();
    let sentences = (0..n_sentences).map(|_| {
        let length = (rng.uniform() * 7.0) as usize;
        // The square makes some words frequent.
        let word = |u: f64| WordId(2 + (u * u * (n_words - 3) as f64) as u32);
        (0..length).map(|_| word(rng.uniform())).collect::<Vec<_>>()
    });
    let sentences = Sentences::from_words(sentences.collect::<Vec<_>>());
    let lexicon = Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab);
    Corpus { lexicon, sentences }
}

fn assert_agrees(params: NgramParams, n_sentences: usize) {
    let train = corpus(1, n_sentences);
    let n_words = train.lexicon.vocab.len();
    let definition = Definition::new(&train.sentences, n_words, &params);
    let model = params.clone().fit(&train).unwrap();
    // Sentences of the training text, other sentences, and unseen words.
    let mut sentences: Vec<Vec<WordId>> =
        train.sentences.iter().take(20).map(<[_]>::to_vec).collect();
    sentences.extend(corpus(2, 20).sentences.iter().map(<[_]>::to_vec));
    sentences.push(vec![WordId(6), WordId::UNK, WordId(2), WordId::EOS]);
    for sentence in sentences {
        let (found, expected) = (model.log_prob(&sentence), definition.log_prob(&sentence));
        // Probabilities are stored as `f32`.
        assert!(
            (found - expected).abs() < 2e-6 * (1.0 + expected.abs()),
            "{found} {expected} {params:?}"
        );
    }
}

#[test]
fn every_order_agrees_with_the_definition() {
    for order in 1..=6 {
        assert_agrees(Ngram::params().order(order), 400);
    }
}

#[test]
fn a_text_too_small_to_estimate_discounts_agrees_with_the_definition() {
    for order in [1, 2, 3, 5] {
        assert_agrees(Ngram::params().order(order), 3);
    }
}

#[test]
fn unseen_words_have_a_probability_above_zero() {
    // 12 words with count 1, 6 with 2, 4 with 3 and 6 with 4: D(3) = 3 − 4 · 12/24 · 6/4 = 0.
    let counts = [(1, 12), (2, 6), (3, 4), (4, 6)];
    let words: Vec<String> = (0..28).map(|i| format!("w{i}")).collect();
    let vocab =
        Vocab::from_counts(words.iter().map(|word| (word.as_str(), 1)), &VocabLimits::default());
    let times = counts.iter().flat_map(|&(times, n)| std::iter::repeat_n(times, n));
    let tokens = times.zip(2..).flat_map(|(times, id)| std::iter::repeat_n(WordId(id), times));
    let sentences = Sentences::from_words([tokens.collect::<Vec<_>>()]);
    let lexicon = Lexicon::new(Preprocessing::default(), VocabLimits::default(), vocab);
    let model = Ngram::params().order(1).fit(&Corpus { lexicon, sentences }).unwrap();
    assert!(model.log_prob(&[WordId::UNK]).is_finite());
}

#[test]
fn pruned_models_agree_with_the_definition() {
    for min_counts in [vec![1, 2], vec![1, 1, 3], vec![1, 1, 2, 5]] {
        assert_agrees(Ngram::params().order(4).min_counts(min_counts), 400);
    }
}

#[test]
fn predictions_after_a_context_agree_with_the_definition() {
    let (params, train) = (Ngram::params().order(3), corpus(1, 400));
    let vocab = &train.lexicon.vocab;
    let definition = Definition::new(&train.sentences, vocab.len(), &params);
    let model = params.fit(&train).unwrap();
    for context in ["", "a", "c b", "a b a", "e zzz"] {
        let mut history = vec![BEGIN];
        history.extend(train.lexicon.ids(context).iter().map(|word| word.0));
        let history = &history[history.len().saturating_sub(2)..];
        for (id, word) in (0..).zip(vocab.words()) {
            let (found, expected) = (model.word_prob(context, word), definition.prob(history, id));
            // Log-probabilities are stored as `f32`.
            assert!((found - expected).abs() < 1e-5 * expected, "{context}: {word}");
        }
        assert_eq!(model.word_prob(context, "zzz"), model.word_prob(context, "<unk>"));
        let two = model.word_prob(context, "a") * model.word_prob(&format!("{context} a"), "b");
        assert!((model.word_prob(context, "a b") - two).abs() < 1e-12);

        let all = model.next_words(context, 1000);
        assert_eq!(all.len(), vocab.len());
        assert!((all.iter().map(|(_, p)| p).sum::<f64>() - 1.0).abs() < 1e-5);
        assert!(all.is_sorted_by(|a, b| a.1 >= b.1));
        assert!(all.iter().all(|&(word, p)| p == model.word_prob(context, word)));
        assert_eq!(model.next_words(context, 2), all[..2]);
    }
}
