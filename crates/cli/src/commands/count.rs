use crate::args::{ReadingArgs, WordArgs};
use crate::cache::{CacheArgs, encode_corpus, read_corpus};
use crate::choice::choice;
use crate::errors::hinted;
use crate::interrupts::catch_interrupts;
use crate::output::{Output, thousands};
use crate::progress::Watcher;
use crate::reading::{total_bytes, watched};
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Corpus, Inputs, Lexicon};
use latens::counts::{Boundary, Budget, CountError, LagCounts};
use latens::model::{FitError, Progress};
use serde::Serialize;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Count pairs of words at short distances
///
/// Reads text and writes how often each word occurs 1, 2, ... tokens after each other word, in one pass over the text and
/// bounded memory. Pairs never cross the end of a file. `--merge` adds the counts of parts of a text that were computed
/// with the same `--vocab`; the result equals the counts of the whole text.
#[derive(Args)]
pub(crate) struct CountArgs {
    /// Text files, or files of counts with `--merge`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    words: WordArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// Maximum distance in tokens
    #[arg(long, value_name = "K", required_unless_present = "merge")]
    lags: Option<usize>,
    /// Boundary that pairs do not cross
    #[arg(long, value_enum, default_value_t)]
    boundary: BoundaryArg,
    /// Memory limit in MiB for the encoded text and its counts, besides the vocabulary and buffers of a few MiB per thread;
    /// what exceeds it is written to temporary files
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    memory: usize,
    /// Add the counts of several files
    #[arg(long, conflicts_with_all = [
        "lags", "boundary", "cache", "format", "fields", "invalid", "max_line", "tokenize", "lowercase", "digits",
        "min_count", "max_vocab", "vocab",
    ])]
    merge: bool,
    /// Path of the counts to write
    #[arg(short, long, value_name = "COUNTS")]
    output: PathBuf,
}

choice!(#[derive(Default)] pub(crate) BoundaryArg for Boundary {
    #[default] Stream "End of a file: its sentences form one stream",
    Sentence "End of a sentence",
});

#[derive(Serialize)]
struct CountResult {
    tokens: u64,
    vocab: usize,
    lags: usize,
    nonzeros: usize,
}

pub(crate) fn run(args: &CountArgs, output: &Output) -> Result<()> {
    let budget = Budget { bytes: args.memory.saturating_mul(1 << 20), ..Budget::default() };
    let counts = match args.lags {
        Some(lags) => count(args, lags, &budget, output)?,
        None => merge(args, &budget)?,
    };
    counts.save(&args.output)?;
    let result = CountResult {
        tokens: counts.n_tokens(),
        vocab: counts.vocab().len(),
        lags: counts.n_lags(),
        nonzeros: counts.lags().iter().map(|lag| lag.nnz()).sum(),
    };
    output.result(&result, |out| {
        let (tokens, pairs) = (thousands(result.tokens as usize), thousands(result.nonzeros));
        let path = args.output.display();
        writeln!(
            out,
            "wrote `{path}`: {pairs} distinct pairs at {} lags from {tokens} tokens",
            result.lags
        )
    })
}

fn count(args: &CountArgs, lags: usize, budget: &Budget, output: &Output) -> Result<LagCounts> {
    let inputs = watched(args.reading.inputs(&args.files)?, output);
    let text = EncodedText::read(args, &inputs, budget)?;
    let (corpus, budget) = (&text.corpus, &text.budget);
    let boundary = args.boundary.into();
    catch_interrupts();
    let mut watcher = Watcher::new(output, None, None, false);
    let total = corpus.sentences.n_tokens() as u64;
    let counted = LagCounts::of(corpus, lags, boundary, budget, &mut |done_tokens| {
        watcher.watch(&Progress {
            phase: "count pairs",
            done: done_tokens as u64,
            total: Some(total),
            unit: "tokens",
            ..Progress::default()
        })
    });
    watcher.finish(counted.map_err(|error| match error {
        CountError::Interrupted => FitError::Interrupted,
        error => FitError::step("count pairs")(error),
    }))
}

/// A text to count, in memory or in a file, and the budget that it leaves to the counts.
struct EncodedText {
    corpus: Corpus,
    budget: Budget,
    /// The folder of the file, which goes away with the text.
    _folder: Option<TempDir>,
}

impl EncodedText {
    /// Reads a text into memory if it is certain to fit into the budget, else into a temporary file.
    fn read(args: &CountArgs, inputs: &Inputs, budget: &Budget) -> Result<EncodedText> {
        let (words, vocab) = (&args.words.learned, args.words.vocab.as_deref());
        if args.cache.cache.is_some() {
            let corpus = read_corpus(inputs, words, vocab, &args.cache)?;
            return Ok(EncodedText { corpus, budget: budget.clone(), _folder: None });
        }
        if total_bytes(inputs).is_some_and(|n_bytes| fits(n_bytes, budget)) {
            let corpus = read_corpus(inputs, words, vocab, &args.cache)?;
            let bytes = budget.bytes.saturating_sub(n_bytes(&corpus));
            let budget = Budget { bytes, ..budget.clone() };
            return Ok(EncodedText { corpus, budget, _folder: None });
        }
        let folder = tempfile::Builder::new().prefix(".latens-").tempdir_in(&budget.folder);
        let folder = folder.with_context(|| {
            format!("cannot write to the temporary folder `{}`", budget.folder.display())
        })?;
        let lexicon = vocab.map(Lexicon::open).transpose()?;
        let path = folder.path().join("text");
        let corpus = encode_corpus(&path, inputs, words, lexicon.as_ref())?;
        // Where a mapped file can be removed, nothing is left behind if the program is killed.
        let _ = fs::remove_file(&path);
        Ok(EncodedText { corpus, budget: budget.clone(), _folder: Some(folder) })
    }
}

/// Whether the encoded text of files of `n_bytes` bytes fits into half of the budget, whatever they contain.
fn fits(n_bytes: u64, budget: &Budget) -> bool {
    /// An empty line of one byte becomes an id of 4 bytes and an offset of 8. Arrays that grow have up to twice their size.
    const MAX_GROWTH: u64 = 24;
    n_bytes.saturating_mul(MAX_GROWTH) <= budget.bytes as u64 / 2
}

/// Size of an encoded text in memory.
fn n_bytes(corpus: &Corpus) -> usize {
    let sentences = &corpus.sentences;
    size_of_val(sentences.tokens()) + size_of_val(sentences.offsets())
}

fn merge(args: &CountArgs, budget: &Budget) -> Result<LagCounts> {
    merge_files(&args.files, budget)
}

/// Adds the counts of several files.
pub(crate) fn merge_files(files: &[PathBuf], budget: &Budget) -> Result<LagCounts> {
    let parts: Result<Vec<LagCounts>, CountError> = files.iter().map(LagCounts::open).collect();
    LagCounts::merge(&parts?, budget).map_err(|error| {
        hinted(
            error.to_string(),
            "run `latens count` for all parts with the same `--vocab` and options",
        )
    })
}
