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

/// Compute the perplexity of text under a language model
///
/// Reads a model and text, and prints the perplexity: the exponential of the mean negative log-probability per token. The
/// end of each sentence counts as one token, as in the papers. Text is preprocessed like the training text.
#[derive(Args)]
pub(crate) struct PerplexityArgs {
    /// Language model
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
    if !result.perplexity.is_finite() || !result.log_prob.is_finite() {
        return Err(hinted(
            format!("the perplexity of the text under `{}` is not finite", args.model.display()),
            "the training of the model probably diverged: train it again with a lower `--learning-rate`",
        ));
    }
    output.result(&result, |out| {
        let (tokens, oov) = (thousands(result.tokens), thousands(result.oov));
        writeln!(out, "perplexity {:.2}", result.perplexity)?;
        writeln!(out, "log_prob   {:.2} (natural logarithm)", result.log_prob)?;
        writeln!(out, "tokens     {tokens}, {oov} of them unknown")
    })
}

/// The error for a text with probability zero.
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
        "the training text had no unknown words: \
         train the model with `--min-count 2`, which replaces words that occur once by `<unk>`"
    } else if model.downcast_ref::<Hmm>().is_some() {
        "the word never occurred in this context in the training text: train the model with `--prior 0.01`"
    } else {
        "train the model on text that contains this word"
    };
    hinted(message, hint)
}
