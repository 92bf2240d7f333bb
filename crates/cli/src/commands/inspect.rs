use crate::output::{Output, shown, thousands};
use anyhow::Result;
use clap::Args;
use latens::model::file::{Inspection, inspect};
use latens::store::Container;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Show the contents of a model file without loading it
///
/// Prints the kind, parameters, preprocessing and training facts of a model file or checkpoint, and the names, types and
/// shapes of its arrays. Reads only the header.
#[derive(Args)]
pub(crate) struct InspectArgs {
    /// Model file or checkpoint
    file: PathBuf,
}

pub(crate) fn run(args: &InspectArgs, output: &Output) -> Result<()> {
    refuse_container(&args.file)?;
    let found = inspect(&args.file)?;
    output.result(&as_json(&found), |out| write_text(&found, out))
}

/// Rejects files of counts and of encoded text, with an error that names their kind.
fn refuse_container(path: &Path) -> Result<()> {
    let mut start = [0; 8];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    if read.is_ok() && start == *b"latens\x1A\n" {
        Container::open(path, "model")?;
    }
    Ok(())
}

fn as_json(found: &Inspection) -> Value {
    let header = &found.header;
    json!({
        "model": header.kind,
        "version": header.format_version,
        "latens_version": header.latens_version,
        "parameters": header.parameters,
        "preprocessing": header.preprocessing,
        "vocab_limits": header.vocab_limits,
        "cleaning": header.cleaning,
        "vocab": n_words(found),
        "training": header.training,
        "checkpoint": header.checkpoint,
        "arrays": found.arrays,
        "bytes": found.n_bytes,
    })
}

fn n_words(found: &Inspection) -> Option<usize> {
    let counts = found.arrays.iter().find(|array| array.name == "vocab.counts")?;
    counts.shape.first().copied()
}

fn write_text(found: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    let header = &found.header;
    writeln!(out, "model       {}", shown(&header.kind))?;
    let version = shown(&header.latens_version);
    writeln!(out, "format      {} of latens {version}", header.format_version)?;
    writeln!(out, "size        {} bytes", thousands(found.n_bytes as usize))?;
    if let Some(n_words) = n_words(found) {
        writeln!(out, "vocabulary  {} words", thousands(n_words))?;
    }
    if let Some(checkpoint) = &header.checkpoint {
        writeln!(out, "checkpoint  of a model of kind {}", shown(&checkpoint.of))?;
    }
    if let Some(cleaning) = &header.cleaning {
        let stop_words = &cleaning.stop_words;
        write!(out, "cleaning    {} stop words ({})", stop_words.len(), shown(&stop_words.name))?;
        write!(out, ", document frequencies {} to {}", cleaning.min_df, cleaning.max_df)?;
        writeln!(out, ", {} phrases", cleaning.phrases().count())?;
    }
    let state = header.checkpoint.as_ref().map(|checkpoint| checkpoint.state.clone());
    for (title, value) in [
        ("state", state.unwrap_or_default()),
        ("parameters", header.parameters.clone()),
        ("text", json!(header.preprocessing)),
        ("training", Value::Object(header.training.clone())),
    ] {
        let Some(entries) = value.as_object() else { continue };
        writeln!(out, "{title}")?;
        for (name, value) in entries {
            writeln!(out, "  {} = {value}", shown(name))?;
        }
    }
    writeln!(out, "arrays")?;
    for array in &found.arrays {
        writeln!(out, "  {} {:?} {:?}", shown(&array.name), array.dtype, array.shape)?;
    }
    Ok(())
}
