use crate::args::{LearnedWordArgs, TextArgs};
use crate::cache::{CacheArgs, read_corpus};
use crate::output::{Output, thousands};
use crate::paths::check_output;
use crate::reading::watched;
use anyhow::{Context, Result, bail};
use clap::Args;
use latens::corpus::{Census, Corpus, Lexicon, Preprocessing, Vocab, VocabLimits};
use latens::store::write_atomically;
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Learn the vocabulary of a text
///
/// Text goes in; out comes a text file with one word a line, a tab, and how often it was seen, most
/// frequent first after `<unk>` and `<eos>`. Its first line says what was done to the text before words
/// were counted. `--vocab` of other commands takes it.
#[derive(Args)]
pub(crate) struct VocabArgs {
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    words: LearnedWordArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// Where to write the vocabulary
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
    check_output(&args.output, &args.text.files)?;
    let census = match &args.cache.cache {
        None => Lexicon::learn(&inputs, &args.words.preprocessing(), &args.words.limits())?,
        Some(_) => census(read_corpus(&inputs, &args.words, None, &args.cache)?),
    };
    write_atomically(&args.output, |out| write_lexicon(&census.lexicon, out))?;
    let result = VocabResult {
        path: args.output.display().to_string(),
        tokens: census.n_tokens,
        sentences: census.n_sentences,
        vocab: census.lexicon.vocab.len(),
    };
    output.result(&result, |out| {
        let (words, tokens) = (thousands(result.vocab), thousands(result.tokens as usize));
        writeln!(out, "{words} words of {tokens} tokens in `{}`", result.path)
    })
}

fn census(corpus: Corpus) -> Census {
    let (n_tokens, n_sentences) = (corpus.sentences.n_tokens(), corpus.sentences.len());
    let (n_tokens, n_sentences) = (n_tokens as u64, n_sentences as u64);
    Census { lexicon: corpus.lexicon, n_tokens, n_sentences }
}

/// What the first line of a vocabulary file begins with; JSON follows.
const MAGIC: &str = "# latens vocab 1 ";

fn write_lexicon(lexicon: &Lexicon, out: &mut dyn Write) -> io::Result<()> {
    let how = serde_json::to_string(&(lexicon.preprocessing, lexicon.limits))?;
    writeln!(out, "{MAGIC}{how}")?;
    for (word, count) in lexicon.vocab.words().zip(lexicon.vocab.counts()) {
        writeln!(out, "{word}\t{count}")?;
    }
    Ok(())
}

/// Reads a file that [`write_lexicon`] wrote.
pub(crate) fn read_lexicon(path: &Path) -> Result<Lexicon> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let lexicon = parse_lexicon(&text);
    lexicon.with_context(|| format!("`{}` is no vocabulary of `latens vocab`", path.display()))
}

fn parse_lexicon(text: &str) -> Result<Lexicon> {
    let Some((how, body)) = text.strip_prefix(MAGIC).and_then(|rest| rest.split_once('\n')) else {
        bail!("it does not begin with `{}`", MAGIC.trim());
    };
    let (preprocessing, limits): (Preprocessing, VocabLimits) =
        serde_json::from_str(how).context("its first line is damaged")?;
    let (mut words, mut counts) = (Vec::new(), Vec::new());
    for (line, number) in body.lines().zip(2..) {
        let entry = line.split_once('\t').and_then(|(w, count)| Some((w, count.parse().ok()?)));
        let Some((word, count)) = entry else { bail!("line {number} is no word, tab, count") };
        words.push(word);
        counts.push(count);
    }
    Ok(Lexicon { preprocessing, limits, vocab: Vocab::from_parts(words, counts)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_file_gives_the_lexicon_back() {
        let limits = VocabLimits { min_count: 2, max_vocab: 9 };
        let preprocessing = Preprocessing { lowercase: true, ..Preprocessing::default() };
        let vocab = Vocab::from_counts([("a", 3), ("#", 2), ("é", 2)], &limits);
        let lexicon = Lexicon { preprocessing, limits, vocab };
        let mut text = Vec::new();
        write_lexicon(&lexicon, &mut text).unwrap();
        let again = parse_lexicon(std::str::from_utf8(&text).unwrap()).unwrap();
        assert_eq!((again.preprocessing, again.limits), (preprocessing, limits));
        assert_eq!(again.vocab.fingerprint(), lexicon.vocab.fingerprint());
        assert_eq!(again.vocab.counts(), lexicon.vocab.counts());
    }

    #[test]
    fn other_files_are_no_vocabulary() {
        for text in ["", "a\t1\n", "# latens vocab 1 {}\n", "# latens vocab 1 [{},{}]\na\n"] {
            assert!(parse_lexicon(text).is_err(), "{text:?}");
        }
    }
}
