//! `latens train`: one file a model, flags to parameters.

mod brown;
mod ngram;

use crate::args::{Common, TextArgs, WordArgs};
use crate::cache::{CacheArgs, read_corpus};
use crate::errors::hinted;
use crate::output::{Output, thousands};
use crate::progress::{Watcher, catch_interrupts};
use anyhow::Result;
use clap::{Args, Subcommand};
use latens::AnyModel;
use latens::corpus::storage::check_writable;
use latens::corpus::{Corpus, Sentences};
use latens::model::Checkpoint;
use latens::tasks::perplexity;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Learn a model from text
///
/// Text goes in; out comes one file with everything the model needs. Ctrl-C stops the work; models
/// that learn in iterations leave a checkpoint, from which `--resume` goes on.
#[derive(Args)]
pub(crate) struct TrainArgs {
    #[command(subcommand)]
    model: ModelArgs,
}

#[derive(Subcommand)]
enum ModelArgs {
    Brown(brown::BrownArgs),
    Ngram(ngram::NgramArgs),
}

/// What the trainers of all models understand.
#[derive(Args)]
struct TrainingArgs {
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    words: WordArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// Where to write the model
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
    /// Text to measure the model on while it learns
    #[arg(long, value_name = "FILE")]
    valid: Option<PathBuf>,
    /// Go on from the checkpoint that an interrupted run left
    #[arg(long)]
    resume: bool,
    /// Write one JSON line an iteration to this file
    #[arg(long, value_name = "FILE.jsonl")]
    log: Option<PathBuf>,
}

/// Text to learn from, and to measure on.
struct TrainingText {
    corpus: Corpus,
    valid: Option<Sentences>,
}

#[derive(Serialize)]
struct TrainResult<'a> {
    model: &'static str,
    path: &'a Path,
    seconds: f64,
    tokens: usize,
    vocab: usize,
    metrics: Map<String, Value>,
}

pub(crate) fn run(args: &TrainArgs, common: &Common, output: &Output) -> Result<()> {
    match &args.model {
        ModelArgs::Brown(args) => brown::run(args, output),
        ModelArgs::Ngram(args) => ngram::run(args, common, output),
    }
}

impl TrainingArgs {
    /// Reads the text, after a look at whether the output can be written at all. From then on Ctrl-C
    /// waits for a checkpoint.
    fn read(&self, output: &Output) -> Result<TrainingText> {
        check_writable(&self.output)?;
        let inputs = self.text.reading.inputs(&self.text.files);
        let corpus = read_corpus(&inputs, &self.words, &self.cache)?;
        let (tokens, words) = (corpus.sentences.n_tokens(), corpus.lexicon.vocab.len());
        let valid = self
            .valid
            .as_ref()
            .map(|file| corpus.lexicon.read(&self.text.reading.inputs(std::slice::from_ref(file))));
        let valid = valid.transpose()?;
        catch_interrupts()?;
        output.note(&format!("{} tokens, {} words", thousands(tokens), thousands(words)));
        Ok(TrainingText { corpus, valid })
    }

    /// Where an interrupted run leaves its checkpoint: beside the model.
    fn checkpoint_path(&self) -> PathBuf {
        let mut name = self.output.clone().into_os_string();
        name.push(".checkpoint");
        name.into()
    }

    /// The checkpoint to go on from, if that was asked for.
    fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        if !self.resume {
            return Ok(None);
        }
        let path = self.checkpoint_path();
        if !path.exists() {
            return Err(hinted(
                format!("there is no checkpoint `{}` to go on from", path.display()),
                "run it without `--resume`",
            ));
        }
        Ok(Some(Checkpoint::open(&path)?))
    }

    /// Refuses `--resume` for a model that leaves no checkpoints.
    fn refuse_resume(&self) -> Result<()> {
        if self.resume {
            return Err(hinted("this model leaves no checkpoints", "run it without `--resume`"));
        }
        Ok(())
    }

    fn watcher(&self, output: &Output) -> Result<Watcher> {
        Watcher::new(output, self.log.as_deref(), Some(self.checkpoint_path()))
    }

    /// Measures and saves a model that was fitted, and tells of it.
    fn finish(
        &self,
        model: &AnyModel,
        text: &TrainingText,
        mut metrics: Map<String, Value>,
        started: Instant,
        output: &Output,
    ) -> Result<()> {
        if let (Some(model), Some(valid)) = (model.as_language_model(), &text.valid) {
            metrics.insert("valid_perplexity".into(), perplexity(model, valid).perplexity().into());
        }
        model.save(&self.output)?;
        // The model is whole, so nobody will go on from its checkpoint.
        let _ = fs::remove_file(self.checkpoint_path());
        let result = TrainResult {
            model: model.kind(),
            path: &self.output,
            seconds: started.elapsed().as_secs_f64(),
            tokens: text.corpus.sentences.n_tokens(),
            vocab: text.corpus.lexicon.vocab.len(),
            metrics,
        };
        output.result(&result, |out| {
            writeln!(out, "wrote `{}` in {:.1} s", self.output.display(), result.seconds)?;
            let mut metrics = result.metrics.iter();
            metrics.try_for_each(|(name, value)| writeln!(out, "{name} {value}"))
        })?;
        Ok(())
    }
}
