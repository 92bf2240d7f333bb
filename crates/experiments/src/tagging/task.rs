//! Tagging tasks.

use latens::corpus::{Format, Inputs};
use std::path::Path;

/// A tagged corpus in three files.
pub(crate) struct Task {
    /// Name in tables.
    pub(crate) name: &'static str,
    /// Folder in the folder of `--data`.
    pub(crate) folder: &'static str,
    /// Training, development and test file.
    pub(crate) files: [&'static str; 3],
    pub(crate) format: Format,
    /// Column of the tags, counted from 0.
    pub(crate) column: usize,
    /// Column of parts of speech to use as features, counted from 0.
    pub(crate) pos_column: Option<usize>,
}

impl Task {
    /// One of the three files.
    pub(crate) fn inputs(&self, data: &Path, part: usize) -> Inputs {
        let path = data.join(self.folder).join(self.files[part]);
        Inputs::new([path]).format(self.format.clone())
    }
}
