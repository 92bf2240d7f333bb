use crate::args::{ReadingArgs, WordArgs};
use crate::cache::{CacheArgs, read_corpus};
use crate::errors::hinted;
use crate::output::{Output, thousands};
use crate::paths::check_output;
use crate::progress::{Watcher, catch_interrupts};
use crate::reading::watched;
use anyhow::Result;
use clap::{Args, ValueEnum};
use latens::counts::{Boundary, Budget, CountError, LagCounts};
use latens::model::{FitError, Progress};
use serde::Serialize;
use std::path::PathBuf;

/// Count pairs of words that stand near each other
///
/// Text goes in; out come counts of how often each word stands 1, 2, ... tokens after each other word,
/// from one pass over the text, in bounded memory. Pairs never cross the end of a file. Counts of parts
/// of a text, made with one `--vocab`, are added with `--merge`, and are then exactly the counts of
/// the whole.
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
    /// The largest distance in tokens
    #[arg(long, value_name = "K", required_unless_present = "merge")]
    lags: Option<usize>,
    /// Whether pairs may stand in two sentences of a file
    #[arg(long, value_enum, default_value_t)]
    boundary: BoundaryArg,
    /// How much memory counts may take before they go to temporary files, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    memory: usize,
    /// Add up files of counts
    #[arg(long, conflicts_with_all = [
        "lags", "boundary", "cache", "format", "fields", "invalid", "tokenize", "lowercase", "digits",
        "min_count", "max_vocab", "vocab",
    ])]
    merge: bool,
    /// Where to write the counts
    #[arg(short, long, value_name = "COUNTS")]
    output: PathBuf,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum BoundaryArg {
    /// Sentences of a file form one stream
    #[default]
    Stream,
    /// Pairs stand in one sentence
    Sentence,
}

impl From<BoundaryArg> for Boundary {
    fn from(boundary: BoundaryArg) -> Boundary {
        match boundary {
            BoundaryArg::Stream => Boundary::Stream,
            BoundaryArg::Sentence => Boundary::Sentence,
        }
    }
}

#[derive(Serialize)]
struct CountResult {
    tokens: u64,
    vocab: usize,
    lags: usize,
    nonzeros: usize,
}

pub(crate) fn run(args: &CountArgs, output: &Output) -> Result<()> {
    check_output(&args.output, args.files.iter().chain(&args.words.vocab))?;
    let budget = Budget { bytes: args.memory << 20, ..Budget::default() };
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
            "{pairs} different pairs at {} lags of {tokens} tokens in `{path}`",
            result.lags
        )
    })
}

fn count(args: &CountArgs, lags: usize, budget: &Budget, output: &Output) -> Result<LagCounts> {
    let inputs = watched(args.reading.inputs(&args.files)?, output);
    let words = &args.words;
    let corpus = read_corpus(&inputs, &words.learned, words.vocab.as_deref(), &args.cache)?;
    let boundary = args.boundary.into();
    catch_interrupts()?;
    let mut watcher = Watcher::new(output, None, None, false);
    let total = corpus.sentences.n_tokens() as u64;
    let counted = LagCounts::of(&corpus, lags, boundary, budget, &mut |done_tokens| {
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

fn merge(args: &CountArgs, budget: &Budget) -> Result<LagCounts> {
    merge_files(&args.files, budget)
}

/// The sum of some files of counts.
pub(crate) fn merge_files(files: &[PathBuf], budget: &Budget) -> Result<LagCounts> {
    let parts: Result<Vec<LagCounts>, CountError> =
        files.iter().map(|path| LagCounts::open(path)).collect();
    LagCounts::merge(&parts?, budget).map_err(|error| {
        hinted(error.to_string(), "count all parts with one `--vocab` and the same options")
    })
}
