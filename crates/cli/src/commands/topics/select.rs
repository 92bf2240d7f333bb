use crate::args::{Common, DocumentArgs};
use crate::cache::{CacheArgs, read_documents};
use crate::data::mixtures;
use crate::data::pictures::check_picture;
use crate::output::Output;
use crate::reading::watched;
use crate::train::DocumentWordArgs;
use anyhow::{Result, ensure};
use clap::Args;
use latens::corpus::{DocumentCorpus, WordId};
use latens::lda::{InferenceParams, Lda, LdaParams};
use latens::model::{Fit, Params};
use latens::store::write_atomically;
use latens::tasks::plot::{Series, SeriesPoint, series_plot};
use latens::tasks::stability::stability;
use latens::tasks::topics::Cooccurrences;
use serde::Serialize;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Compare numbers of topics
///
/// Trains LDA with each number of topics and several seeds, and prints one row per number: the coherence of the top words
/// (NPMI over the training documents), the perplexity of held-out documents by document completion, and the stability of
/// topics between seeds (mean Jaccard similarity of the top words of matched topics). Higher coherence and stability and lower
/// perplexity are better. Every tenth document is held out.
#[derive(Args)]
pub(crate) struct SelectArgs {
    #[command(flatten)]
    text: DocumentArgs,
    #[command(flatten)]
    words: DocumentWordArgs,
    /// Numbers of topics to compare, e.g., `10,20,50,100`
    #[arg(long, required = true, value_delimiter = ',', value_name = "N,...")]
    k: Vec<usize>,
    /// Number of seeds per number of topics
    #[arg(long, value_name = "N", default_value_t = 2)]
    n_seeds: u64,
    /// Number of Gibbs sampling iterations over all tokens
    #[arg(long, value_name = "N", default_value_t = LdaParams::default().n_iterations)]
    n_iterations: usize,
    /// Number of top words per topic
    #[arg(long, value_name = "N", default_value_t = 10)]
    n_words: usize,
    /// Path of the table to write, `.tsv` or `.csv` [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Path of a plot to write, `.svg`
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Means over seeds.
#[derive(Serialize)]
struct Row {
    k: usize,
    npmi: Option<f64>,
    perplexity: f64,
    /// Absent with a single seed.
    stability: Option<f64>,
}

/// Every document with this remainder is held out.
const HELD_OUT: usize = 10;

pub(super) fn run(args: &SelectArgs, common: &Common, output: &Output) -> Result<()> {
    mixtures::check_table(args.output.as_deref())?;
    check_picture(args.plot.as_deref(), &["svg"])?;
    ensure!(args.n_seeds > 0, "`--n-seeds` must be at least 1, got 0");
    let params =
        |k: usize, seed: u64| Lda::params().n_topics(k).n_iterations(args.n_iterations).seed(seed);
    args.k.iter().try_for_each(|&k| params(k, 1).check())?;
    let inputs = watched(args.text.inputs()?, output);
    let (words, cache) = (args.words.words()?, CacheArgs { cache: None });
    let all = read_documents(&inputs, &words, args.words.vocab.as_deref(), &cache)?;
    let DocumentCorpus { lexicon, documents } = all;
    ensure!(documents.len() >= HELD_OUT, "at least {HELD_OUT} documents are needed");
    let (held_out, training) = documents.split(|idx| idx % HELD_OUT == HELD_OUT - 1);
    let corpus = DocumentCorpus { lexicon, documents: training };
    let mut rows = Vec::new();
    for &k in &args.k {
        let mut topics: Vec<Vec<Vec<String>>> = Vec::new();
        let (mut npmi, mut perplexity) = (Vec::new(), Vec::new());
        for seed in (0..args.n_seeds).map(|i| common.seed.wrapping_add(i)) {
            let model = params(k, seed).fit(&corpus)?;
            let inference = InferenceParams::default().seed(seed).validate()?;
            perplexity.push(model.completion(&held_out, &inference).perplexity());
            let found = top_words(&model, args.n_words);
            npmi.extend(coherence(&found, &corpus));
            topics.push(found);
            output.note(&format!(
                "{k} topics, seed {seed}: perplexity {:.1}",
                perplexity[perplexity.len() - 1]
            ));
        }
        let pairs = (0..topics.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        let similar: Vec<f64> = pairs.map(|(i, j)| stability(&topics[i], &topics[j])).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let optional = |values: &[f64]| (!values.is_empty()).then(|| mean(values));
        rows.push(Row {
            k,
            npmi: optional(&npmi).map(|npmi| rounded(npmi, 4)),
            perplexity: rounded(mean(&perplexity), 1),
            stability: optional(&similar).map(|stability| rounded(stability, 4)),
        });
    }
    if let Some(path) = &args.plot {
        write_atomically(path, |out| out.write_all(plot(&rows).as_bytes()))?;
    }
    if let Some(path) = &args.output {
        mixtures::save_rows(path, &rows)?;
    }
    output.result(&json!({ "rows": rows }), |out| mixtures::write_rows(&rows, b'\t', out))
}

/// A mean with the digits that seeds agree on.
fn rounded(value: f64, n_digits: i32) -> f64 {
    let unit = 10f64.powi(n_digits);
    (value * unit).round() / unit
}

fn top_words(model: &Lda, n: usize) -> Vec<Vec<String>> {
    let words = |topic: usize| model.top_words(topic, n).into_iter();
    (0..model.fitted_with().n_topics)
        .map(|topic| words(topic).map(|(word, _)| word.to_owned()).collect())
        .collect()
}

/// Mean NPMI over topics.
fn coherence(topics: &[Vec<String>], corpus: &DocumentCorpus) -> Option<f64> {
    let all: Vec<String> = topics.iter().flatten().cloned().collect();
    let lexicon = Cooccurrences::lexicon(&all, &corpus.lexicon);
    let vocab = &corpus.lexicon.vocab;
    // The documents in the words of the topics.
    let id = |&word: &WordId| match word.index() < vocab.len() {
        true => lexicon.vocab.id(vocab.word(word)),
        false => WordId::UNK,
    };
    let documents = corpus.documents.iter().map(|d| d.words.iter().map(id).collect::<Vec<_>>());
    let counts = Cooccurrences::count(&lexicon, &latens::corpus::Sentences::from_words(documents));
    let values: Vec<f64> = topics.iter().filter_map(|words| counts.coherence(words).npmi).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Each measure in units of its own, from its worst to its best value.
fn plot(rows: &[Row]) -> String {
    let scaled = |name: &str, values: Vec<Option<f64>>, is_better_low: bool| {
        let known = || values.iter().flatten().copied();
        let low = known().fold(f64::INFINITY, f64::min);
        let span = known().fold(f64::NEG_INFINITY, f64::max) - low;
        let point = |value: &Option<f64>| {
            let value = value.map_or(f64::NAN, |v| if span > 0.0 { (v - low) / span } else { 0.5 });
            let value = if is_better_low { 1.0 - value } else { value };
            SeriesPoint { value, low: value, high: value }
        };
        Series { name: name.to_owned(), points: values.iter().map(point).collect() }
    };
    let series = [
        scaled("coherence (NPMI)", rows.iter().map(|row| row.npmi).collect(), false),
        scaled("held-out perplexity", rows.iter().map(|row| Some(row.perplexity)).collect(), true),
        scaled("stability", rows.iter().map(|row| row.stability).collect(), false),
    ];
    let ks: Vec<String> = rows.iter().map(|row| row.k.to_string()).collect();
    let ks: Vec<&str> = ks.iter().map(String::as_str).collect();
    series_plot("number of topics", "from the worst value (0) to the best (1)", &ks, &series)
}
