//! `latens topics`: shows, infers, evaluates and draws topics.

mod eval;
mod infer;
mod map;

use crate::args::Common;
use crate::commands::roles::topic_model;
use crate::output::Output;
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use latens::corpus::WordId;
use latens::lda::Ranking;
use latens::lda::{Glda, Lda};
use latens::model::Model;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Show, infer, evaluate and draw topics
#[derive(Args)]
pub(crate) struct TopicsArgs {
    #[command(subcommand)]
    command: TopicsCommand,
}

#[derive(Subcommand)]
enum TopicsCommand {
    Show(ShowArgs),
    Infer(Box<infer::InferArgs>),
    Eval(Box<eval::EvalArgs>),
    Map(map::MapArgs),
}

/// Show the words of each topic
///
/// Reads a topic model and prints one line per topic with its top words.
#[derive(Args)]
struct ShowArgs {
    /// Topic model
    model: PathBuf,
    #[command(flatten)]
    words: TopWordArgs,
}

/// Selection of the top words of a topic.
#[derive(Args)]
struct TopWordArgs {
    /// Number of words per topic
    #[arg(long, value_name = "N", default_value_t = 15)]
    n_words: usize,
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
struct Topic {
    topic: usize,
    words: Vec<String>,
}

pub(crate) fn run(args: &TopicsArgs, common: &Common, output: &Output) -> Result<()> {
    match &args.command {
        TopicsCommand::Show(args) => show(args, output),
        TopicsCommand::Infer(args) => infer::run(args, common, output),
        TopicsCommand::Eval(args) => eval::run(args, output),
        TopicsCommand::Map(args) => map::run(args, output),
    }
}

fn show(args: &ShowArgs, output: &Output) -> Result<()> {
    let model = &*latens::open(&args.model)?;
    let topics = args.words.topics(model, &args.model)?;
    output.result(&json!({ "topics": topics }), |out| {
        topics.iter().try_for_each(|t| writeln!(out, "{:3}  {}", t.topic, t.words.join(" ")))
    })
}

impl TopWordArgs {
    /// The top words of each topic.
    fn topics(&self, model: &dyn Model, path: &Path) -> Result<Vec<Topic>> {
        let n_topics = topic_model(model, path)?.n_topics();
        let vocab = &model.lexicon().vocab;
        let topic = |topic: usize| {
            let words = self.of_topic(model, topic);
            let words = words.into_iter().map(|word| vocab.word(word).to_owned()).collect();
            Topic { topic, words }
        };
        Ok((0..n_topics).map(topic).collect())
    }

    fn of_topic(&self, model: &dyn Model, topic: usize) -> Vec<WordId> {
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
