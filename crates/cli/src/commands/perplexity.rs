use crate::args::TextArgs;
use crate::commands::roles::language_model;
use crate::errors::hinted;
use crate::output::{Output, thousands};
use crate::reading::watched;
use anyhow::{Error, Result};
use clap::Args;
use latens::corpus::{Sentences, WordId};
use latens::hmm::Hmm;
use latens::model::Model;
use latens::tasks::{Impossible, first_impossible, perplexity};
use serde::Serialize;
use std::path::{Path, PathBuf};

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
    perplexity: f64,
    log_prob: f64,
    tokens: usize,
    oov: usize,
}

pub(crate) fn run(args: &PerplexityArgs, output: &Output) -> Result<()> {
    let inputs = watched(args.text.inputs()?, output);
    let any_model = &*latens::open(&args.model)?;
    let model = language_model(any_model, &args.model)?;
    let text = any_model.lexicon().read(&inputs)?;
    let found = perplexity(model, &text);
    if found.log_prob == f64::NEG_INFINITY
        && let Some(place) = first_impossible(model, &text)
    {
        return Err(impossible(any_model, &args.model, &text, place));
    }
    let result = PerplexityResult {
        perplexity: found.perplexity(),
        log_prob: found.log_prob,
        tokens: found.tokens,
        oov: found.oov,
    };
    output.result(&result, |out| {
        let (tokens, oov) = (thousands(result.tokens), thousands(result.oov));
        writeln!(out, "perplexity {:.2}", result.perplexity)?;
        writeln!(out, "log_prob   {:.2} (natural logarithm)", result.log_prob)?;
        writeln!(out, "tokens     {tokens}, {oov} of them unknown")
    })
}

/// Why a text has no perplexity, and what can be done about it.
fn impossible(model: &dyn Model, path: &Path, text: &Sentences, place: Impossible) -> Error {
    let Impossible { sentence_idx, token_idx } = place;
    let word = text.get(sentence_idx)[token_idx];
    let message = format!(
        "sentence {} is impossible under `{}`: its token {}, `{}`, has probability zero",
        sentence_idx + 1,
        path.display(),
        token_idx + 1,
        model.lexicon().vocab.word(word)
    );
    let hint = if word == WordId::UNK {
        "no word of the training text was unknown, so the model cannot tell how likely one is: \
         train it with `--min-count 2`, which makes words that are seen once unknown ones"
    } else if model.downcast_ref::<Hmm>().is_some() {
        "the training text never had it there: train the model with `--prior 0.01`"
    } else {
        "the model gives this word no probability: train one on text that has it"
    };
    hinted(message, hint)
}
