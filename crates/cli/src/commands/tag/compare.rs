use super::inputs::{column, remembered_column, tagged_inputs, tagger};
use crate::args::{Common, ReadingArgs};
use crate::errors::hinted;
use crate::output::{Output, p_text, thousands};
use crate::reading::watched;
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::TaggedSentences;
use latens::model::Model;
use latens::tasks::tagging::{Comparison, SpanComparison, compare, compare_spans};
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Test whether two taggers differ significantly
///
/// Reads two taggers and tagged text, and prints the accuracy of both and the p-value of McNemar's exact test. For span
/// tags (`B-PER`, `I-PER`, `O`) it also prints the F1 of both, the 95 % confidence interval of their difference and the
/// p-value of a paired bootstrap over sentences, which then decides. The exit status is 0 if the p-value is below
/// `--level`, otherwise 1.
#[derive(Args)]
pub(crate) struct CompareArgs {
    /// First tagger
    first: PathBuf,
    /// Second tagger
    second: PathBuf,
    /// Tagged text
    text: PathBuf,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Column of the tags, counted from 1 [default: as in training]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    column: Option<u16>,
    /// Significance level
    #[arg(long, value_name = "P", default_value_t = 0.05)]
    level: f64,
    /// Number of bootstrap samples for the F1 of spans
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..))]
    n_samples: u32,
}

impl CompareArgs {
    /// The given column, or the one that both taggers were trained on.
    fn column(&self, [first, second]: [&dyn Model; 2]) -> Result<usize> {
        let Some(learned) = remembered_column(first) else {
            return column(self.column, second, &self.second);
        };
        if let Some(other) = remembered_column(second)
            && self.column.is_none()
            && other != learned
        {
            let (a, b) = (self.first.display(), self.second.display());
            let message = format!("`{a}` was trained on column {learned}, `{b}` on column {other}");
            return Err(hinted(message, "name the column to compare with `--column`"));
        }
        column(self.column, first, &self.first)
    }
}

pub(super) fn run(args: &CompareArgs, common: &Common, output: &Output) -> Result<ExitCode> {
    let inputs = watched(tagged_inputs(&args.reading, std::slice::from_ref(&args.text))?, output);
    let (first, second) = (latens::open(&args.first)?, latens::open(&args.second)?);
    let column = args.column([&*first, &*second])?;
    let taggers = [tagger(&*first, &args.first)?, tagger(&*second, &args.second)?];
    let text = TaggedSentences::read(&inputs)?;
    let found = compare([&*taggers[0], &*taggers[1]], &text, column)
        .context("cannot compare the taggers")?;
    let spans = compare_spans(
        [&*taggers[0], &*taggers[1]],
        &text,
        column,
        args.n_samples as usize,
        common.seed,
    )
    .context("cannot compare the taggers")?;
    let Comparison { tokens, both, first_only, second_only, p_value } = found;
    let differs = spans.map_or(p_value, |spans| spans.p_value) < args.level;
    let share = |right: usize| right as f64 / tokens.max(1) as f64;
    let (first, second) = (share(both + first_only), share(both + second_only));
    let mut result = json!({
        "first_accuracy": first, "second_accuracy": second, "first_only": first_only,
        "second_only": second_only, "p_value": p_value, "significant": differs, "tokens": tokens,
    });
    if let (Some(spans), Some(result)) = (&spans, result.as_object_mut()) {
        result.insert("first_f1".into(), json!(spans.f1[0]));
        result.insert("second_f1".into(), json!(spans.f1[1]));
        result.insert("f1_difference_interval".into(), json!(spans.interval));
        result.insert("f1_p_value".into(), json!(spans.p_value));
    }
    output.result(&result, |out: &mut dyn Write| -> io::Result<()> {
        for (path, accuracy, only) in
            [(&args.first, first, first_only), (&args.second, second, second_only)]
        {
            let (percent, only) = (100.0 * accuracy, thousands(only));
            writeln!(
                out,
                "`{}`: accuracy {percent:.2} %; {only} words that only this tagger tags correctly",
                path.display()
            )?;
        }
        let verdict = if differs { "significant" } else { "not significant" };
        let Some(SpanComparison { f1, interval, p_value: f1_p_value }) = spans else {
            return writeln!(out, "{}: {verdict}", p_text(p_value));
        };
        writeln!(out, "accuracy: {} (McNemar's test)", p_text(p_value))?;
        writeln!(
            out,
            "F1 of spans: {:.2} % and {:.2} %, a difference of {:+.2} (95 % interval {:+.2} to {:+.2})",
            100.0 * f1[0],
            100.0 * f1[1],
            100.0 * (f1[0] - f1[1]),
            100.0 * interval[0],
            100.0 * interval[1],
        )?;
        writeln!(out, "F1: {} (paired bootstrap): {verdict}", p_text(f1_p_value))
    })?;
    Ok(if differs { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
