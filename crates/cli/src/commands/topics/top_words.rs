//! The top words of topics.

use crate::commands::roles::topic_model;
use crate::output::shown_words;
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::corpus::WordId;
use latens::lda::{Glda, Lda, Ranking};
use latens::model::Model;
use serde::Serialize;
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
            _ => model.as_topic_model().map(|m| m.top_words(topic, n)).unwrap_or_default(),
        };
        words.into_iter().map(|(word, _)| word).collect()
    }
}
