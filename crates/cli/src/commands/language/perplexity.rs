use crate::args::TextArgs;
use crate::commands::roles::language_model;
use crate::errors::hinted;
use crate::output::{Output, thousands};
use crate::reading::watched;
use anyhow::{Error, Result};
use clap::Args;
use latens::corpus::{Sentences, WordId};
use latens::hmm::Hmm;
use latens::model::{Device, LanguageModel, Model};
use latens::tasks::{Impossible, first_impossible, perplexity_on, token_log_probs};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Compute the perplexity of text under a language model
///
/// Reads a model and text, and prints the perplexity: the exponential of the mean negative log-probability per token.
/// The end of each sentence counts as one token, as in the papers. Text is preprocessed like the training text. With
/// several files, the overall perplexity is followed by that of each file.
#[derive(Args)]
pub(crate) struct PerplexityArgs {
    /// Language model
    model: PathBuf,
    #[command(flatten)]
    text: TextArgs,
    /// Also print the perplexity without out-of-vocabulary words, which stay in the context but are not counted
    #[arg(long)]
    without_oov: bool,
    /// Device to score on: `cpu`, or `cuda` for hidden Markov models and networks
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
}

#[derive(Serialize)]
struct PerplexityResult {
    perplexity: f64,
    log_prob: f64,
    tokens: usize,
    oov: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    perplexity_without_oov: Option<f64>,
    /// Results of each file, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileResult>,
}

/// Perplexity of one file. Its history begins with the file.
#[derive(Serialize)]
struct FileResult {
    file: String,
    perplexity: f64,
    log_prob: f64,
    tokens: usize,
    oov: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    perplexity_without_oov: Option<f64>,
}

pub(crate) fn run(args: &PerplexityArgs, output: &Output) -> Result<()> {
    let inputs = watched(args.text.inputs()?, output);
    let any_model = &*latens::open(&args.model)?;
    let model = language_model(any_model, &args.model)?;
    let text = any_model.lexicon().read(&inputs)?;
    let found = perplexity_on(args.device, model, &text)?;
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
        perplexity_without_oov: args.without_oov.then(|| without_oov(model, &text)),
        files: args.files(model, &text)?,
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
        if let Some(without_oov) = result.perplexity_without_oov {
            writeln!(out, "           {without_oov:.2} without unknown words")?;
        }
        writeln!(out, "log_prob   {:.2} (natural logarithm)", result.log_prob)?;
        writeln!(out, "tokens     {tokens}, {oov} of them unknown")?;
        result.files.iter().try_for_each(|found| {
            let (tokens, oov) = (thousands(found.tokens), thousands(found.oov));
            write!(out, "`{}`: perplexity {:.2}", found.file, found.perplexity)?;
            if let Some(without_oov) = found.perplexity_without_oov {
                write!(out, ", {without_oov:.2} without unknown words")?;
            }
            writeln!(out, "; {tokens} tokens, {oov} of them unknown")
        })
    })
}

/// The perplexity of the words that are in the vocabulary, given all words before them.
fn without_oov(model: &dyn LanguageModel, text: &Sentences) -> f64 {
    let scores = token_log_probs(model, text);
    let known = text.tokens().iter().zip(scores).filter(|(word, _)| **word != WordId::UNK);
    let (n, log_prob) = known.fold((0, 0.0), |(n, sum), (_, score)| (n + 1, sum + score));
    (-log_prob / f64::from(n.max(1))).exp()
}

impl PerplexityArgs {
    /// The result of each file; none for a single file.
    fn files(&self, model: &dyn LanguageModel, text: &Sentences) -> Result<Vec<FileResult>> {
        if self.text.files.len() < 2 {
            return Ok(Vec::new());
        }
        let names = self.text.files.iter().map(|path| path.display().to_string());
        let bounds = text.segment_bounds().windows(2);
        let bounds = bounds.map(|bounds| text.slice(bounds[0] as usize..bounds[1] as usize));
        let result = |(file, text): (String, Sentences)| {
            let found = perplexity_on(self.device, model, &text)?;
            Ok(FileResult {
                file,
                perplexity: found.perplexity(),
                log_prob: found.log_prob,
                tokens: found.tokens,
                oov: found.oov,
                perplexity_without_oov: self.without_oov.then(|| without_oov(model, &text)),
            })
        };
        names.zip(bounds).map(result).collect()
    }
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
         train the model with `--min-count 2`, which replaces words that occur once with `<unk>`"
    } else if model.downcast_ref::<Hmm>().is_some() {
        "the word never occurred in this context in the training text: train the model with `--prior 0.01`"
    } else {
        "train the model on text that contains this word"
    };
    hinted(message, hint)
}
