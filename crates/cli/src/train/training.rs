//! What all trainers share: files, checkpoints, the fit itself and its result.

use super::dry_run::{CostArgs, show_cost};
use crate::args::{TextArgs, WordArgs};
use crate::cache::{CacheArgs, read_corpus};
use crate::errors::hinted;
use crate::interrupts::catch_interrupts;
use crate::output::{Output, thousands};
use crate::paths::{cannot_write, check_input, checkpoint_path, write_elsewhere};
use crate::progress::Watcher;
use crate::reading::watched;
use anyhow::{Context, Result};
use clap::Args;
use latens::corpus::{Corpus, Lexicon, Sentences, WordId};
use latens::model::file::inspect;
use latens::model::{Checkpoint, Device, Fit, FitError, Model};
use latens::store::is_stream;
use latens::tasks::perplexity;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

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
    #[arg(short, long, value_name = "PATH")]
    pub(super) output: PathBuf,
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
            metrics.try_for_each(|(name, value)| writeln!(out, "{name} {value}"))
        })
    }
}

impl TrainingArgs {
    /// Reads the text and starts the training of a model.
    pub(super) fn begin(&self, output: &Output) -> Result<Training<'_>> {
        let checkpoint = self.run.open_checkpoint()?;
        self.read(checkpoint, output)
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

    /// Reads the text after checking that the validation set can be read.
    fn read(&self, checkpoint: Option<Checkpoint>, output: &Output) -> Result<Training<'_>> {
        let started = Instant::now();
        self.run.check_valid()?;
        let inputs = watched(self.text.inputs()?, output);
        let vocab = self.words.vocab.as_deref();
        let corpus = read_corpus(&inputs, &self.words.learned, vocab, &self.run.cache)?;
        let valid = self.read_valid(&corpus.lexicon)?;
        let sizes = (corpus.sentences.n_tokens(), corpus.lexicon.vocab.len());
        self.run.begin_with(started, corpus, sizes, valid, checkpoint, output)
    }

    fn read_valid(&self, lexicon: &Lexicon) -> Result<Option<Sentences>> {
        let Some(valid) = &self.run.valid else { return Ok(None) };
        let inputs = self.text.reading.inputs(std::slice::from_ref(valid))?;
        Ok(Some(lexicon.read(&inputs)?))
    }
}

impl RunArgs {
    pub(super) fn open_checkpoint(&self) -> Result<Option<Checkpoint>> {
        let path = checkpoint_path(&self.output);
        if self.resume {
            return open_checkpoint(&path).map(Some);
        }
        refuse_other_file(&path)?;
        Ok(None)
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
        let checkpoint_path = (!self.cost.dry_run).then(|| checkpoint_path(&self.output));
        let watcher = Watcher::new(output, log, checkpoint_path, self.resume);
        let args = self;
        Ok(Training { args, started, data, n_tokens, n_words, valid, checkpoint, watcher })
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

pub(crate) fn open_checkpoint(path: &Path) -> Result<Checkpoint> {
    if !path.exists() {
        return Err(hinted(
            format!("cannot resume: the checkpoint `{}` does not exist", path.display()),
            "omit `--resume` to start from scratch",
        ));
    }
    Ok(Checkpoint::open(path)?)
}

/// Saves a model. If its path cannot be written after all, e.g., because the disk is full, the work of hours goes to the
/// folder of temporary files.
pub(crate) fn save_model(model: &dyn Model, path: &Path) -> Result<()> {
    let Err(error) = model.save(path) else { return Ok(()) };
    if is_stream(path) {
        return Err(error.into());
    }
    match write_elsewhere(path, |path| Ok(model.save(path)?)) {
        Ok(elsewhere) => {
            let message = format!("{:#}", anyhow::Error::new(error));
            Err(hinted(message, format!("the model is in `{}`: move it", elsewhere.display())))
        }
        Err(_) => Err(error.into()),
    }
}

/// Rejects a run whose checkpoint would overwrite a file that is not a checkpoint.
pub(crate) fn refuse_other_file(path: &Path) -> Result<()> {
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
            show_cost(&builder.cost(&self.data)?, output)?;
            return Ok(None);
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
        let path = &self.args.output;
        save_model(model, path)?;
        self.watcher.log_result(&metrics);
        // The model is complete, so its checkpoint is obsolete. One that this run neither wrote nor read may belong to
        // another run.
        if self.watcher.has_saved() || self.checkpoint.is_some() {
            let _ = fs::remove_file(checkpoint_path(&self.args.output));
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
