use crate::args::{LearnedWordArgs, TextArgs};
use crate::cache::{CacheArgs, read_corpus};
use crate::output::{Output, thousands};
use crate::reading::watched;
use anyhow::Result;
use clap::Args;
use latens::corpus::{Census, Corpus, Lexicon};
use serde::Serialize;
use std::path::PathBuf;

/// Learn the vocabulary of a text
///
/// Reads text and writes a text file with one word per line, a tab and its count: `<unk>` and `<eos>`, then all words by
/// descending count. The first line records the preprocessing. Other commands read the file with `--vocab`.
#[derive(Args)]
pub(crate) struct VocabArgs {
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    words: LearnedWordArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// Path of the vocabulary to write
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

#[derive(Serialize)]
struct VocabResult {
    path: String,
    tokens: u64,
    sentences: u64,
    vocab: usize,
}

pub(crate) fn run(args: &VocabArgs, output: &Output) -> Result<()> {
    let inputs = watched(args.text.inputs()?, output);
    let census = match &args.cache.cache {
        None => Lexicon::learn(&inputs, &args.words.preprocessing(), &args.words.limits())?,
        Some(_) => census(read_corpus(&inputs, &args.words, None, &args.cache)?),
    };
    census.lexicon.save(&args.output)?;
    let result = VocabResult {
        path: args.output.display().to_string(),
        tokens: census.n_tokens,
        sentences: census.n_sentences,
        vocab: census.lexicon.vocab.len(),
    };
    output.result(&result, |out| {
        let (words, tokens) = (thousands(result.vocab), thousands(result.tokens as usize));
        writeln!(out, "wrote `{}`: {words} words from {tokens} tokens", result.path)
    })
}

fn census(corpus: Corpus) -> Census {
    let (n_tokens, n_sentences) = (corpus.sentences.n_tokens(), corpus.sentences.len());
    let (n_tokens, n_sentences) = (n_tokens as u64, n_sentences as u64);
    Census { lexicon: corpus.lexicon, n_tokens, n_sentences }
}
