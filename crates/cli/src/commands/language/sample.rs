use crate::args::Common;
use crate::commands::language::drawing::{UnkArg, share, temperature};
use crate::commands::roles::language_model;
use crate::output::{Output, print, print_json, shown_words};
use anyhow::Result;
use clap::Args;
use latens::corpus::WordId;
use latens::model::{Device, FitError, LanguageModel};
use latens::tasks::{SampleOptions, sample_sentences_on};
use serde_json::json;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Generate text with a language model
///
/// Draws sentences from a model and prints one sentence per line. The same `--seed` gives different samples on the CPU
/// and on a GPU. `--temperature` changes the probabilities of the next word first, then `--top-k` and `--top-p` limit the words to
/// draw from.
#[derive(Args)]
pub(crate) struct SampleArgs {
    /// Language model
    model: PathBuf,
    /// Number of sentences
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,
    /// Maximum number of words to draw per sentence
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_words: usize,
    /// Beginning of each sentence, preprocessed like the training text
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Temperature T: probabilities are raised to the power 1/T. Below 1 favors likely words, above 1 gives more
    /// variety, 0 always takes the most likely word
    #[arg(long, value_name = "T", default_value_t = 1.0, value_parser = temperature)]
    temperature: f64,
    /// Draw only from the K most likely words
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    top_k: Option<u32>,
    /// Draw only from the smallest set of most likely words with a total probability of at least P (0 < P ≤ 1)
    #[arg(long, value_name = "P", value_parser = share)]
    top_p: Option<f64>,
    /// Whether `<unk>`, which stands for all unknown words, is drawn
    #[arg(long, value_enum, default_value_t)]
    unk: UnkArg,
    /// Device to draw on: `cpu`, or `cuda` for networks, without `--prompt`, `--temperature`, `--top-k` and `--top-p`
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
}

pub(crate) fn run(args: &SampleArgs, common: &Common, output: &Output) -> Result<()> {
    let any_model = &*latens::open(&args.model)?;
    let model = language_model(any_model, &args.model)?;
    let lexicon = any_model.lexicon();
    let prompt = lexicon.ids(args.prompt.as_deref().unwrap_or(""));
    let mut options = SampleOptions::default();
    options.max_words = args.max_words;
    options.keep_unk = args.unk == UnkArg::Keep;
    options.temperature = args.temperature;
    options.top_k = args.top_k.map(|k| k as usize);
    options.top_p = args.top_p;
    // The prompt as its reader wrote it: the model may know its words only as `<unk>`.
    let mut shown_prompt: Vec<String> = Vec::new();
    lexicon.preprocessing.words(args.prompt.as_deref().unwrap_or(""), |word| {
        shown_prompt.push(word.to_owned());
    });
    let n_unknown = prompt.iter().filter(|&&word| word == WordId::UNK).count();
    if n_unknown > 0 {
        output.note(&format!(
            "warning: {n_unknown} of the {} words of the prompt are unknown to the model",
            prompt.len()
        ));
    }
    let shown = |words: Vec<WordId>| -> Vec<&str> {
        let drawn = words.into_iter().map(|word| lexicon.vocab.word(word));
        shown_prompt.iter().map(String::as_str).chain(drawn).collect()
    };
    let draw = Draw { model, prompt: &prompt, options, args, seed: common.seed };
    if output.is_json() {
        let mut sentences = Vec::new();
        draw.run(|next| {
            sentences.extend(next.into_iter().map(|words| shown(words).join(" ")));
            Ok(())
        })??;
        return print_json(&json!({ "sentences": sentences }));
    }
    let mut drawn = Ok(());
    print(|out| {
        let mut write = |words| writeln!(out, "{}", shown_words(shown(words)));
        match draw.run(|next| next.into_iter().try_for_each(&mut write)) {
            Ok(written) => written,
            Err(error) => {
                drawn = Err(error);
                Ok(())
            }
        }
    })?;
    Ok(drawn?)
}

/// What to draw.
struct Draw<'a> {
    model: &'a dyn LanguageModel,
    prompt: &'a [WordId],
    options: SampleOptions,
    args: &'a SampleArgs,
    seed: u64,
}

impl Draw<'_> {
    /// Draws sentences, until `write` fails. The inner result is that of `write`.
    fn run(
        &self,
        mut write: impl FnMut(Vec<Vec<WordId>>) -> io::Result<()>,
    ) -> Result<io::Result<()>, FitError> {
        let Draw { model, prompt, ref options, args, seed } = *self;
        let receive = |next| match write(next) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        };
        Ok(match sample_sentences_on(args.device, model, prompt, options, args.n, seed, receive)? {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        })
    }
}
