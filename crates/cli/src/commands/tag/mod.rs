//! `latens tag`: trains, evaluates, compares and runs taggers.

mod inputs;
mod compare;
mod train;

use self::inputs::{column, tagged_inputs, tagger};
use crate::args::{Common, TextArgs};
use crate::output::{Output, print, print_json, thousands};
use crate::reading::watched;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use latens::corpus::TaggedSentences;
use latens::store::write_atomically;
use latens::tasks::tagging::{TagScores, evaluate, tag_all};
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Train, evaluate, compare and run taggers
///
/// A tagger is a model trained with `latens tag train` or `latens train hmm --tags 2`.
#[derive(Args)]
pub(crate) struct TagArgs {
    #[command(subcommand)]
    command: TagCommand,
}

#[derive(Subcommand)]
enum TagCommand {
    Train(Box<train::TagTrainArgs>),
    Eval(EvalArgs),
    Run(RunArgs),
    Compare(compare::CompareArgs),
}

/// Evaluate a tagger on tagged text
///
/// Reads a tagger and tagged text, and prints the accuracy on all words, on words not seen in training (OOV) and on words
/// seen at most twice (rare). For span tags (`B-NP`, `I-NP`, `O`) it also prints precision, recall and F1 of spans, as
/// `conlleval` computes them.
#[derive(Args)]
struct EvalArgs {
    /// Tagger
    tagger: PathBuf,
    #[command(flatten)]
    text: TextArgs,
    /// Column of the tags, counted from 1 [default: as in training]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    column: Option<u16>,
}

/// Tag text
///
/// Reads a tagger and text, and writes one word per line with its columns and its tag in a new last column, separated by
/// tabs, and a blank line after each sentence. Plain text is tokenized like the training text; empty lines are skipped.
#[derive(Args)]
struct RunArgs {
    /// Tagger
    tagger: PathBuf,
    #[command(flatten)]
    text: TextArgs,
    /// Path of the tagged text to write [default: standard output]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

/// Undefined scores are `null`: without unknown words, or without spans.
#[derive(Serialize)]
struct EvalResult {
    accuracy: f64,
    oov_accuracy: Option<f64>,
    rare_accuracy: Option<f64>,
    precision: Option<f64>,
    recall: Option<f64>,
    f1: Option<f64>,
    oov_f1: Option<f64>,
    rare_f1: Option<f64>,
    tokens: usize,
}

pub(crate) fn run(args: &TagArgs, common: &Common, output: &Output) -> Result<ExitCode> {
    match &args.command {
        TagCommand::Train(args) => train::run(args, common, output)?,
        TagCommand::Eval(args) => eval(args, output)?,
        TagCommand::Run(args) => tag(args, output)?,
        TagCommand::Compare(args) => return compare::run(args, output),
    }
    Ok(ExitCode::SUCCESS)
}

fn eval(args: &EvalArgs, output: &Output) -> Result<()> {
    let inputs = watched(tagged_inputs(&args.text.reading, &args.text.files)?, output);
    let model = &*latens::open(&args.tagger)?;
    let tagger = tagger(model, &args.tagger)?;
    let column = column(args.column, model, &args.tagger)?;
    let text = TaggedSentences::read(&inputs)?;
    let scores = evaluate(&*tagger, &text, column)
        .with_context(|| format!("cannot evaluate `{}`", args.tagger.display()))?;
    if let [first, ..] = &scores.unknown_tags[..] {
        let n = scores.unknown_tags.len();
        output.note(&format!(
            "warning: the tagger never saw the tag `{first}` ({n} such tags in all)"
        ));
    }
    let result = EvalResult::of(&scores);
    output.result(&result, |out| result.write(out))
}

fn tag(args: &RunArgs, output: &Output) -> Result<()> {
    let inputs = watched(args.text.inputs()?, output);
    let model = &*latens::open(&args.tagger)?;
    let tagger = tagger(model, &args.tagger)?;
    let text = TaggedSentences::read_any(&inputs, model.lexicon().preprocessing.tokenize)?;
    let tags = tag_all(&*tagger, &text)
        .with_context(|| format!("cannot tag with `{}`", args.tagger.display()))?;
    let Some(path) = &args.output else {
        return if output.is_json() {
            let sentences = text.iter().zip(&tags);
            let sentences = sentences.map(|(s, tags)| json!({ "words": s.words(), "tags": tags }));
            print_json(&json!({ "sentences": sentences.collect::<Vec<_>>() }))
        } else {
            print(|out| write_tagged(&text, &tags, out))
        };
    };
    write_atomically(path, |out| write_tagged(&text, &tags, out))?;
    let (path, tokens) = (path.display().to_string(), text.n_tokens());
    output.result(&json!({ "path": path, "tokens": tokens }), |out| {
        writeln!(out, "wrote `{path}`: {} words", thousands(tokens))
    })
}

fn write_tagged(text: &TaggedSentences, tags: &[Vec<&str>], out: &mut dyn Write) -> io::Result<()> {
    for (sentence, tags) in text.iter().zip(tags) {
        for (token_idx, tag) in tags.iter().enumerate() {
            writeln!(out, "{}\t{tag}", sentence.row(token_idx).join("\t"))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

impl EvalResult {
    fn of(scores: &TagScores) -> EvalResult {
        let spans = scores.spans.as_ref();
        EvalResult {
            accuracy: scores.accuracy,
            oov_accuracy: scores.oov_accuracy,
            rare_accuracy: scores.rare_accuracy,
            precision: spans.map(|spans| spans.precision),
            recall: spans.map(|spans| spans.recall),
            f1: spans.map(|spans| spans.f1),
            oov_f1: spans.and_then(|spans| spans.oov_f1),
            rare_f1: spans.and_then(|spans| spans.rare_f1),
            tokens: scores.tokens,
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (name, value) in [
            ("accuracy", Some(self.accuracy)),
            ("OOV accuracy", self.oov_accuracy),
            ("rare accuracy", self.rare_accuracy),
            ("precision", self.precision),
            ("recall", self.recall),
            ("F1", self.f1),
            ("OOV F1", self.oov_f1),
            ("rare F1", self.rare_f1),
        ] {
            if let Some(value) = value {
                writeln!(out, "{name:14} {:6.2} %", 100.0 * value)?;
            }
        }
        writeln!(out, "{:14} {:>6}", "tokens", thousands(self.tokens))
    }
}
