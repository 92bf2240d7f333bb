//! What all trainers share: files, checkpoints, the fit itself and its result.

use super::cost::{CostArgs, show_cost, time_estimate};
use crate::args::{TextArgs, WordArgs};
use crate::cache::{CacheArgs, EncodedText, read_corpus};
use crate::errors::hinted;
use crate::interrupts::catch_interrupts;
use crate::output::{Output, figure, thousands};
use crate::paths::{cannot_write, check_input, checkpoint_path, write_elsewhere};
use crate::progress::Watcher;
use crate::reading::watched;
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Corpus, Lexicon, Sentences, Tokenize, WordId, has_no_spaces};
use latens::counts::Budget;
use latens::model::file::inspect;
use latens::model::{Checkpoint, Device, Fit, FitError, Model};
use latens::store::is_stream;
use latens::tasks::perplexity;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;

/// Options for training any model.
#[derive(Args)]
pub(super) struct TrainingArgs {
    #[command(flatten)]
    pub(super) text: TextArgs,
    #[command(flatten)]
    pub(super) words: WordArgs,
    #[command(flatten)]
    pub(super) run: RunArgs,
}

/// Options of a training run, whatever it reads.
#[derive(Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) cache: CacheArgs,
    /// Path of the model to write
    #[arg(short, long, value_name = "PATH", required_unless_present = "dry_run")]
    pub(super) output: Option<PathBuf>,
    /// Validation set, in the same format as the training text
    #[arg(long, value_name = "FILE")]
    pub(super) valid: Option<PathBuf>,
    /// Continue from the checkpoint of an interrupted run
    #[arg(long)]
    pub(super) resume: bool,
    /// Write one JSON line per iteration to this file (a single line for models without iterations)
    #[arg(long, value_name = "FILE.jsonl")]
    pub(super) log: Option<PathBuf>,
    #[command(flatten)]
    pub(super) cost: CostArgs,
}

/// A training run with its data.
pub(super) struct Training<'a, D = Corpus> {
    pub(super) args: &'a RunArgs,
    pub(super) started: Instant,
    pub(super) data: D,
    /// Number of training tokens, also if only their counts are in memory.
    pub(super) n_tokens: usize,
    /// Size of the vocabulary.
    pub(super) n_words: usize,
    /// Validation set.
    pub(super) valid: Option<Sentences>,
    /// Checkpoint to continue from.
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) watcher: Watcher,
}

/// When a model is evaluated on the validation set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldOut {
    /// After each iteration of training.
    WhileTraining,
    /// After training, if it is a language model.
    Afterwards,
}

/// Result of a training run.
#[derive(Serialize)]
pub(crate) struct TrainResult {
    pub(crate) model: &'static str,
    pub(crate) path: String,
    pub(crate) seconds: f64,
    pub(crate) tokens: usize,
    pub(crate) vocab: usize,
    pub(crate) metrics: Map<String, Value>,
}

impl TrainResult {
    pub(crate) fn show(&self, output: &Output) -> Result<()> {
        output.result(self, |out| {
            writeln!(out, "wrote `{}` in {:.1} s", self.path, self.seconds)?;
            let mut metrics = self.metrics.iter();
            metrics.try_for_each(|(name, value)| match value.as_f64().filter(|_| value.is_f64()) {
                Some(x) => writeln!(out, "{name} {}", figure(x)),
                None => writeln!(out, "{name} {value}"),
            })
        })
    }
}

