use super::top_words::{TopWordArgs, WeightedWord, prevalence};
use crate::commands::roles::topic_model;
use crate::data::mixtures::Mixtures;
use crate::output::{Output, shown};
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

/// Show the words of each topic
///
/// Reads a topic model and prints one line per topic: its number, its prevalence (its share of the training tokens), and
/// its top words. With `--mixtures`, the documents with the largest shares of the topic follow. `--json` prints all of it,
/// with the weights of words: probabilities in the topic, or shares of the tokens of a Gaussian topic.
#[derive(Args)]
pub(crate) struct ShowArgs {
    /// Topic model
    model: PathBuf,
    #[command(flatten)]
    words: TopWordArgs,
    /// Print the weight of each word
    #[arg(long)]
    weights: bool,
    /// Mixtures of documents, written by `train --mixtures` or `topics infer`: show the best documents of each topic
    #[arg(long, value_name = "FILE")]
    mixtures: Option<PathBuf>,
    /// Number of documents per topic
    #[arg(long, value_name = "N", default_value_t = 3, requires = "mixtures")]
    n_documents: usize,
}

#[derive(Serialize)]
struct ShownTopic {
    topic: usize,
    prevalence: f64,
    words: Vec<WeightedWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<Vec<ShownDocument>>,
}

#[derive(Serialize)]
struct ShownDocument {
    id: String,
    share: f64,
}

pub(super) fn run(args: &ShowArgs, output: &Output) -> Result<()> {
    let model = &*latens::open(&args.model)?;
    let n_topics = topic_model(model, &args.model)?.n_topics();
    let mixtures = args.mixtures.as_ref().map(|path| Mixtures::open(path, n_topics)).transpose()?;
    let documents = |topic: usize| {
        let best = mixtures.as_ref()?.best(topic, args.n_documents).into_iter();
        Some(best.map(|(id, share)| ShownDocument { id: id.to_owned(), share }).collect())
    };
    let prevalence = prevalence(model);
    let topics: Vec<ShownTopic> = (0..n_topics)
        .map(|topic| ShownTopic {
            topic,
            prevalence: prevalence[topic],
            words: args.words.weighted(model, topic),
            documents: documents(topic),
        })
        .collect();
    output.result(&json!({ "topics": topics }), |out| {
        for topic in &topics {
            let word = |word: &WeightedWord| match args.weights {
                true => format!("{} {:.4}", shown(&word.word), word.weight),
                false => shown(&word.word).into_owned(),
            };
            let words: Vec<String> = topic.words.iter().map(word).collect();
            let words = words.join(if args.weights { ", " } else { " " });
            writeln!(out, "{:3} {:5.1} %  {words}", topic.topic, 100.0 * topic.prevalence)?;
            for ShownDocument { id, share } in topic.documents.iter().flatten() {
                writeln!(out, "      {share:.2}  {}", shown(id))?;
            }
        }
        Ok(())
    })
}
