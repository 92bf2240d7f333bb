//! Checks of language models.

use latens_corpus::{Sentences, WordId};
use latens_math::{Rng, log_sum_exp};
use latens_model::{LanguageModel, Scorer};

/// Tolerance for probabilities that are stored as `f32`.
const TOLERANCE: f64 = 1e-6;
/// Number of sentences to check. Every token needs a sum over the whole vocabulary.
const N_SENTENCES: usize = 20;

/// Checks the contract of a language model on a text and on unseen histories:
///
/// - After every history, the probabilities of the next word sum to one, and none is above one or NaN.
/// - [`Scorer::read`] returns what [`Scorer::next_log_probs`] predicted, which itself reads nothing.
/// - [`LanguageModel::log_prob`] is the sum over the words of a new scorer.
/// - [`LanguageModel::token_log_probs`] are those of a new scorer, and [`LanguageModel::text_log_prob`] is their sum.
/// - A model whose [`LanguageModel::forgets_sentences`] is true forgets each sentence at its end.
///
/// # Panics
/// If the check fails.
pub fn check_language_model(model: &dyn LanguageModel, sentences: &Sentences) {
    assert!(!sentences.is_empty(), "the check needs at least one sentence");
    let histories = unseen_histories(model.n_words());
    let sentences: Vec<&[WordId]> = sentences.iter().take(N_SENTENCES).collect();
    for history in sentences.iter().copied().chain(histories.iter().map(Vec::as_slice)) {
        check_history(model, history);
        check_log_prob(model, history);
    }
    check_text(model, &sentences.concat());
    if model.forgets_sentences() {
        check_forgetting(model, &sentences);
    }
}

/// Unusual histories: only unknown words, only end-of-sentence tokens, and random words.
fn unseen_histories(n_words: usize) -> Vec<Vec<WordId>> {
    let mut rng = Rng::new(1);
    let random = (0..12).map(|_| WordId::from((rng.uniform() * n_words as f64) as usize)).collect();
    let last = WordId::from(n_words - 1);
    vec![
        vec![],
        vec![WordId::UNK; 5],
        vec![WordId::EOS; 3],
        vec![last, WordId::UNK, last, WordId::EOS, WordId::UNK, last],
        random,
    ]
}

fn check_history(model: &dyn LanguageModel, history: &[WordId]) {
    let mut scorer = model.scorer();
    let mut predicted = next_log_probs(model, &mut *scorer, &[]);
    for (i, &word) in history.iter().enumerate() {
        let again = next_log_probs(model, &mut *scorer, &history[..i]);
        assert_eq!(
            predicted,
            again,
            "`next_log_probs` changed the scorer after {:?}",
            &history[..i]
        );
        let read = scorer.read(word);
        assert_close(read, predicted[word.index()], || {
            format!("`read` and `next_log_probs` of {word:?} after {:?}", &history[..i])
        });
        predicted = next_log_probs(model, &mut *scorer, &history[..=i]);
    }
}

fn next_log_probs(
    model: &dyn LanguageModel,
    scorer: &mut dyn Scorer,
    history: &[WordId],
) -> Vec<f64> {
    // NaN reveals entries that the model does not write.
    let mut log_probs = vec![f64::NAN; model.n_words()];
    scorer.next_log_probs(&mut log_probs);
    for (word, &log_prob) in log_probs.iter().enumerate() {
        assert!(log_prob <= TOLERANCE, "ln p of word {word} after {history:?} is {log_prob}");
    }
    let sum = log_sum_exp(&log_probs).exp();
    assert!((sum - 1.0).abs() <= TOLERANCE, "probabilities after {history:?} sum to {sum}");
    log_probs
}

fn check_log_prob(model: &dyn LanguageModel, sentence: &[WordId]) {
    let mut scorer = model.scorer();
    let sum: f64 = sentence.iter().map(|&word| scorer.read(word)).sum();
    assert_close(model.log_prob(sentence), sum, || {
        format!("`log_prob` and the sum over the scorer's words for {sentence:?}")
    });
}

fn check_text(model: &dyn LanguageModel, text: &[WordId]) {
    let mut scorer = model.scorer();
    let expected: Vec<f64> = text.iter().map(|&word| scorer.read(word)).collect();
    assert_close(model.text_log_prob(text), expected.iter().sum(), || {
        "`text_log_prob` and the sum over the scorer's words for running text".to_owned()
    });
    let found = model.token_log_probs(text);
    assert_eq!(found.len(), text.len(), "`token_log_probs` has one entry per word");
    for (i, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
        assert_close(found, expected, || {
            format!("`token_log_probs` and the scorer's words at {i} of running text")
        });
    }
}

fn check_forgetting(model: &dyn LanguageModel, sentences: &[&[WordId]]) {
    let mut scorer = model.scorer();
    for sentence in sentences {
        let running: f64 = sentence.iter().map(|&word| scorer.read(word)).sum();
        assert_close(running, model.log_prob(sentence), || {
            format!("ln p in running text and with a new scorer for {sentence:?}")
        });
    }
}

