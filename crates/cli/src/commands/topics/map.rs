use super::top_words::{TopWordArgs, prevalence, word_weights};
use crate::commands::roles::topic_model;
use crate::data::pictures::check_picture;
use crate::output::Output;
use anyhow::{Result, bail};
use clap::Args;
use latens::corpus::WordId;
use latens::model::{Model, WordVectors};
use latens::store::write_atomically;
use latens::tasks::plot::{MapWord, TopicCircle, topic_circles, topic_map};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Plot topics in two dimensions
///
/// Reads a topic model. Topics of LDA are circles: similar topics are near each other, and the area is the prevalence. For
/// Gaussian topics, draws the top words at the first two principal components of their vectors, colored by topic. The
/// extension `.html` writes a web page.
#[derive(Args)]
pub(crate) struct MapArgs {
    /// Topic model
    model: PathBuf,
    #[command(flatten)]
    words: TopWordArgs,
    /// Topics to plot, e.g., `0,3,17` [default: all topics of LDA, the first nine Gaussian topics]
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    topics: Vec<usize>,
    /// Path of the plot to write, `.svg` or `.html`
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

pub(super) fn run(args: &MapArgs, output: &Output) -> Result<()> {
    check_picture(Some(&args.output), &["svg", "html"])?;
    let model = &*latens::open(&args.model)?;
    let n_topics = topic_model(model, &args.model)?.n_topics();
    if let Some(&topic) = args.topics.iter().find(|&&topic| topic >= n_topics) {
        bail!("unknown topic {topic}: topics are numbered 0 to {}", n_topics - 1);
    }
    let (picture, n_words) = match model.word_vectors() {
        Some(vectors) => words_map(args, model, n_topics, &vectors),
        None => circles_map(args, model, n_topics),
    };
    let is_page =
        args.output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html"));
    let text = if is_page {
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>Topics</title>\n{picture}")
    } else {
        picture
    };
    write_atomically(&args.output, |out| out.write_all(text.as_bytes()))?;
    let path = args.output.display().to_string();
    let result = json!({ "path": path, "words": n_words });
    output.result(&result, |out| writeln!(out, "wrote `{path}`: {} words", n_words))
}

/// The map of the words of Gaussian topics, and their number.
fn words_map(
    args: &MapArgs,
    model: &dyn Model,
    n_topics: usize,
    vectors: &WordVectors,
) -> (String, usize) {
    let topics =
        if args.topics.is_empty() { (0..n_topics.min(9)).collect() } else { args.topics.clone() };
    let mut words = Vec::new();
    for &topic in &topics {
        for word in args.words.of_topic(model, topic) {
            let Some(vector) = vectors.get(word) else { continue };
            words.push(MapWord { word: model.lexicon().vocab.word(word), topic, vector });
        }
    }
    (topic_map(&words), words.len())
}

/// The map of topics as circles, and the number of words in their labels.
fn circles_map(args: &MapArgs, model: &dyn Model, n_topics: usize) -> (String, usize) {
    /// Number of words in a label.
    const N_WORDS: usize = 3;
    let topics: Vec<usize> =
        if args.topics.is_empty() { (0..n_topics).collect() } else { args.topics.clone() };
    let (prevalence, weights) = (prevalence(model), word_weights(model));
    let n_words = model.lexicon().vocab.len();
    let circle = |&topic: &usize| {
        let label: Vec<&str> = args
            .words
            .of_topic(model, topic)
            .into_iter()
            .take(N_WORDS)
            .map(|word| model.lexicon().vocab.word(word))
            .collect();
        let weight = |word: usize| weights[topic].get(&WordId::from(word)).copied().unwrap_or(0.0);
        TopicCircle {
            topic,
            label: label.join(" "),
            prevalence: prevalence[topic],
            words: (0..n_words).map(weight).collect(),
        }
    };
    let circles: Vec<TopicCircle> = topics.iter().map(circle).collect();
    (topic_circles(&circles), circles.len() * N_WORDS)
}
