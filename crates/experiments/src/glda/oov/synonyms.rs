//! Lists of synonyms.

use super::models::Models;
use super::replacement::{Altered, Replacement};
use crate::corpora::topics::{Document, synonyms};
use anyhow::Result;
use std::path::Path;

/// A list of synonyms, and the fraction of tokens that the paper replaced with it.
pub(super) struct Synonyms {
    pub(super) name: &'static str,
    file: &'static str,
    share: f64,
}

pub(super) const PPDB: Synonyms =
    Synonyms { name: "PPDB", file: "ppdb-xl.paraphrases.tsv", share: 0.116 };
pub(super) const WORDNET: Synonyms =
    Synonyms { name: "WordNet", file: "wordnet31.synonyms.tsv", share: 0.205 };

impl Synonyms {
    /// Replaces words of the test documents.
    pub(super) fn replace(
        &self,
        data: &Path,
        models: &Models,
        train: &[Document],
        tests: &[Document],
    ) -> Result<Altered> {
        let lists = synonyms(data, self.file)?;
        Ok(Replacement::new(&lists, models, train, tests, self.share).apply(tests))
    }
}
