use super::top_words::TopWordArgs;
use crate::args::{Common, DocumentArgs};
use crate::commands::roles::topic_model;
use crate::data::mixtures;
use crate::data::pictures::check_picture;
use crate::errors::hinted;
use crate::output::{Output, shown, thousands};
use crate::reading::watched;
use anyhow::{Result, ensure};
use clap::Args;
use latens::corpus::{Documents, Inputs};
use latens::lda::InferenceParams;
use latens::store::write_atomically;
use latens::tasks::plot::{Series, SeriesPoint, series_plot};
use latens::tasks::trend::{Bin, Prevalence, trend};
use serde::Serialize;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Measure the prevalence of topics over time, or per value of a column
///
/// Reads a topic model and documents with a column such as a year or an author, infers the mixtures of the documents, and
/// prints one row per value and topic: the mean share of the topic, and its 95 % confidence interval (mean ± 1.96 standard
/// errors over documents). `--bin` groups dates and numbers.
#[derive(Args)]
pub(crate) struct TrendArgs {
    /// Topic model
    model: PathBuf,
    #[command(flatten)]
    text: DocumentArgs,
    /// Column, or key of JSON objects, whose values are compared; `label` is the label of documents
    #[arg(long, value_name = "COLUMN")]
    by: String,
    /// Group values: `year`, `month` or `decade` of dates such as 2024-05-17, or the width of intervals of numbers
    #[arg(long, value_name = "BIN")]
    bin: Option<Bin>,
    /// Topics to measure, e.g., `0,3,17` [default: all; in a plot, the nine most prevalent]
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    topics: Vec<usize>,
    /// Path of the table to write, `.tsv` or `.csv` [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Path of a plot to write, `.svg`
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row<'a> {
    value: &'a str,
    topic: usize,
    prevalence: f64,
    low: f64,
    high: f64,
    documents: usize,
}

pub(super) fn run(args: &TrendArgs, common: &Common, output: &Output) -> Result<()> {
    mixtures::check_table(args.output.as_deref())?;
    check_picture(args.plot.as_deref(), &["svg"])?;
    let model = &*latens::open(&args.model)?;
    let n_topics = topic_model(model, &args.model)?.n_topics();
    for &topic in &args.topics {
        ensure!(
            topic < n_topics,
            "unknown topic {topic}: topics are numbered 0 to {}",
            n_topics - 1
        );
    }
    let (inputs, has_column) = (args.text.inputs()?, args.text.reading.label_column.is_some());
    let (documents, values) =
        read_by_column(inputs, &args.by, has_column, model.lexicon(), output)?;
    let found = mixtures::infer(model, &documents, InferenceParams::default().seed(common.seed))?;
    let shares: Vec<&[f32]> = found.iter().map(|found| found.mixture.as_slice()).collect();
    let groups = trend(&values, &shares, args.bin).map_err(|error| {
        let hint = "omit `--bin` to compare the values as they are";
        hinted(format!("cannot group the column `{}`: {error}", args.by), hint)
    })?;
    let n_left_out = values.iter().filter(|value| value.is_empty()).count();
    if n_left_out > 0 {
        let n = thousands(n_left_out);
        output.note(&format!("{n} documents have no value in `{}` and are left out", args.by));
    }
    let topics: Vec<usize> =
        if args.topics.is_empty() { (0..n_topics).collect() } else { args.topics.clone() };
    let rows: Vec<Row<'_>> = groups
        .iter()
        .flat_map(|group| {
            topics.iter().map(|&topic| {
                let Prevalence { mean, low, high } = group.topics[topic];
                let (value, documents) = (group.value.as_str(), group.n_documents);
                Row { value, topic, prevalence: mean, low, high, documents }
            })
        })
        .collect();
    if let Some(path) = &args.plot {
        let mut drawn = topics.clone();
        if args.topics.is_empty() {
            let sum = |topic: usize| groups.iter().map(|g| g.topics[topic].mean).sum::<f64>();
            drawn.sort_by(|&a, &b| sum(b).total_cmp(&sum(a)));
            drawn.truncate(9);
        }
        let picture = plot(args, model, &groups, &drawn);
        write_atomically(path, |out| out.write_all(picture.as_bytes()))?;
    }
    if let Some(path) = &args.output {
        mixtures::save_rows(path, &rows)?;
    }
    let result = json!({ "rows": rows });
    match &args.output {
        Some(path) if !output.is_json() => {
            let name = path.display().to_string();
            output.result(&result, |out| {
                writeln!(out, "wrote `{}`: {} values", shown(&name), groups.len())
            })
        }
        _ => output.result(&result, |out| mixtures::write_rows(&rows, b'\t', out)),
    }
}

/// Reads documents and their values of a column. `label` is the label of documents, unless a column holds it.
pub(crate) fn read_by_column(
    inputs: Inputs,
    by: &str,
    has_label_column: bool,
    lexicon: &latens::corpus::Lexicon,
    output: &Output,
) -> Result<(Documents, Vec<String>)> {
    let is_folder = inputs.paths.iter().any(|path| path.is_dir());
    let of_label = by == "label" && (is_folder || !has_label_column);
    let mut columns = inputs.columns.clone();
    if !of_label {
        columns.kept = vec![by.to_owned()];
    }
    let inputs = watched(inputs.columns(columns), output);
    let documents = Documents::read_with(&inputs, lexicon)?;
    let value = |idx: usize| match of_label {
        true => documents.get(idx).label,
        false => documents.value(by, idx).unwrap_or_default(),
    };
    let values = (0..documents.len()).map(|idx| value(idx).trim().to_owned()).collect();
    Ok((documents, values))
}

fn plot(
    args: &TrendArgs,
    model: &dyn latens::model::Model,
    groups: &[latens::tasks::trend::Group],
    topics: &[usize],
) -> String {
    let names = TopWordArgs::first(3);
    let series: Vec<Series> = topics
        .iter()
        .map(|&topic| {
            let words = names.of_topic(model, topic).into_iter();
            let words: Vec<&str> = words.map(|word| model.lexicon().vocab.word(word)).collect();
            let point = |group: &latens::tasks::trend::Group| {
                let Prevalence { mean, low, high } = group.topics[topic];
                SeriesPoint { value: mean, low, high }
            };
            let name = format!("{topic}: {}", words.join(" "));
            Series { name, points: groups.iter().map(point).collect() }
        })
        .collect();
    let values: Vec<&str> = groups.iter().map(|group| group.value.as_str()).collect();
    series_plot(&args.by, "share of the topic", &values, &series)
}
