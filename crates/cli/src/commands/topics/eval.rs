use super::top_words::{TopWordArgs, Topic};
use crate::args::ReadingArgs;
use crate::cache::{hash_inputs, make_folder};
use crate::output::Output;
use crate::reading::watched;
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Corpus, Inputs, Lexicon};
use latens::tasks::topics::{Coherence, Cooccurrences, diversity};
use serde::Serialize;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

/// Measure the coherence and diversity of topics
///
/// Reads a topic model and a reference corpus, and prints the coherence of the top words of each topic. PMI is the mean
/// over pairs of words of ln p(a, b) / (p(a) p(b)) over documents, with one document added to the count of every pair. NPMI
/// is PMI divided by -ln p(a, b): -1 for words that never occur together, 1 for words that always do. Diversity is the
/// fraction of distinct words among the top words of all topics. The reference is preprocessed like the training text and
/// need not fit in memory.
#[derive(Args)]
pub(crate) struct EvalArgs {
    /// Topic model
    model: PathBuf,
    /// Reference corpus
    #[arg(long, required = true, value_name = "FILE")]
    reference: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    words: TopWordArgs,
    /// Cache the counts of the reference in this folder
    #[arg(long, value_name = "DIR", help_heading = "Reading text")]
    cache: Option<PathBuf>,
}

#[derive(Serialize)]
struct EvalResult {
    pmi: Option<f64>,
    npmi: Option<f64>,
    median_npmi: Option<f64>,
    diversity: f64,
    documents: u64,
    per_topic: Vec<TopicResult>,
}

#[derive(Serialize)]
struct TopicResult {
    #[serde(flatten)]
    topic: Topic,
    #[serde(flatten)]
    coherence: Coherence,
}

pub(super) fn run(args: &EvalArgs, output: &Output) -> Result<()> {
    let inputs = watched(args.reading.document_inputs(&args.reference)?, output);
    let model = &*latens::open(&args.model)?;
    let topics = args.words.topics(model, &args.model)?;
    let all: Vec<String> = topics.iter().flat_map(|topic| topic.words.iter().cloned()).collect();
    let lexicon = Cooccurrences::lexicon(&all, model.lexicon());
    let counts = count(args, &inputs, &lexicon)?;
    let words: Vec<Vec<String>> = topics.iter().map(|topic| topic.words.clone()).collect();
    let per_topic: Vec<TopicResult> = topics
        .into_iter()
        .map(|topic| TopicResult { coherence: counts.coherence(&topic.words), topic })
        .collect();
    let values = |of: fn(&Coherence) -> Option<f64>| -> Vec<f64> {
        per_topic.iter().filter_map(|topic| of(&topic.coherence)).collect()
    };
    let (pmi, npmi) = (values(|c| c.pmi), values(|c| c.npmi));
    let result = EvalResult {
        pmi: mean(&pmi),
        npmi: mean(&npmi),
        median_npmi: median(npmi),
        diversity: diversity(&words),
        documents: counts.n_documents(),
        per_topic,
    };
    output.result(&result, |out| {
        for TopicResult { topic, coherence } in &result.per_topic {
            let number = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.3}"));
            let (pmi, npmi) = (number(coherence.pmi), number(coherence.npmi));
            writeln!(out, "{:3} {pmi:>7} {npmi:>7}  {}", topic.topic, topic.line())?;
        }
        let number = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.4}"));
        writeln!(out, "pmi {}", number(result.pmi))?;
        writeln!(out, "npmi {} (median {})", number(result.npmi), number(result.median_npmi))?;
        writeln!(out, "diversity {:.4}", result.diversity)
    })
}

/// The counts of the reference, from the cache if they are there.
fn count(args: &EvalArgs, inputs: &Inputs, lexicon: &Lexicon) -> Result<Cooccurrences> {
    let kept = match &args.cache {
        Some(folder) => {
            let mut hash = hash_inputs(inputs)?;
            let Lexicon { preprocessing, cleaning, vocab, .. } = lexicon;
            let how =
                (inputs.invalid, &inputs.columns, preprocessing, cleaning, vocab.fingerprint());
            format!("{how:?}").hash(&mut hash);
            Some(make_folder(folder)?.join(format!("{:016x}.pairs", hash.finish())))
        }
        None => None,
    };
    if let Some(path) = kept.as_deref().filter(|path| path.exists())
        && let Ok(counts) = Cooccurrences::open(path)
    {
        return Ok(counts);
    }
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let corpus = Corpus::encode_with(folder.path().join("reference"), inputs, lexicon)?;
    let counts = Cooccurrences::count(&corpus.lexicon, &corpus.sentences);
    if let Some(path) = kept {
        counts.save(&path)?;
    }
    Ok(counts)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    Some(if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    })
}
