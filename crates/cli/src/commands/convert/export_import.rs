//! Export of models to other formats, and import from them.

use crate::args::PreprocessingArgs;
use crate::data::foreign_format::ForeignFormat;
use crate::data::foreign_vectors;
use crate::errors::hinted;
use crate::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use latens::brown::Brown;
use latens::corpus::{open_input, write_compressed};
use latens::model::Model;
use latens::model::WordClusters;
use latens::ngram::Ngram;
use latens::store::write_atomically;
use serde_json::json;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;

/// Export a model to another format
///
/// Reads a model and writes a file for other programs. `arpa` is for n-gram models, without their cache; `paths` is for
/// Brown clusters; all other formats are for models with word vectors. With `npy`, `-o` is the path of the matrix and
/// `--words` that of its word list.
#[derive(Args)]
pub(crate) struct ExportArgs {
    /// Model to export
    model: PathBuf,
    /// File format
    #[arg(long, value_enum)]
    to: ForeignFormat,
    /// Path of the word list of the format `npy`, one word per line
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
    /// Path of the file to write; `.gz` and `.zst` are compressed
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

/// Import a model from another format
///
/// Reads a file of another program and writes a model. Other formats do not record the preprocessing of text: set it with
/// `--tokenize`, `--lowercase` and `--digits`. Vectors of lowercase words, such as those of GloVe, need `--lowercase`.
#[derive(Args)]
pub(crate) struct ImportArgs {
    /// File to import
    file: PathBuf,
    /// File format
    #[arg(long, value_enum)]
    from: ForeignFormat,
    /// Word list of the format `npy`, one word per line
    #[arg(long, value_name = "FILE")]
    words: Option<PathBuf>,
    /// Subtract the mean of the word vectors and scale each to length one; recommended for `latens train glda`
    #[arg(long)]
    center_and_normalize: bool,
    #[command(flatten)]
    preprocessing: PreprocessingArgs,
    /// Path of the model to write
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

pub(crate) fn export(args: &ExportArgs, output: &Output) -> Result<()> {
    foreign_vectors::check_words(args.to, args.words.as_deref())?;
    let model = &*latens::open(&args.model)?;
    let mut failed = None;
    let written = write_atomically(&args.output, |out| {
        write_compressed(&args.output, out, |out| {
            write_foreign(model, args, out).map_err(|error| {
                let message = error.to_string();
                failed = Some(error);
                io::Error::other(message)
            })
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

fn write_foreign(model: &dyn Model, args: &ExportArgs, out: &mut dyn Write) -> Result<()> {
    let unsupported =
        || anyhow::anyhow!("it is {}, which this format cannot represent", model.description());
    match args.to {
        ForeignFormat::Arpa => {
            model.downcast_ref::<Ngram>().ok_or_else(unsupported)?.write_arpa(out)?;
        }
        ForeignFormat::Paths => {
            let brown = model.downcast_ref::<Brown>().ok_or_else(unsupported)?;
            brown.clusters().write_paths(&model.lexicon().vocab, out)?;
        }
        format => {
            let Some(found) = model.word_vectors() else {
                anyhow::bail!("it is {}, which has no word vectors", model.description());
            };
            foreign_vectors::write(model.lexicon(), &found, format, args.words.as_deref(), out)?;
        }
    }
    Ok(())
}

pub(crate) fn import(args: &ImportArgs, output: &Output) -> Result<()> {
    foreign_vectors::check_words(args.from, args.words.as_deref())?;
    let without_vectors = match args.from {
        ForeignFormat::Arpa => Some("arpa"),
        ForeignFormat::Paths => Some("paths"),
        _ => None,
    };
    if let (true, Some(format)) = (args.center_and_normalize, without_vectors) {
        let problem = format!(
            "`--center-and-normalize` needs word vectors, but the format `{format}` has none"
        );
        return Err(hinted(problem, "omit `--center-and-normalize`"));
    }
    let reading = || format!("cannot read `{}`", args.file.display());
    let mut file = BufReader::new(open_input(&args.file).with_context(reading)?);
    let preprocessing = args.preprocessing.preprocessing();
    let model: Box<dyn Model> = match args.from {
        ForeignFormat::Arpa => {
            Box::new(Ngram::read_arpa(&mut file, &preprocessing).with_context(reading)?)
        }
        ForeignFormat::Paths => {
            let (lexicon, clusters) =
                WordClusters::read_paths(&mut file, &preprocessing).with_context(reading)?;
            Box::new(Brown::from_clusters(lexicon, clusters).with_context(reading)?)
        }
        format => {
            let words = args.words.as_deref();
            let read = foreign_vectors::read(&mut file, format, words, &preprocessing);
            let model = read.with_context(reading)?;
            Box::new(if args.center_and_normalize { model.center_and_normalize() } else { model })
        }
    };
    model.save(&args.output)?;
    let (path, vocab) = (args.output.display().to_string(), model.lexicon().vocab.len());
    let result = json!({ "model": model.kind(), "path": path, "vocab": vocab });
    output.result(&result, |out| {
        writeln!(out, "wrote `{path}`: {}, {vocab} words", model.description())
    })
}
