//! `latens tag eval`: scores a tagger.

use super::inputs::{column, tagged_inputs, tagger};
use crate::args::TextArgs;
use crate::output::{Output, shown, thousands};
use crate::reading::watched;
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::TaggedSentences;
use latens::tasks::tagging::{Confusion, TagScores, TypeScores, evaluate};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Evaluate a tagger on tagged text
///
/// Reads a tagger and tagged text, and prints the accuracy on all words, on words not seen in training (OOV) and on words
/// seen at most twice (rare, OOV words included). For span tags (`B-NP`, `I-NP`, `O`) it also prints precision, recall and
/// F1 of spans, as `conlleval` computes them; the OOV and rare figures are those of spans that contain such a word. Then
/// follow precision, recall and F1 of each tag or type of span, and the tags that are mistaken for each other most often.
#[derive(Args)]
pub(super) struct EvalArgs {
    /// Tagger
    tagger: PathBuf,
    #[command(flatten)]
    text: TextArgs,
    /// Column of the tags, counted from 1 [default: as in training]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    column: Option<u16>,
    /// Number of confusions to print, the most frequent ones first; `--json` gives all
    #[arg(long, value_name = "N", default_value_t = 10)]
    n_confusions: usize,
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
    oov_tokens: usize,
    rare_tokens: usize,
    types: Vec<TypeResult>,
    confusions: Vec<ConfusionResult>,
}

#[derive(Serialize)]
struct TypeResult {
    #[serde(rename = "type")]
    name: String,
    precision: Option<f64>,
    recall: Option<f64>,
    f1: f64,
    #[serde(rename = "true")]
    n_true: usize,
    predicted: usize,
    correct: usize,
}

#[derive(Serialize)]
struct ConfusionResult {
    #[serde(rename = "true")]
    truth: String,
    predicted: String,
    count: usize,
}

pub(super) fn run(args: &EvalArgs, output: &Output) -> Result<()> {
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
    let result = EvalResult::of(scores);
    output.result(&result, |out| result.write(args.n_confusions, out))
}

impl EvalResult {
    fn of(scores: TagScores) -> EvalResult {
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
            oov_tokens: scores.oov_tokens,
            rare_tokens: scores.rare_tokens,
            types: scores.types.into_iter().map(TypeResult::of).collect(),
            confusions: scores.confusions.into_iter().map(ConfusionResult::of).collect(),
        }
    }

    fn write(&self, n_confusions: usize, out: &mut dyn Write) -> io::Result<()> {
        let share = |n: usize| 100.0 * n as f64 / self.tokens.max(1) as f64;
        let words =
            |n: usize, what: &str| format!("  {} words ({:.1} %) {what}", thousands(n), share(n));
        let oov = words(self.oov_tokens, "that are not in the training text");
        let rare = words(self.rare_tokens, "seen at most twice in training, OOV words included");
        let all = format!("  {} words", thousands(self.tokens));
        for (name, value, meaning) in [
            ("accuracy", Some(self.accuracy), all.as_str()),
            ("OOV accuracy", self.oov_accuracy, &oov),
            ("rare accuracy", self.rare_accuracy, &rare),
            ("precision", self.precision, "  of the predicted spans are correct"),
            ("recall", self.recall, "  of the true spans are found"),
            ("F1", self.f1, ""),
            ("OOV F1", self.oov_f1, "  spans with an OOV word"),
            ("rare F1", self.rare_f1, "  spans with a rare word"),
        ] {
            if let Some(value) = value {
                writeln!(out, "{name:14} {:6.2} %{meaning}", 100.0 * value)?;
            }
        }
        self.write_types(out)?;
        let n_shown = n_confusions.min(self.confusions.len());
        if n_shown == 0 {
            return Ok(());
        }
        let width = self.types.iter().map(|found| shown(&found.name).chars().count()).max();
        let width = width.unwrap_or(0).max("predicted".len());
        writeln!(out, "\n{:width$}  {:width$}  {:>6}", "true", "predicted", "words")?;
        for found in &self.confusions[..n_shown] {
            let (truth, predicted) = (shown(&found.truth), shown(&found.predicted));
            writeln!(out, "{truth:width$}  {predicted:width$}  {:>6}", thousands(found.count))?;
        }
        Ok(())
    }

    fn write_types(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = if self.f1.is_some() { "type" } else { "tag" };
        let width = self.types.iter().map(|found| shown(&found.name).chars().count()).max();
        let width = width.unwrap_or(0).max("predicted".len());
        writeln!(
            out,
            "\n{name:width$}  {:>9}  {:>8}  {:>8}  {:>5}  {:>9}  {:>7}",
            "precision", "recall", "F1", "true", "predicted", "correct"
        )?;
        let percent = |value: Option<f64>| match value {
            Some(value) => format!("{:.2} %", 100.0 * value),
            None => "-".to_owned(),
        };
        for found in &self.types {
            let (precision, recall) = (percent(found.precision), percent(found.recall));
            let (f1, n_true) = (percent(Some(found.f1)), thousands(found.n_true));
            let (predicted, correct) = (thousands(found.predicted), thousands(found.correct));
            writeln!(
                out,
                "{:width$}  {precision:>9}  {recall:>8}  {f1:>8}  {n_true:>5}  {predicted:>9}  {correct:>7}",
                shown(&found.name)
            )?;
        }
        Ok(())
    }
}

impl TypeResult {
    fn of(scores: TypeScores) -> TypeResult {
        TypeResult {
            precision: scores.precision(),
            recall: scores.recall(),
            f1: scores.f1(),
            n_true: scores.n_true,
            predicted: scores.n_predicted,
            correct: scores.n_correct,
            name: scores.name,
        }
    }
}

impl ConfusionResult {
    fn of(confusion: Confusion) -> ConfusionResult {
        let Confusion { truth, predicted, count } = confusion;
        ConfusionResult { truth, predicted, count }
    }
}
