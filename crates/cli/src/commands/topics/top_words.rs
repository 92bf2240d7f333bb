//! The top words of topics.

use crate::commands::roles::topic_model;
use crate::output::shown_words;
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::corpus::WordId;
use latens::lda::{Glda, Lda, Ranking};
use latens::model::Model;
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;

/// Selection of the top words of a topic.
#[derive(Args)]
pub(super) struct TopWordArgs {
    /// Number of words per topic
    #[arg(long, value_name = "N", default_value_t = 15)]
    pub(super) n_words: usize,
    /// Ranking of words [default: count for Gaussian topics, otherwise density]
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<RankingArg>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RankingArg {
    /// Density at the word's vector (Gaussian topics; words with at least 5 occurrences) or probability of the word
    Density,
    /// Number of tokens of the word in the topic
    Count,
    /// Count times the fraction of the word's tokens in the topic
    Distinctive,
}

/// A word and its weight in a topic: its probability, or its share of the tokens of a Gaussian topic.
#[derive(Serialize)]
pub(super) struct WeightedWord {
    pub(super) word: String,
    pub(super) weight: f64,
}

/// The share of the training tokens of each topic.
pub(super) fn prevalence(model: &dyn Model) -> Vec<f64> {
    match (model.downcast_ref::<Lda>(), model.downcast_ref::<Glda>()) {
        (Some(lda), _) => lda.prevalence(),
        (_, Some(glda)) => glda.prevalence(),
        _ => Vec::new(),
    }
}

/// The weights of all words of each topic.
pub(super) fn word_weights(model: &dyn Model) -> Vec<HashMap<WordId, f64>> {
    let n_topics = model.as_topic_model().map_or(0, |model| model.n_topics());
    (0..n_topics).map(|topic| weights_of(model, topic)).collect()
}

/// The weights of the words that have tokens in a topic.
fn weights_of(model: &dyn Model, topic: usize) -> HashMap<WordId, f64> {
    let words = match (model.downcast_ref::<Lda>(), model.downcast_ref::<Glda>()) {
        (Some(lda), _) => lda.counted_words(topic),
        (_, Some(glda)) => glda.counted_words(topic),
        _ => Vec::new(),
    };
    words.into_iter().map(|word| (word.word, word.weight)).collect()
}

/// A topic and its top words.
#[derive(Serialize)]
pub(super) struct Topic {
    pub(super) topic: usize,
    pub(super) words: Vec<String>,
}

impl Topic {
    /// The words in one line of text.
    pub(super) fn line(&self) -> String {
        shown_words(self.words.iter().map(String::as_str))
    }
}

impl TopWordArgs {
    /// The first `n` words, in the order of the model.
    pub(super) fn first(n_words: usize) -> TopWordArgs {
        TopWordArgs { n_words, by: None }
    }

    /// The top words of each topic.
    pub(super) fn topics(&self, model: &dyn Model, path: &Path) -> Result<Vec<Topic>> {
        let n_topics = topic_model(model, path)?.n_topics();
        let vocab = &model.lexicon().vocab;
        let topic = |topic: usize| {
            let words = self.of_topic(model, topic);
            let words = words.into_iter().map(|word| vocab.word(word).to_owned()).collect();
            Topic { topic, words }
        };
        Ok((0..n_topics).map(topic).collect())
    }

    /// The top words of a topic with their weights.
    pub(super) fn weighted(&self, model: &dyn Model, topic: usize) -> Vec<WeightedWord> {
        let (vocab, weights) = (&model.lexicon().vocab, weights_of(model, topic));
        let words = self.of_topic(model, topic).into_iter();
        words
            .map(|word| WeightedWord {
                word: vocab.word(word).to_owned(),
                weight: weights.get(&word).copied().unwrap_or(0.0),
            })
            .collect()
    }

    pub(super) fn of_topic(&self, model: &dyn Model, topic: usize) -> Vec<WordId> {
        let by = self.by.map(|by| match by {
            RankingArg::Density => Ranking::Density,
            RankingArg::Count => Ranking::Count,
            RankingArg::Distinctive => Ranking::Distinctive,
        });
        let n = self.n_words;
        let (lda, glda) = (model.downcast_ref::<Lda>(), model.downcast_ref::<Glda>());
        let words = match (by, lda, glda) {
            (Some(by), Some(lda), _) => lda.ranked_words(topic, n, by),
            (Some(by), _, Some(glda)) => glda.ranked_words(topic, n, by),
            _ => model.as_topic_model().map(|m| m.top_word_ids(topic, n)).unwrap_or_default(),
        };
        words.into_iter().map(|(word, _)| word).collect()
    }
}
