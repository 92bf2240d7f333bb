use crate::args::{Common, DocumentArgs};
use crate::commands::roles::topic_model;
use crate::data::mixtures;
use crate::data::word_vectors::VectorFormatArgs;
use crate::errors::hinted;
use crate::output::{Output, print, print_json, thousands};
use crate::reading::watched;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use latens::corpus::Documents;
use latens::lda::{Glda, Lda};
use latens::lda::{InferenceParams, Inferred, MoreVectors, Topics};
use latens::model::Model;
use latens::model::Params;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Infer the topic mixtures of documents
///
/// Reads a topic model and documents, and writes a table with a header and one row per document: its identifier, its label,
/// the number of unknown tokens, and the proportion of each topic. The extension `.csv` writes comma-separated values.
/// With `--vectors`, Gaussian topics also use words that are not in the training text but have a vector.
#[derive(Args)]
pub(crate) struct InferArgs {
    /// Topic model
    model: PathBuf,
    #[command(flatten)]
    text: DocumentArgs,
    /// Vectors for words that are not in the training text
    #[arg(long, value_name = "FILE", help_heading = "Word vectors")]
    vectors: Option<PathBuf>,
    #[command(flatten)]
    format: VectorFormatArgs,
    /// Update of Gaussian topics by new documents
    #[arg(long, value_enum, value_name = "NAME", default_value_t = MovingArg::Fixed)]
    topics: MovingArg,
    /// Number of documents per batch, if topics are updated
    #[arg(long, value_name = "N", default_value_t = 100)]
    batch: usize,
    /// Number of Gibbs sweeps; mixtures are means over the second half
    #[arg(long, value_name = "N", default_value_t = InferenceParams::default().n_sweeps)]
    n_sweeps: usize,
    /// Path of the mixtures to write, `.tsv` or `.csv` [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum MovingArg {
    /// Topics are not updated
    Fixed,
    /// Topics are updated within each batch and then restored
    Online,
    /// Topics are updated with each batch
    Cumulative,
}

pub(super) fn run(args: &InferArgs, common: &Common, output: &Output) -> Result<()> {
    mixtures::check_table(args.output.as_deref())?;
    ensure!(args.batch > 0, "`--batch` must be at least 1, got 0");
    let model = &*latens::open(&args.model)?;
    topic_model(model, &args.model)?;
    let inputs = watched(args.text.inputs()?, output);
    let documents = Documents::read_with(&inputs, model.lexicon())?;
    let found = infer(args, common.seed, model, &documents)?;
    let n_skipped: usize = found.iter().map(|document| document.n_skipped).sum();
    if n_skipped > 0 {
        let (n, all) = (thousands(n_skipped), thousands(documents.n_tokens()));
        output.note(&format!("{n} of {all} tokens are unknown to the model"));
    }
    match &args.output {
        Some(path) => mixtures::save(path, &documents, &found)?,
        None if output.is_json() => {}
        None => return print(|out| mixtures::write(&documents, &found, b'\t', out)),
    }
    if output.is_json() {
        return print_json(&as_json(&documents, &found));
    }
    output.result(&Value::Null, |out| writeln!(out, "{} documents", thousands(found.len())))
}

fn infer(
    args: &InferArgs,
    seed: u64,
    model: &dyn Model,
    documents: &Documents,
) -> Result<Vec<Inferred>> {
    let params = InferenceParams::default().n_sweeps(args.n_sweeps).seed(seed).validate()?;
    if let Some(lda) = model.downcast_ref::<Lda>() {
        if args.topics != MovingArg::Fixed || args.vectors.is_some() {
            let message =
                "`--vectors` and `--topics` need a Gaussian LDA model; this is a multinomial one";
            return Err(hinted(message, "omit `--vectors` and `--topics`"));
        }
        return Ok(lda.infer_documents(documents, &params));
    }
    let Some(model) = model.downcast_ref::<Glda>() else {
        bail!("it is {}", model.description());
    };
    let more = match &args.vectors {
        Some(path) => Some((path, args.format.read(path)?)),
        None => None,
    };
    if let Some((path, (_, vectors))) = &more {
        let (found, needed) = (vectors.dim(), model.vectors().dim());
        ensure!(
            found == needed,
            "the vectors in `{}` have {found} dimensions, but the model has {needed}",
            path.display()
        );
        model.check_vectors(vectors).with_context(|| format!("cannot use `{}`", path.display()))?;
    }
    let more =
        more.as_ref().map(|(_, (lexicon, vectors))| MoreVectors { vocab: &lexicon.vocab, vectors });
    let topics = match args.topics {
        MovingArg::Fixed => Topics::Fixed,
        MovingArg::Online => Topics::Online(args.batch),
        MovingArg::Cumulative => Topics::Cumulative(args.batch),
    };
    Ok(model.infer_documents(documents, more, topics, &params))
}

fn as_json(documents: &Documents, found: &[Inferred]) -> Value {
    let one = |(idx, found): (usize, &Inferred)| {
        let (id, label) = (mixtures::id_of(documents, idx), documents.get(idx).label);
        json!({ "id": id, "label": label, "skipped": found.n_skipped, "mixture": found.mixture })
    };
    json!({ "mixtures": found.iter().enumerate().map(one).collect::<Vec<_>>() })
}
