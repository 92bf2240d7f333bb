//! Models in and out of foreign formats.

use crate::args::PreprocessingArgs;
use crate::output::Output;
use crate::paths::check_output;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use latens::AnyModel;
use latens::brown::Brown;
use latens::corpus::open_input;
use latens::corpus::storage::write_atomically;
use latens::model::WordClusters;
use latens::ngram::Ngram;
use serde_json::json;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;

/// Write a model in a foreign format
///
/// A model goes in; out comes a file that other programs read. The format `arpa` is for n-gram models,
/// without their cache; `paths` is for Brown clusters.
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
    preprocessing: PreprocessingArgs,
    /// Where to write the model
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ForeignFormat {
    /// n-gram language models of all toolkits
    Arpa,
    /// Brown clusters as the classic program writes them: path, word, count
    Paths,
}

pub(crate) fn export(args: &ExportArgs, output: &Output) -> Result<()> {
    check_output(&args.output, [&args.model])?;
    let model = latens::open(&args.model)?;
    let mut failed = None;
    let written = write_atomically(&args.output, |out| {
        write_foreign(&model, args.to, out).map_err(|error| {
            let message = error.to_string();
            failed = Some(error);
            io::Error::other(message)
        })
    });
    if let Some(error) = failed {
        return Err(error).with_context(|| format!("cannot export `{}`", args.model.display()));
    }
    written?;
    let path = args.output.display().to_string();
    let result = json!({ "model": model.kind(), "path": path });
    output.result(&result, |out| writeln!(out, "wrote `{path}`"))
}

fn write_foreign(model: &AnyModel, format: ForeignFormat, out: &mut dyn Write) -> Result<()> {
    match (format, model) {
        (ForeignFormat::Arpa, AnyModel::Ngram(model)) => model.write_arpa(out)?,
        (ForeignFormat::Paths, AnyModel::Brown(model)) => {
            model.clusters().write_paths(&model.lexicon().vocab, out)?;
        }
        (ForeignFormat::Arpa | ForeignFormat::Paths, model) => {
            anyhow::bail!("it is {}, which this format has no place for", model.description());
        }
    }
    Ok(())
}

pub(crate) fn import(args: &ImportArgs, output: &Output) -> Result<()> {
    check_output(&args.output, [&args.file])?;
    let reading = || format!("cannot read `{}`", args.file.display());
    let mut file = BufReader::new(open_input(&args.file).with_context(reading)?);
    let preprocessing = args.preprocessing.preprocessing();
    let model = match args.from {
        ForeignFormat::Arpa => {
            AnyModel::Ngram(Ngram::read_arpa(&mut file, &preprocessing).with_context(reading)?)
        }
        ForeignFormat::Paths => {
            let (lexicon, clusters) =
                WordClusters::read_paths(&mut file, &preprocessing).with_context(reading)?;
            AnyModel::Brown(Brown::from_clusters(lexicon, clusters).with_context(reading)?)
        }
    };
    model.save(&args.output)?;
    let (path, vocab) = (args.output.display().to_string(), model.lexicon().vocab.len());
    let result = json!({ "model": model.kind(), "path": path, "vocab": vocab });
    output.result(&result, |out| {
        writeln!(out, "wrote `{path}`: {}, {vocab} words", model.description())
    })
}
