use crate::args::Common;
use crate::commands::roles::language_model;
use crate::output::{Output, print, print_json, shown_words};
use anyhow::Result;
use clap::Args;
use latens::math::Rng;
use latens::tasks::sample;
use serde_json::json;
use std::path::PathBuf;

/// Generate text with a language model
///
/// Draws sentences from a model and prints one sentence per line. `--seed` determines the sample.
#[derive(Args)]
pub(crate) struct SampleArgs {
    /// Language model
    model: PathBuf,
    /// Number of sentences
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,
    /// Maximum number of words per sentence
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_words: usize,
}

pub(crate) fn run(args: &SampleArgs, common: &Common, output: &Output) -> Result<()> {
    let any_model = &*latens::open(&args.model)?;
    let model = language_model(any_model, &args.model)?;
    let vocab = &any_model.lexicon().vocab;
    let mut rng = Rng::new(common.seed);
    let mut draw = || -> Vec<&str> {
        let words = sample(model, args.max_words, &mut rng);
        words.into_iter().map(|word| vocab.word(word)).collect()
    };
    if output.is_json() {
        let mut sentences = Vec::new();
        // `collect` would reserve memory for all sentences at once.
        for _ in 0..args.n {
            sentences.push(draw().join(" "));
        }
        print_json(&json!({ "sentences": sentences }))
    } else {
        print(|out| (0..args.n).try_for_each(|_| writeln!(out, "{}", shown_words(draw()))))
    }
}