impl TrainingArgs {
    /// Reads the text and starts the training of a model.
    pub(super) fn begin(&self, output: &Output) -> Result<Training<'_>> {
        let checkpoint = self.run.open_checkpoint()?;
        self.read(checkpoint, false, output)
    }

    /// Like [`TrainingArgs::begin`], for a model to which unknown words would be impossible: unless the text has `<unk>` or
    /// the user decides, words that occur once become `<unk>`.
    pub(super) fn begin_with_unknown_words(&self, output: &Output) -> Result<Training<'_>> {
        let checkpoint = self.run.open_checkpoint()?;
        self.read(checkpoint, true, output)
    }

    /// Starts the training of a model on counts instead of text.
    pub(super) fn begin_counted(
        &self,
        lexicon: Lexicon,
        n_tokens: usize,
        output: &Output,
    ) -> Result<Training<'_>> {
        let checkpoint = self.run.open_checkpoint()?;
        let started = Instant::now();
        self.run.check_valid()?;
        let sentences = Sentences::from_words(std::iter::empty::<Vec<WordId>>());
        let valid = self.read_valid(&lexicon)?;
        let sizes = (n_tokens, lexicon.vocab.len());
        let corpus = Corpus { lexicon, sentences };
        self.run.begin_with(started, corpus, sizes, valid, checkpoint, output)
    }

    /// Like [`TrainingArgs::begin`], for a model that is trained within a memory limit and has no checkpoints. Returns also
    /// what the text leaves of the limit, and the folder of the text, which is deleted with it.
    pub(super) fn begin_within(
        &self,
        budget: &Budget,
        output: &Output,
    ) -> Result<(Training<'_>, Budget, Option<TempDir>)> {
        let started = Instant::now();
        self.run.check_valid()?;
        let inputs = watched(self.text.inputs()?, output);
        let text = EncodedText::read(&inputs, &self.words, &self.run.cache(), budget)?;
        let EncodedText { corpus, budget, folder } = text;
        // Reading verified a checksum of the text, and the program needs only parts of it from now on.
        corpus.sentences.release();
        warn_of_characters(&corpus.lexicon, output);
        let valid = self.read_valid(&corpus.lexicon)?;
        let sizes = (corpus.sentences.n_tokens(), corpus.lexicon.vocab.len());
        let mut training = self.run.begin_with(started, corpus, sizes, valid, None, output)?;
        training.watcher.forgo_checkpoints();
        Ok((training, budget, folder))
    }

    /// Reads the text after checking that the validation set can be read.
    fn read(
        &self,
        checkpoint: Option<Checkpoint>,
        needs_unknown_words: bool,
        output: &Output,
    ) -> Result<Training<'_>> {
        let started = Instant::now();
        self.run.check_valid()?;
        let inputs = watched(self.text.inputs()?, output);
        let vocab = self.words.vocab.as_deref();
        let mut corpus = read_corpus(&inputs, &self.words.learned, vocab, &self.run.cache())?;
        warn_of_characters(&corpus.lexicon, output);
        if needs_unknown_words && let Some(limited) = self.with_unknown_words(&corpus) {
            let n_rare = thousands(limited.lexicon.vocab.count(WordId::UNK) as usize);
            output.note(&format!(
                "the text has no `<unk>`: {n_rare} words that occur once are read as `<unk>`, so that unknown words are \
                 possible (`--min-count 2`); `--min-count 1` keeps them"
            ));
            corpus = limited;
        }
        let valid = self.read_valid(&corpus.lexicon)?;
        let sizes = (corpus.sentences.n_tokens(), corpus.lexicon.vocab.len());
        self.run.begin_with(started, corpus, sizes, valid, checkpoint, output)
    }

    /// The text with `<unk>` for words that occur once, if it has no unknown words and the user did not decide.
    fn with_unknown_words(&self, corpus: &Corpus) -> Option<Corpus> {
        let is_decided = self.words.learned.min_count.is_some() || self.words.vocab.is_some();
        if is_decided { None } else { corpus.with_unknown_words() }
    }

    fn read_valid(&self, lexicon: &Lexicon) -> Result<Option<Sentences>> {
        let Some(valid) = &self.run.valid else { return Ok(None) };
        let inputs = self.text.reading.inputs(std::slice::from_ref(valid))?;
        Ok(Some(lexicon.read(&inputs)?))
    }
}

impl RunArgs {
    pub(super) fn open_checkpoint(&self) -> Result<Option<Checkpoint>> {
        find_checkpoint(self.checkpoint_path().as_deref(), self.resume)
    }

    /// Starts a run on data. From then on, Ctrl-C waits for a checkpoint.
    pub(super) fn begin_with<D>(
        &self,
        started: Instant,
        data: D,
        (n_tokens, n_words): (usize, usize),
        valid: Option<Sentences>,
        checkpoint: Option<Checkpoint>,
        output: &Output,
    ) -> Result<Training<'_, D>> {
        let log = self.log.as_deref().filter(|_| !self.cost.dry_run);
        let log = log.map(|path| open_log(path, self.resume)).transpose()?;
        catch_interrupts();
        output.note(&format!("{} tokens, {} words", thousands(n_tokens), thousands(n_words)));
        let checkpoint_path = self.checkpoint_path().filter(|_| !self.cost.dry_run);
        let watcher = Watcher::new(output, log, checkpoint_path, self.resume);
        let args = self;
        Ok(Training { args, started, data, n_tokens, n_words, valid, checkpoint, watcher })
    }

    fn checkpoint_path(&self) -> Option<PathBuf> {
        self.output.as_deref().and_then(checkpoint_path)
    }

    /// The cache, which a dry run does not write.
    pub(super) fn cache(&self) -> CacheArgs {
        CacheArgs { cache: self.cache.cache.clone().filter(|_| !self.cost.dry_run) }
    }

    pub(super) fn check_valid(&self) -> Result<()> {
        self.valid.as_deref().map_or(Ok(()), check_input)
    }
}

/// Opens a log. A resumed run appends to it, a new run overwrites it.
pub(crate) fn open_log(path: &Path, resume: bool) -> Result<File> {
    let mut options = File::options();
    if resume {
        options.append(true)
    } else {
        options.write(true).truncate(true)
    };
    options.create(true).open(path).with_context(|| cannot_write(path))
}

/// The checkpoint to continue from. A run that starts anew must not overwrite a file that is not a checkpoint.
pub(crate) fn find_checkpoint(path: Option<&Path>, resume: bool) -> Result<Option<Checkpoint>> {
    match (path, resume) {
        (Some(path), true) => open_checkpoint(path).map(Some),
        (Some(path), false) => refuse_other_file(path).map(|()| None),
        (None, true) => Err(hinted(
            "`--resume` needs a checkpoint, which is next to the model file",
            "pass the path of the interrupted run with `-o`",
        )),
        (None, false) => Ok(None),
    }
}

