use crate::args::{ReadingArgs, WordArgs, parse_size};
use crate::cache::{CacheArgs, EncodedText};
use crate::data::lag_counts::{BoundaryArg, merge_files};
use crate::interrupts::catch_interrupts;
use crate::output::{Output, thousands};
use crate::progress::Watcher;
use crate::reading::watched;
use anyhow::Result;
use clap::Args;
use latens::counts::{Budget, CountError, LagCounts};
use latens::model::{FitError, Progress};
use serde::Serialize;
use std::path::PathBuf;

/// Count pairs of words at short distances
///
/// Reads text and writes how often each word occurs 1, 2, ... tokens after each other word, in one pass over the text
/// and with bounded memory. Pairs never cross the end of a file. `--merge` adds the counts of parts of a text that were
/// computed with the same `--vocab`; the result equals the counts of the whole text.
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
    /// Memory limit for the encoded text and its counts, in MiB or with a unit (K, M, G), without the vocabulary and
    /// buffers of a few MiB per thread; what exceeds it is written to temporary files
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, default_value = "2G")]
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

#[derive(Serialize)]
struct CountResult {
    tokens: u64,
    vocab: usize,
    lags: usize,
    nonzeros: usize,
}

/// Bytes of a size. Without a unit it is in MiB, as in version 0.1.
fn parse_memory(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(mebibytes) => Ok(mebibytes.saturating_mul(1 << 20)),
        Err(_) => parse_size(text),
    }
}

pub(crate) fn run(args: &CountArgs, output: &Output) -> Result<()> {
    let budget = Budget::default().bytes(args.memory);
    let counts = match args.lags {
        Some(lags) => count(args, lags, &budget, output)?,
        None => merge_files(&args.files, &budget)?,
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
    let text = EncodedText::read(&inputs, &args.words, &args.cache, budget)?;
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
