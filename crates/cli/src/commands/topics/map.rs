use super::top_words::TopWordArgs;
use crate::commands::roles::topic_model;
use crate::errors::hinted;
use crate::output::Output;
use anyhow::{Result, ensure};
use clap::Args;
use latens::store::write_atomically;
use latens::tasks::plot::{MapWord, topic_map};

use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Draw the words of topics in a plane
///
/// Reads a Gaussian topic model and draws the top words of topics at the first two principal components of their vectors,
/// colored by topic. The extension `.html` writes a web page.
#[derive(Args)]
pub(crate) struct MapArgs {
    /// Gaussian topic model
    model: PathBuf,
    #[command(flatten)]
    words: TopWordArgs,
    /// Topics to draw, e.g., `0,3,17` [default: the first nine]
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    topics: Vec<usize>,
    /// Path of the drawing to write, `.svg` or `.html`
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

pub(super) fn run(args: &MapArgs, output: &Output) -> Result<()> {
    let model = &*latens::open(&args.model)?;
    let n_topics = topic_model(model, &args.model)?.n_topics();
    let Some(vectors) = model.word_vectors() else {
        let what = model.description();
        return Err(hinted(
            format!("`{}` is {what}, which has no word vectors", args.model.display()),
            "train a Gaussian topic model with `latens train glda`",
        ));
    };
    let topics =
        if args.topics.is_empty() { (0..n_topics.min(9)).collect() } else { args.topics.clone() };
    let mut words = Vec::new();
    for &topic in &topics {
        ensure!(
            topic < n_topics,
            "unknown topic {topic}: topics are numbered 0 to {}",
            n_topics - 1
        );
        for word in args.words.of_topic(model, topic) {
            let Some(vector) = vectors.get(word) else { continue };
            words.push(MapWord { word: model.lexicon().vocab.word(word), topic, vector });
        }
    }
    let picture = topic_map(&words);
    let is_page = args.output.extension().is_some_and(|extension| extension == "html");
    let text = if is_page {
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>Topics</title>\n{picture}")
    } else {
        picture
    };
    write_atomically(&args.output, |out| out.write_all(text.as_bytes()))?;
    let path = args.output.display().to_string();
    let result = json!({ "path": path, "words": words.len() });
    output.result(&result, |out| writeln!(out, "wrote `{path}`: {} words", words.len()))
}