/// Warns of text without spaces that was split into characters.
pub(super) fn warn_of_characters(lexicon: &Lexicon, output: &Output) {
    if !matches!(lexicon.preprocessing.tokenize, Tokenize::Words | Tokenize::Tweets) {
        return;
    }
    let is_character = |word: &str| word.chars().count() == 1 && word.chars().all(has_no_spaces);
    let (mut n_characters, mut n_all) = (0, 0);
    for (word, &count) in lexicon.vocab.words().zip(lexicon.vocab.counts()) {
        n_all += count;
        n_characters += if is_character(word) { count } else { 0 };
    }
    if n_characters * 3 > n_all {
        let percent = 100 * n_characters / n_all.max(1);
        output.note(&format!(
            "warning: {percent} % of the words are single characters, because their script has no spaces between words\n\n\
             hint: separate the words by spaces first, or use `--tokenize dictionary` in a program that was built with \
             `--features segmentation`"
        ));
    }
}

fn open_checkpoint(path: &Path) -> Result<Checkpoint> {
    if !path.exists() {
        return Err(hinted(
            format!("cannot resume: the checkpoint `{}` does not exist", path.display()),
            "omit `--resume` to start from scratch",
        ));
    }
    Ok(Checkpoint::open(path)?)
}

/// Saves a model. If its path cannot be written, e.g., because the disk is full, saves it in the
/// temporary folder, so that hours of training are not lost.
pub(crate) fn save_model(model: &dyn Model, path: &Path) -> Result<()> {
    let Err(error) = model.save(path) else { return Ok(()) };
    if is_stream(path) {
        return Err(error.into());
    }
    match write_elsewhere(path, |path| Ok(model.save(path)?)) {
        Ok(elsewhere) => {
            let message = format!("{:#}", anyhow::Error::new(error));
            Err(hinted(message, format!("the model was saved as `{}`", elsewhere.display())))
        }
        Err(_) => Err(error.into()),
    }
}

/// Rejects a run whose checkpoint would overwrite a file that is not a checkpoint.
fn refuse_other_file(path: &Path) -> Result<()> {
    let is_checkpoint = || inspect(path).is_ok_and(|found| found.header.checkpoint.is_some());
    if path.exists() && !is_checkpoint() {
        return Err(hinted(
            format!("the checkpoint path `{}` exists and is not a checkpoint", path.display()),
            "move it, or choose another path with `-o`",
        ));
    }
    Ok(())
}

impl<D> Training<'_, D> {
    /// Fits a model to the data of this run. With `--dry-run`, prints the estimated cost instead and returns `None`.
    pub(super) fn fit<P>(
        &mut self,
        params: P,
        inputs: P::Inputs<'_>,
        device: Device,
        held_out: HeldOut,
        output: &Output,
    ) -> Result<Option<P::Model>>
    where
        P: Fit<Data = D, Error = FitError>,
    {
        let watcher = &mut self.watcher;
        let mut builder = params
            .with(inputs)
            .device(device)
            .force(self.args.cost.force)
            .watch(|progress| watcher.watch(progress));
        if let (HeldOut::WhileTraining, Some(valid)) = (held_out, &self.valid) {
            builder = builder.valid(valid);
        }
        if let Some(checkpoint) = &self.checkpoint {
            builder = builder.checkpoint(checkpoint);
        }
        if self.args.cost.dry_run {
            show_cost(&builder.cost(&self.data)?, device, output)?;
            return Ok(None);
        }
        if let Some(estimate) = time_estimate(&builder.cost(&self.data)?, device) {
            output.note(&estimate);
        }
        let fitted = builder.fit(&self.data);
        self.watcher.finish(fitted).map(Some)
    }

    /// Evaluates and saves the fitted model, and prints the result, which includes the training facts named in
    /// `facts`.
    pub(super) fn finish(
        mut self,
        model: &dyn Model,
        mut metrics: Map<String, Value>,
        facts: &[&str],
        output: &Output,
    ) -> Result<()> {
        let known = facts.iter().filter_map(|&name| Some((name, model.facts().get(name)?)));
        metrics.extend(known.map(|(name, value)| (name.to_owned(), value.clone())));
        if let (Some(model), Some(valid)) = (model.as_language_model(), &self.valid) {
            metrics.insert("valid_perplexity".into(), perplexity(model, valid).perplexity().into());
        }
        let path = self.args.output.as_ref().expect("only a dry run has no output");
        save_model(model, path)?;
        self.watcher.log_result(&metrics);
        // The model is complete, so its checkpoint is obsolete. One that this run neither wrote nor read may belong to
        // another run.
        if let Some(checkpoint) = self.args.checkpoint_path()
            && (self.watcher.has_saved() || self.checkpoint.is_some())
        {
            let _ = fs::remove_file(checkpoint);
        }
        let result = TrainResult {
            model: model.kind(),
            path: path.display().to_string(),
            seconds: self.started.elapsed().as_secs_f64(),
            tokens: self.n_tokens,
            vocab: self.n_words,
            metrics,
        };
        result.show(output)
    }
}
