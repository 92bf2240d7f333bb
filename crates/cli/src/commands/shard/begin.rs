use crate::args::{Common, WordArgs};
use crate::data::word_vectors::{VectorFormatArgs, tell_coverage};
use crate::errors::hinted;
use crate::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Lexicon, Vocab, VocabLimits};
use latens::model::shards::{Arrays, ShardInput, ShardKind};
use latens::store::write_atomically;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::PathBuf;

/// Write the first broadcast of a run
///
/// A run for the vocabulary comes first: `latens shard begin vocab`. Its result is a vocabulary file, which the runs of
/// models need. A tagger needs none: its shards are tagged text, as for `latens tag train`.
#[derive(Args)]
pub(crate) struct BeginArgs {
    /// Kind of model, or `vocab`
    #[arg(value_name = "KIND", value_parser = kinds())]
    kind: String,
    /// Number of shards, the same in all rounds
    #[arg(long, value_name = "N")]
    shards: usize,
    /// Parameter of the model, as `latens inspect` names it, e.g., `n_states=1024`; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    set: Vec<(String, Value)>,
    #[command(flatten)]
    words: WordArgs,
    /// Word vectors of a Gaussian LDA model
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    #[command(flatten)]
    format: VectorFormatArgs,
    /// Column of the tags of a tagger, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    column: Option<u16>,
    /// Path of the broadcast to write
    #[arg(short, long, value_name = "BROADCAST")]
    output: PathBuf,
}

fn kinds() -> Vec<&'static str> {
    latens::SHARD_KINDS.iter().map(|kind| kind.kind()).collect()
}

/// Parses `name=value`; a value that is not JSON is a string.
fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((name.to_owned(), value))
}

#[derive(Serialize)]
struct BeginResult {
    path: String,
    kind: String,
    shards: usize,
    rounds: Option<u64>,
}

pub(crate) fn run(args: &BeginArgs, common: &Common, output: &Output) -> Result<()> {
    let kind = latens::shard_kind(&args.kind)?;
    let mut params = Map::new();
    if kind.default_params().get("seed").is_some() {
        params.insert("seed".to_owned(), common.seed.into());
    }
    params.extend(args.set.iter().cloned());
    let lexicon = lexicon(args, kind)?;
    let mut inputs = Arrays::new();
    if let Some(path) = &args.vectors {
        if !kind.inputs().contains(&ShardInput::WordVectors) {
            return Err(hinted(
                format!("models of kind `{}` do not use `--vectors`", args.kind),
                "omit `--vectors`, or train a Gaussian LDA model: `glda`",
            ));
        }
        let (own, vectors) = args.format.read(path)?;
        let (vectors, coverage) = vectors.for_words(&own.vocab, &lexicon.vocab);
        tell_coverage(&coverage, output);
        inputs = inputs.with("dim", vec![vectors.dim() as u64]);
        inputs = inputs.with("vectors", vectors.values().to_vec());
    }
    inputs = with_column(args, kind, inputs)?;
    let broadcast = kind
        .begin(params.into(), lexicon, args.shards, inputs)
        .with_context(|| format!("cannot begin a run of `{}`", args.kind))?;
    write_atomically(&args.output, |out| out.write_all(&broadcast.to_bytes()))?;
    let result = BeginResult {
        path: args.output.display().to_string(),
        kind: args.kind.clone(),
        shards: args.shards,
        rounds: broadcast.n_rounds(),
    };
    output.result(&result, |out| {
        let rounds = result.rounds.map_or(String::new(), |n| format!(", {n} rounds"));
        writeln!(out, "wrote `{}`: {} shards{rounds}", result.path, result.shards)
    })
}

/// Adds the column of the tags, which a tagger needs and nothing else has.
fn with_column(args: &BeginArgs, kind: &dyn ShardKind, inputs: Arrays) -> Result<Arrays> {
    match (args.column, kind.inputs().contains(&ShardInput::TagColumn)) {
        (Some(column), true) => Ok(inputs.with("column", vec![u64::from(column) - 1])),
        (None, false) => Ok(inputs),
        (None, true) => {
            Err(hinted("a tagger needs the column of its tags", "pass it with `--column`"))
        }
        (Some(_), false) => Err(hinted(
            format!("models of kind `{}` do not use `--column`", args.kind),
            "omit `--column`, or train a tagger",
        )),
    }
}

fn lexicon(args: &BeginArgs, kind: &dyn ShardKind) -> Result<Lexicon> {
    let limits = args.words.learned.limits();
    let is_tagger = kind.inputs().contains(&ShardInput::TagColumn);
    if is_tagger && limits != VocabLimits::default() {
        return Err(hinted(
            "a tagger does not use `--min-count` and `--max-vocab`",
            "`--set min_count=N` drops rare attributes of words",
        ));
    }
    match (&args.words.vocab, kind.inputs().contains(&ShardInput::Vocab)) {
        (None, false) => {
            let preprocessing = args.words.learned.preprocessing();
            Ok(Lexicon::new(preprocessing, limits, Vocab::from_counts([], &limits)))
        }
        (Some(path), true) => Ok(Lexicon::open(path)?),
        (None, true) => Err(hinted(
            "training on shards needs the vocabulary of the whole text",
            "learn it with `latens shard begin vocab` or `latens vocab`, and pass it with `--vocab`",
        )),
        (Some(_), false) => Err(hinted(
            format!("a run of `{}` does not use `--vocab`", args.kind),
            "omit `--vocab`",
        )),
    }
}
