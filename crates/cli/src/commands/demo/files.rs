//! The files of the demo.

use anyhow::Result;
use latens::corpus::embedded::Split;
use latens::corpus::{Corpus, Inputs, Preprocessing, Tokenize, VocabLimits};
use std::path::{Path, PathBuf};

/// The file of a model in the folder of the demo.
pub(super) fn model_file(folder: &Path, kind: &str) -> PathBuf {
    folder.join(format!("demo.{kind}"))
}

/// One part of the corpus among the files.
pub(super) fn inputs(folder: &Path, split: Split) -> Inputs {
    Inputs::new([folder.join(format!("{}.txt", split.name()))])
}

/// The training part in lowercase, with words that occur at least `min_count` times.
pub(super) fn training_text(folder: &Path, min_count: u64) -> Result<Corpus> {
    let preprocessing = Preprocessing::default().tokenize(Tokenize::Words).lowercase(true);
    let limits = VocabLimits { min_count, ..VocabLimits::default() };
    Ok(Corpus::read(&inputs(folder, Split::Train), &preprocessing, &limits)?)
}
