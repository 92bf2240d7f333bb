//! Shares of topics, and the weights of their words.

use crate::glda::Glda;
use crate::lda::Lda;
use crate::top_words::Ranking;
use latens_corpus::WordId;

/// A word with tokens in a topic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicWord {
    /// The word.
    pub word: WordId,
    /// Number of its tokens in the topic at the end of training.
    pub count: f64,
    /// LDA: its probability in the topic. Gaussian LDA: its share of the tokens of the topic.
    pub weight: f64,
}

impl Lda {
    /// The share of the training tokens of each topic.
    pub fn prevalence(&self) -> Vec<f64> {
        shares(&self.topic_sizes())
    }

    /// The words with tokens in a topic, most frequent first.
    ///
    /// # Panics
    /// If `topic` is out of range.
    pub fn counted_words(&self, topic: usize) -> Vec<TopicWord> {
        let words = self.ranked_words(topic, usize::MAX, Ranking::Count).into_iter();
        let counted = |(word, count): (WordId, f32)| TopicWord {
            word,
            count: f64::from(count),
            weight: self.prob(topic, word),
        };
        words.map(counted).collect()
    }
}

impl Glda {
    /// The share of the training tokens of each topic.
    pub fn prevalence(&self) -> Vec<f64> {
        shares(&self.topic_sizes())
    }

    /// The words with tokens in a topic, most frequent first.
    ///
    /// # Panics
    /// If `topic` is out of range.
    pub fn counted_words(&self, topic: usize) -> Vec<TopicWord> {
        let words = self.ranked_words(topic, usize::MAX, Ranking::Count);
        let total: f64 = words.iter().map(|&(_, count)| f64::from(count)).sum();
        let counted = |(word, count): (WordId, f32)| {
            let count = f64::from(count);
            TopicWord { word, count, weight: count / total }
        };
        words.into_iter().map(counted).collect()
    }
}

fn shares(sizes: &[u64]) -> Vec<f64> {
    let total = sizes.iter().sum::<u64>().max(1) as f64;
    sizes.iter().map(|&size| size as f64 / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::Documents;
    use latens_model::{Fit, TopicModel};

    #[test]
    fn counts_and_prevalences_add_up_to_the_training_tokens() {
        let texts = ["cat dog dog cat", "sun moon star", "cat cat dog", "moon star sun sun"];
        let corpus = Documents::from_texts(texts).unwrap();
        let lda = Lda::params().n_topics(2).n_iterations(10).fit(&corpus).unwrap();
        let total: f64 = lda.prevalence().iter().sum();
        assert!((total - 1.0).abs() < 1e-12);
        let words: Vec<TopicWord> = (0..2).flat_map(|topic| lda.counted_words(topic)).collect();
        assert_eq!(words.iter().map(|word| word.count).sum::<f64>(), 14.0);
        let first = lda.counted_words(0);
        assert!(first.is_sorted_by(|a, b| a.count >= b.count));
        for word in first {
            assert_eq!(word.weight, lda.prob(0, word.word));
        }
        assert_eq!(lda.n_topics(), 2);
    }
}
