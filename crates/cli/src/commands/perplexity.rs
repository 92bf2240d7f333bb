use crate::args::TextArgs;
use crate::commands::language_model;
use crate::output::{Output, thousands};
use crate::reading::watched;
use anyhow::Result;
use clap::Args;
use latens::tasks::perplexity;
use serde::Serialize;
use std::path::PathBuf;

/// Score text with a language model
///
/// A model and text go in; out comes the perplexity: how many words the model was unsure between, on
/// average. One end-of-sentence token a sentence is counted, as in the papers. The text is read as the
/// model's training text was.
#[derive(Args)]
pub(crate) struct PerplexityArgs {
    /// A language model
    model: PathBuf,
    #[command(flatten)]
    text: TextArgs,
}

#[derive(Serialize)]
struct PerplexityResult {
    /// JSON has no infinity: `null` stands for it.
    perplexity: f64,
    log_prob: f64,
    tokens: usize,
    oov: usize,
}

pub(crate) fn run(args: &PerplexityArgs, output: &Output) -> Result<()> {
    let inputs = watched(args.text.inputs()?, output);
    let any_model = latens::open(&args.model)?;
    let model = language_model(&any_model, &args.model)?;
    let found = perplexity(model, &any_model.lexicon().read(&inputs)?);
    let result = PerplexityResult {
        perplexity: found.perplexity(),
        log_prob: found.log_prob,
        tokens: found.tokens,
        oov: found.oov,
    };
    if found.log_prob == f64::NEG_INFINITY {
        output.note("warning: some tokens have probability zero under this model");
    }
    output.result(&result, |out| {
        let (tokens, oov) = (thousands(result.tokens), thousands(result.oov));
        writeln!(out, "perplexity {:.2}", result.perplexity)?;
        writeln!(out, "log_prob   {:.2} (natural logarithm)", result.log_prob)?;
        writeln!(out, "tokens     {tokens}, {oov} of them unknown")
    })
}
