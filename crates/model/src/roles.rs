//! What a fitted model can be used for. A model has one or more of four roles.

use crate::features::FeatureRows;
use latens_corpus::WordId;
use thiserror::Error;

/// Features of each token, in the context of its sentence.
pub trait TokenEncoder: Send + Sync {
    /// How many columns there are; every column of a row is below this.
    fn n_features(&self) -> usize;

    /// Appends one sparse row per token; a dense encoder fills every column.
    ///
    /// A [`WordId::EOS`] in `sentence` is a token like any other: whether the end of the sentence
    /// gets a row is the caller's choice. An empty sentence appends nothing.
    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows);
}

impl<E: TokenEncoder + ?Sized> TokenEncoder for &E {
    fn n_features(&self) -> usize {
        (**self).n_features()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        (**self).encode(sentence, out);
    }
}

/// Probabilities of running text. Natural logarithms; sentences end with [`WordId::EOS`].
pub trait LanguageModel: Send + Sync {
    /// How many words share the probability: ids below this, [`WordId::UNK`] and [`WordId::EOS`]
    /// among them.
    fn n_words(&self) -> usize;

    /// A scorer that has read nothing yet.
    fn scorer(&self) -> Box<dyn Scorer + '_>;

    /// Whether a scorer that has read the end of a sentence is like a new one, so that sentences
    /// can be scored apart, by many threads.
    fn forgets_sentences(&self) -> bool {
        false
    }

    /// ln p of one sentence from a fresh start; override where a whole sentence is cheaper.
    fn log_prob(&self, sentence: &[WordId]) -> f64 {
        self.text_log_prob(sentence)
    }

    /// ln p of running text, sentence after sentence, from a fresh start; override where many words are
    /// cheaper together. It is the sum of what one scorer returns, up to rounding.
    fn text_log_prob(&self, text: &[WordId]) -> f64 {
        let mut scorer = self.scorer();
        text.iter().map(|&word| scorer.read(word)).sum()
    }
}

/// A reader of running text that knows how likely each next word is.
///
/// What the end of a sentence does to the history is the model's own affair: an n-gram model
/// forgets it, a recurrent net carries it over. To start afresh, take a new scorer.
///
/// A word of probability zero scores −∞, and the scorer goes on from a valid state: what follows is
/// no NaN.
pub trait Scorer {
    /// Returns ln p(word | all words read so far), then reads `word`.
    ///
    /// # Panics
    /// If `word` is not below [`LanguageModel::n_words`].
    fn read(&mut self, word: WordId) -> f64;

    /// Writes ln p(w | all words read so far) to `out[w]` for every word w, and reads none of them:
    /// what sampling needs, and the proof that the probabilities sum to one.
    ///
    /// It takes `&mut self` for scratch memory only.
    ///
    /// # Panics
    /// If `out` has not [`LanguageModel::n_words`] entries.
    fn next_log_probs(&mut self, out: &mut [f64]);
}

/// Mixtures of topics for whole documents.
pub trait TopicModel: Send + Sync {
    /// How many topics there are.
    fn n_topics(&self) -> usize;

    /// θ_d: one entry a topic, non-negative, sums to one, also for an empty document.
    fn mixture(&self, document: &[WordId]) -> Vec<f32>;

    /// The `n` words that `topic` makes most likely, best first, with how likely it makes them;
    /// fewer if the vocabulary has fewer.
    ///
    /// # Panics
    /// If there is no such topic.
    fn top_words(&self, topic: usize, n: usize) -> Vec<(WordId, f32)>;
}

/// Tags of the words of sentences, such as their parts of speech.
///
/// Words come as they were written: every tagger does to them what was done to its training text.
pub trait Tagger: Send + Sync {
    /// The names of the tags.
    fn tags(&self) -> &[String];

    /// The tag of each word of a sentence, as a place in [`Tagger::tags`].
    fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError>;

    /// The column of parts of speech, counted from 0, that the tagger reads besides words, if it does.
    fn pos_column(&self) -> Option<usize> {
        None
    }

    /// Like [`Tagger::tag`], with what the sentence has in that column.
    fn tag_with_pos(&self, words: &[&str], pos: &[&str]) -> Result<Vec<u32>, TagError> {
        let _ = pos;
        self.tag(words)
    }

    /// How often the word was seen in training.
    fn n_seen(&self, word: &str) -> u64;
}

impl<T: Tagger + ?Sized> Tagger for &T {
    fn tags(&self) -> &[String] {
        (**self).tags()
    }

    fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError> {
        (**self).tag(words)
    }

    fn pos_column(&self) -> Option<usize> {
        (**self).pos_column()
    }

    fn tag_with_pos(&self, words: &[&str], pos: &[&str]) -> Result<Vec<u32>, TagError> {
        (**self).tag_with_pos(words, pos)
    }

    fn n_seen(&self, word: &str) -> u64 {
        (**self).n_seen(word)
    }
}

/// Why a sentence could not be tagged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagError {
    /// A word is new, and the tagger learned nothing of new words.
    #[error("the word `{word}` was not in the training text, and neither was any unknown word")]
    UnknownWord {
        /// The word, as it was written.
        word: String,
    },
    /// The tagger reads parts of speech, and the text has none.
    #[error("the tagger reads parts of speech in column {column}, and the text has no such column")]
    NoPartsOfSpeech {
        /// The column, counted from 1.
        column: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word is as likely as any other.
    struct Uniform(usize);

    impl LanguageModel for Uniform {
        fn n_words(&self) -> usize {
            self.0
        }

        fn scorer(&self) -> Box<dyn Scorer + '_> {
            Box::new(Uniform(self.0))
        }
    }

    impl Scorer for Uniform {
        fn read(&mut self, _: WordId) -> f64 {
            -(self.0 as f64).ln()
        }

        fn next_log_probs(&mut self, out: &mut [f64]) {
            out.fill(-(self.0 as f64).ln());
        }
    }

    #[test]
    fn the_log_prob_of_a_sentence_is_the_sum_over_its_words() {
        let model: &dyn LanguageModel = &Uniform(10);
        let sentence = [WordId(2), WordId::UNK, WordId::EOS];
        assert!((model.log_prob(&sentence) + 3.0 * 10f64.ln()).abs() < 1e-12);
        assert_eq!(model.log_prob(&[]), 0.0);
    }
}
