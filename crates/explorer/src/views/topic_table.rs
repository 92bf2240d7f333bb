//! The words of all topics, counted once per model.

use latens::corpus::WordId;
use latens::lda::{Glda, Lda, TopicWord};
use latens::model::Model;
use latens::tasks::plot::{TopicCircle, topic_places};
use std::collections::HashMap;

/// Topics with their words and their places on the map.
pub(crate) struct TopicTable {
    pub(crate) prevalence: Vec<f64>,
    /// The words with tokens in each topic, most frequent first.
    pub(crate) words: Vec<Vec<TopicWord>>,
    /// Number of tokens of each word in all topics.
    pub(crate) totals: Vec<f64>,
    pub(crate) n_tokens: f64,
    pub(crate) places: Vec<[f64; 2]>,
    /// The first words of each topic, as `latens topics show` orders them.
    pub(crate) names: Vec<Vec<String>>,
}

/// Number of words in the name of a topic.
const N_NAME: usize = 8;

impl TopicTable {
    /// The table of a topic model; without topics for other models.
    pub(crate) fn new(model: &dyn Model) -> TopicTable {
        let n_topics = model.as_topic_model().map_or(0, |model| model.n_topics());
        let (lda, glda) = (model.downcast_ref::<Lda>(), model.downcast_ref::<Glda>());
        let (prevalence, words): (Vec<f64>, Vec<Vec<TopicWord>>) = match (lda, glda) {
            (Some(lda), _) => {
                (lda.prevalence(), (0..n_topics).map(|topic| lda.counted_words(topic)).collect())
            }
            (_, Some(glda)) => {
                (glda.prevalence(), (0..n_topics).map(|topic| glda.counted_words(topic)).collect())
            }
            _ => (Vec::new(), Vec::new()),
        };
        let mut totals = vec![0.0; model.lexicon().vocab.len()];
        words.iter().flatten().for_each(|word| totals[word.word.index()] += word.count);
        let n_tokens = totals.iter().sum();
        let places = topic_places(&circles(&prevalence, &words, &totals));
        let names = (0..n_topics).map(|topic| top_words(model, topic, N_NAME)).collect();
        TopicTable { prevalence, words, totals, n_tokens, places, names }
    }

    /// Probability of a word in the training tokens.
    pub(crate) fn prob(&self, word: WordId) -> f64 {
        self.totals[word.index()] / self.n_tokens
    }
}

/// The first words of a topic.
pub(crate) fn top_words(model: &dyn Model, topic: usize, n: usize) -> Vec<String> {
    let words =
        model.as_topic_model().map(|model| model.top_word_ids(topic, n)).unwrap_or_default();
    words.into_iter().map(|(word, _)| model.lexicon().vocab.word(word).to_owned()).collect()
}

/// Topics as distributions over the most frequent words and all others as one, so that the distances between many topics
/// are computed in a moment.
fn circles(prevalence: &[f64], words: &[Vec<TopicWord>], totals: &[f64]) -> Vec<TopicCircle> {
    /// Limit on the number of terms of all distances.
    const MAX_TERMS: usize = 20_000_000;
    let n_columns = (MAX_TERMS / words.len().pow(2).max(1)).clamp(100, 2000);
    let frequent = super::text::largest(totals, n_columns);
    let column: HashMap<usize, usize> = frequent.into_iter().zip(0..).collect();
    let circle = |(topic, words): (usize, &Vec<TopicWord>)| {
        let mut weights = vec![0.0; column.len() + 1];
        for word in words {
            let at = column.get(&word.word.index()).copied().unwrap_or(column.len());
            weights[at] += word.weight;
        }
        TopicCircle { topic, label: String::new(), prevalence: prevalence[topic], words: weights }
    };
    words.iter().enumerate().map(circle).collect()
}
