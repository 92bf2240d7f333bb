//! Counts of pairs of words at short distances.

use crate::choice::choice;
use crate::errors::hinted;
use anyhow::Result;
use latens::counts::{Boundary, Budget, CountError, LagCounts};
use std::path::PathBuf;

choice!(#[derive(Default)] pub(crate) BoundaryArg for Boundary {
    #[default] Stream "End of a file: its sentences form one stream",
    Sentence "End of a sentence",
});

/// Adds the counts of several files.
pub(crate) fn merge_files(files: &[PathBuf], budget: &Budget) -> Result<LagCounts> {
    let parts: Result<Vec<LagCounts>, CountError> = files.iter().map(LagCounts::open).collect();
    LagCounts::merge(&parts?, budget).map_err(|error| {
        hinted(
            error.to_string(),
            "run `latens count` for all parts with the same `--vocab` and options",
        )
    })
}