fn assert_close(a: f64, b: f64, what: impl Fn() -> String) {
    // Two zero probabilities are equal, but their difference is NaN.
    let close = a == b || (a - b).abs() <= TOLERANCE * b.abs().max(1.0);
    assert!(close, "{} differ: {a} and {b}", what());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{complaint, two_class_corpus};

    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        SumsToMore,
        AboveOne,
        NanAfterUnknown,
        SkipsAWord,
        NextReads,
        ReadDisagrees,
        LogProbDisagrees,
        TextDisagrees,
        TokensDisagree,
        Remembers,
    }

    /// A bigram model with add-one smoothing and a fault.
    struct Bigrams {
        log_probs: Vec<Vec<f64>>,
        fault: Fault,
    }

    struct BigramScorer<'a> {
        model: &'a Bigrams,
        last: WordId,
    }

    impl Bigrams {
        fn fit(sentences: &Sentences, n_words: usize, fault: Fault) -> Bigrams {
            // The unknown word does not occur, so its probability is zero.
            let one = |word| if word == WordId::UNK.index() { 0.0 } else { 1.0 };
            let mut counts = vec![(0..n_words).map(one).collect::<Vec<f64>>(); n_words];
            let mut last = WordId::EOS;
            for &word in sentences.tokens() {
                counts[last.index()][word.index()] += 1.0;
                last = word;
            }
            for row in &mut counts {
                let total: f64 = row.iter().sum();
                row.iter_mut().for_each(|n| *n = (*n / total).ln());
            }
            Bigrams { log_probs: counts, fault }
        }
    }

    impl LanguageModel for Bigrams {
        fn n_words(&self) -> usize {
            self.log_probs.len()
        }

        fn scorer(&self) -> Box<dyn Scorer + '_> {
            Box::new(BigramScorer { model: self, last: WordId::EOS })
        }

        fn forgets_sentences(&self) -> bool {
            true
        }

        fn log_prob(&self, sentence: &[WordId]) -> f64 {
            let mut scorer = self.scorer();
            let sum: f64 = sentence.iter().map(|&word| scorer.read(word)).sum();
            if self.fault == Fault::LogProbDisagrees { sum - 1e-3 } else { sum }
        }

        fn text_log_prob(&self, text: &[WordId]) -> f64 {
            let mut scorer = self.scorer();
            let sum: f64 = text.iter().map(|&word| scorer.read(word)).sum();
            if self.fault == Fault::TextDisagrees { sum * 1.001 } else { sum }
        }

        fn token_log_probs(&self, text: &[WordId]) -> Vec<f64> {
            let mut scorer = self.scorer();
            let mut log_probs: Vec<f64> = text.iter().map(|&word| scorer.read(word)).collect();
            if self.fault == Fault::TokensDisagree {
                log_probs.reverse();
            }
            log_probs
        }
    }

    impl Scorer for BigramScorer<'_> {
        fn read(&mut self, word: WordId) -> f64 {
            let log_prob = self.model.log_probs[self.last.index()][word.index()];
            if self.model.fault != Fault::Remembers || word != WordId::EOS {
                self.last = word;
            }
            if self.model.fault == Fault::ReadDisagrees { log_prob - 1e-3 } else { log_prob }
        }

        fn next_log_probs(&mut self, out: &mut [f64]) {
            let begin = usize::from(self.model.fault == Fault::SkipsAWord);
            out[begin..].copy_from_slice(&self.model.log_probs[self.last.index()][begin..]);
            match self.model.fault {
                Fault::SumsToMore => out[3] += 0.01,
                Fault::AboveOne => out[0] = 0.01,
                Fault::NanAfterUnknown if self.last == WordId::UNK => out[2] = f64::NAN,
                Fault::NextReads => self.last = WordId(2),
                _ => {}
            }
        }
    }

    fn check(fault: Fault) {
        let corpus = two_class_corpus(100, 1);
        let model = Bigrams::fit(&corpus.sentences, corpus.lexicon.vocab.len(), fault);
        check_language_model(&model, &corpus.sentences);
    }

    #[test]
    fn a_correct_model_passes_even_with_a_word_of_probability_zero() {
        check(Fault::None);
    }

    #[test]
    fn every_fault_is_detected() {
        let faults = [
            (Fault::SumsToMore, "sum to"),
            (Fault::AboveOne, "ln p of word 0 after [] is 0.01"),
            (Fault::NanAfterUnknown, "is NaN"),
            (Fault::SkipsAWord, "is NaN"),
            (Fault::NextReads, "`next_log_probs` changed the scorer"),
            (Fault::ReadDisagrees, "`read` and `next_log_probs`"),
            (Fault::LogProbDisagrees, "`log_prob` and the sum"),
            (Fault::TextDisagrees, "for running text"),
            (Fault::TokensDisagree, "of running text"),
            (Fault::Remembers, "with a new scorer"),
        ];
        for (fault, expected) in faults {
            let complaint = complaint(|| check(fault));
            assert!(complaint.contains(expected), "{expected}: {complaint}");
        }
    }
}
