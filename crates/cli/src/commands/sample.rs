use crate::args::Common;
use crate::commands::{language_model, open_language_model};
use crate::output::Output;
use anyhow::Result;
use clap::Args;
use latens::math::Rng;
use latens::tasks::sample;
use serde::Serialize;
use std::path::PathBuf;

/// Make up text with a language model
///
/// A model goes in; out come sentences drawn from it, one a line. `--seed` chooses which.
#[derive(Args)]
pub(crate) struct SampleArgs {
    /// A language model
    model: PathBuf,
    /// How many sentences to draw
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,
    /// The most words of a sentence
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_words: usize,
}

#[derive(Serialize)]
struct SampleResult {
    sentences: Vec<String>,
}

pub(crate) fn run(args: &SampleArgs, common: &Common, output: &Output) -> Result<()> {
    let any_model = open_language_model(&args.model)?;
    let model = language_model(&any_model, &args.model)?;
    let vocab = &any_model.lexicon().vocab;
    let mut rng = Rng::new(common.seed);
    let sentences = (0..args.n).map(|_| {
        let words = sample(model, args.max_words, &mut rng);
        words.into_iter().map(|word| vocab.word(word)).collect::<Vec<_>>().join(" ")
    });
    let result = SampleResult { sentences: sentences.collect() };
    output.result(&result, |out| {
        result.sentences.iter().try_for_each(|sentence| writeln!(out, "{sentence}"))
    })?;
    Ok(())
}
