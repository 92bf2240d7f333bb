//! Predictions of the next word after a text.

use crate::model::Ngram;
use latens_corpus::{EOS, UNK, WordId};
use latens_model::{LanguageModel, Scorer};

impl Ngram {
    /// Probability of `word` after `context`, the first words of a sentence.
    ///
    /// Both are preprocessed like the training text. The word may be `<eos>` or `<unk>`, and a word outside the
    /// vocabulary counts as `<unk>`. If preprocessing splits the word, the result is the probability of all its tokens in sequence.
    pub fn word_prob(&self, context: &str, word: &str) -> f64 {
        let words = match word {
            EOS => vec![WordId::EOS],
            UNK => vec![WordId::UNK],
            _ => self.lexicon.ids(word),
        };
        let mut scorer = self.scorer_after(context);
        words.into_iter().map(|word| scorer.read(word)).sum::<f64>().exp()
    }

    /// The `n` most likely words after `context`, the first words of a sentence, with their probabilities.
    ///
    /// `<unk>` and `<eos>` are words like any other.
    pub fn next_words(&self, context: &str, n: usize) -> Vec<(&str, f64)> {
        let mut log_probs = vec![0.0; self.n_words()];
        self.scorer_after(context).next_log_probs(&mut log_probs);
        let mut words: Vec<usize> = (0..log_probs.len()).collect();
        words.sort_by(|&a, &b| log_probs[b].total_cmp(&log_probs[a]).then(a.cmp(&b)));
        words.truncate(n);
        let word = |id: usize| (self.lexicon.vocab.word(WordId::from(id)), log_probs[id].exp());
        words.into_iter().map(word).collect()
    }

    /// A scorer that has read the words of `context`.
    fn scorer_after(&self, context: &str) -> Box<dyn Scorer + '_> {
        let mut scorer = self.scorer();
        self.lexicon.ids(context).into_iter().for_each(|word| {
            scorer.read(word);
        });
        scorer
    }
}
