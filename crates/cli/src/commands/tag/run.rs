//! `latens tag run`: tags text.

use super::inputs::{remembered_column, tagger};
use super::written::{Predicted, Target, json_sentence, write_tagged};
use crate::args::{TextArgs, TokenizeArg};
use crate::errors::hinted;
use crate::output::{Output, print, print_json, thousands};
use crate::reading::watched;
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{ColumnGuess, Layout, TextToTag};
use latens::model::{Device, Model, TagError, TagOutputs, Tagged, Tagger};
use latens::store::write_atomically;
use latens::tasks::tagging::{FeatureTagger, Optimizer, TagTextError, tag_text_on};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Tag text
///
/// Reads a tagger and text, and writes one word per line with its columns and its tag in a new last column, separated by
/// tabs, and a blank line after each sentence. CoNLL-U stays CoNLL-U: the tag replaces the value of its column, and
/// comments, multiword tokens and empty nodes are kept. Plain text has one sentence per line and is tokenized like the
/// training text. A file whose extension does not say its format is read as columns if it looks like columns.
///
/// With `--json`, or with an output file `.jsonl`, each sentence is an object with `text`, `words`, `tags` and, for tags of
/// spans, `spans` with the offsets of their first and after their last character in `text`.
#[derive(Args)]
pub(super) struct RunArgs {
    /// Tagger
    tagger: PathBuf,
    #[command(flatten)]
    text: TextArgs,
    /// Tokenization of plain text [default: as in training]
    #[arg(long, value_enum)]
    tokenize: Option<TokenizeArg>,
    /// Add the posterior probability of each tag; with `--json`, of all tags
    #[arg(long)]
    marginals: bool,
    /// Write the N most probable sequences of tags, one column each, best first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    n_best: Option<u16>,
    /// Column of a CoNLL-U file that gets the tags, counted from 1 [default: as in training]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(3..=10))]
    column: Option<u16>,
    /// Path of the tagged text to write; `.jsonl` writes JSON Lines [default: standard output]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Device that computes: `cpu`, or `cuda` for hidden Markov models, also as encoders of a tagger
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
}

pub(super) fn run(args: &RunArgs, output: &Output) -> Result<()> {
    let model = &*latens::open(&args.tagger)?;
    let tagger = tagger(model, &args.tagger)?;
    let text = read(args, model, &*tagger, output)?;
    let target = target(args, model, &*tagger, &text)?;
    if (args.marginals || args.n_best.is_some()) && is_perceptron(model) {
        output
            .note("warning: a perceptron is not trained to give probabilities; use them as scores");
    }
    let predicted = predict(args, &*tagger, &text)?;
    let names = tagger.tags();
    let objects = || {
        let sentences = predicted.iter().enumerate();
        sentences.map(|(i, predicted)| json_sentence(&text, i, predicted, names))
    };
    let Some(path) = &args.output else {
        return match output.is_json() {
            true => print_json(&json!({ "sentences": objects().collect::<Vec<_>>() })),
            false => print(|out| write_tagged(&text, &predicted, &target, out)),
        };
    };
    let is_jsonl = path.extension().is_some_and(|found| found.eq_ignore_ascii_case("jsonl"));
    write_atomically(path, |out| match is_jsonl {
        true => objects().try_for_each(|object| writeln!(out, "{object}")),
        false => write_tagged(&text, &predicted, &target, out),
    })?;
    let (path, tokens) = (path.display().to_string(), text.sentences.n_tokens());
    output.result(&json!({ "path": path, "tokens": tokens }), |out| {
        writeln!(out, "wrote `{path}`: {} words", thousands(tokens))
    })
}

fn read(
    args: &RunArgs,
    model: &dyn Model,
    tagger: &dyn Tagger,
    output: &Output,
) -> Result<TextToTag> {
    let inputs = watched(args.text.inputs()?, output);
    let guess = ColumnGuess {
        tags: tagger.tags().iter().map(String::as_str).collect(),
        column: remembered_column(model).map(|column| column as usize - 1),
    };
    let learned = model.lexicon().preprocessing.tokenize;
    let tokenize = args.tokenize.map_or(learned, Into::into);
    // Only plain text is tokenized.
    let guess = Some(&guess).filter(|_| args.tokenize.is_none());
    let text = TextToTag::read(&inputs, tokenize, guess)?;
    for path in &text.guessed {
        output.note(&format!(
            "`{path}` has one word per line and is read as columns\n\n\
             hint: `--format lines` reads it as plain text"
        ));
    }
    Ok(text)
}

/// Where the tags go, and whether they can go there.
fn target(
    args: &RunArgs,
    model: &dyn Model,
    tagger: &dyn Tagger,
    text: &TextToTag,
) -> Result<Target> {
    let writes_json =
        args.output.as_ref().is_some_and(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let is_conllu = |layout: &Layout| matches!(layout, Layout::Conllu(_));
    if args.n_best.is_some() && !writes_json && text.layouts.iter().any(is_conllu) {
        return Err(hinted(
            "CoNLL-U has one column for the tags, and `--n-best` needs more",
            "write the sequences with `-o tagged.jsonl`",
        ));
    }
    let column = args.column.map(u64::from).or_else(|| remembered_column(model));
    let n_best = args.n_best.map(usize::from);
    Ok(Target::new(column.map(|column| column as usize - 1), tagger.tags(), n_best))
}

fn is_perceptron(model: &dyn Model) -> bool {
    model
        .downcast_ref::<FeatureTagger>()
        .is_some_and(|tagger| tagger.fitted_with().optimizer == Optimizer::Perceptron)
}

fn predict<'t>(
    args: &RunArgs,
    tagger: &'t dyn Tagger,
    text: &TextToTag,
) -> Result<Vec<Predicted<'t>>> {
    let n_best = args.n_best.map_or(0, usize::from);
    let outputs = TagOutputs::default().marginals(args.marginals).n_best(n_best);
    let tagged = tag_text_on(args.device, tagger, &text.sentences, outputs);
    tagged
        .map(|tagged| tagged.into_iter().map(|tagged| named(tagger.tags(), tagged)).collect())
        .map_err(|error| match error {
            TagTextError::Tag(TagError::NoSequences) => hinted(
                "`--n-best` needs a tagger that ranks sequences of tags",
                "train one with `latens tag train`",
            ),
            TagTextError::Device(error) => {
                hinted(error.to_string(), "without `--device`, the CPU tags the text")
            }
            error => error.into(),
        })
        .with_context(|| format!("cannot tag with `{}`", args.tagger.display()))
}

/// What a tagger computed for a sentence, with the names of the tags.
fn named(names: &[String], tagged: Tagged) -> Predicted<'_> {
    let Tagged { tags, marginals, n_best, .. } = tagged;
    let named = |tags: &[u32]| tags.iter().map(|&tag| names[tag as usize].as_str()).collect();
    let probs = marginals.as_ref().map(|marginals| {
        tags.iter().enumerate().map(|(t, &tag)| marginals[(t, tag as usize)]).collect()
    });
    let n_best = n_best.iter().map(|(tags, log_prob)| (named(tags), *log_prob)).collect();
    Predicted { tags: named(&tags), probs, marginals, n_best }
}
