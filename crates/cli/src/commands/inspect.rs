use crate::output::{Output, thousands};
use anyhow::Result;
use clap::Args;
use latens::model::file::{Inspection, inspect};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;

/// Show what a model file holds, without loading it
///
/// A model file goes in; out come its kind, parameters, preprocessing, facts about its training, and the
/// names, types and shapes of its arrays. Only the header is read.
#[derive(Args)]
pub(crate) struct InspectArgs {
    /// A model file or a checkpoint
    file: PathBuf,
}

pub(crate) fn run(args: &InspectArgs, output: &Output) -> Result<()> {
    let found = inspect(&args.file)?;
    output.result(&as_json(&found), |out| write_text(&found, out))?;
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
        "vocab": n_words(found),
        "training": header.training,
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
    writeln!(out, "model       {}", header.kind)?;
    writeln!(out, "format      {} of latens {}", header.format_version, header.latens_version)?;
    writeln!(out, "size        {} bytes", thousands(found.n_bytes as usize))?;
    if let Some(n_words) = n_words(found) {
        writeln!(out, "vocabulary  {} words", thousands(n_words))?;
    }
    for (title, value) in [
        ("parameters", header.parameters.clone()),
        ("text", json!(header.preprocessing)),
        ("training", Value::Object(header.training.clone())),
    ] {
        writeln!(out, "{title}")?;
        for (name, value) in value.as_object().into_iter().flatten() {
            writeln!(out, "  {name} = {value}")?;
        }
    }
    writeln!(out, "arrays")?;
    for array in &found.arrays {
        writeln!(out, "  {} {:?} {:?}", array.name, array.dtype, array.shape)?;
    }
    Ok(())
}
