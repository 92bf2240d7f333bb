//! Models in and out of foreign formats.

use crate::args::WordArgs;
use crate::output::Output;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use latens::AnyModel;
use latens::corpus::storage::write_atomically;
use latens::ngram::Ngram;
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Write a model in a foreign format
///
/// A model goes in; out comes a file that other programs read. The format `arpa` is for n-gram models; a
/// cache has no place in it.
#[derive(Args)]
pub(crate) struct ExportArgs {
    /// A model
    model: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    to: ForeignFormat,
    /// Where to write it
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

/// Read a model in a foreign format
///
/// A file of another program goes in; out comes a model. Foreign formats do not say how text was cut
/// into words: `--tokenize`, `--lowercase` and `--digits` say it.
#[derive(Args)]
pub(crate) struct ImportArgs {
    /// A model in a foreign format
    file: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    from: ForeignFormat,
    #[command(flatten)]
    words: WordArgs,
    /// Where to write the model
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ForeignFormat {
    /// n-gram language models of all toolkits
    Arpa,
}

pub(crate) fn export(args: &ExportArgs, output: &Output) -> Result<()> {
    let model = latens::open(&args.model)?;
    match (args.to, &model) {
        (ForeignFormat::Arpa, AnyModel::Ngram(model)) => {
            let mut failed = None;
            let written = write_atomically(&args.output, |out| {
                model.write_arpa(out).map_err(|error| {
                    let message = error.to_string();
                    failed = Some(error);
                    std::io::Error::other(message)
                })
            });
            if let Some(error) = failed {
                return Err(error)
                    .with_context(|| format!("cannot export `{}`", args.model.display()));
            }
            written?;
        }
        (ForeignFormat::Arpa, model) => {
            anyhow::bail!("`{}` is {}, not for `arpa`", args.model.display(), model.description())
        }
    }
    let result = json!({ "model": model.kind(), "path": args.output });
    output.result(&result, |out| writeln!(out, "wrote `{}`", args.output.display()))?;
    Ok(())
}

pub(crate) fn import(args: &ImportArgs, output: &Output) -> Result<()> {
    let reading = || format!("cannot read `{}`", args.file.display());
    let file = File::open(&args.file).with_context(reading)?;
    let model = match args.from {
        ForeignFormat::Arpa => {
            let preprocessing = args.words.preprocessing();
            Ngram::read_arpa(&mut BufReader::new(file), &preprocessing).with_context(reading)?
        }
    };
    model.save(&args.output)?;
    let (order, vocab) = (model.params().order, model.lexicon().vocab.len());
    let result =
        json!({ "model": Ngram::KIND, "path": args.output, "order": order, "vocab": vocab });
    output.result(&result, |out| {
        writeln!(out, "wrote `{}`: order {order}, {vocab} words", args.output.display())
    })?;
    Ok(())
}
