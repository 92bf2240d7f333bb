//! Documents with words that training never saw (Das et al. 2015, Tables 2 and 3).
//!
//! Words of test documents are replaced by synonyms that are nowhere in the training text but have a vector. Without
//! tags of parts of speech far more words have such a synonym than in the paper, so as many types are replaced, at
//! random, as give the paper's share of tokens.

mod classification;
mod deviations;
mod models;
mod replacement;

use crate::corpora::topics::{Document, synonyms};
use crate::experiment::{Experiment, Row};
use anyhow::Result;
use latens::lda::Topics;
use models::{Kind, Models};
use replacement::{Altered, Replacement};
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "glda-oov",
    about: "documents with new words: accuracy (%) on 20 newsgroups, and how far topics move on NIPS",
    run,
};

/// Where synonyms come from, and what share of tokens the paper replaced.
struct Synonyms {
    name: &'static str,
    file: &'static str,
    share: f64,
}

const PPDB: Synonyms = Synonyms { name: "PPDB", file: "ppdb-xl.paraphrases.tsv", share: 0.116 };
const WORDNET: Synonyms =
    Synonyms { name: "WordNet", file: "wordnet31.synonyms.tsv", share: 0.205 };

/// How the mixtures of test documents are found, with batches of 1, of `middle` and of all documents. `infvoc` is the
/// infinite vocabulary of Zhai and Boyd-Graber (2013), of which ours has the idea alone (`Lda::infer_online`).
fn kinds(middle: usize, n_tests: usize) -> [(String, Kind); 7] {
    [
        ("G-LDA (fix)".into(), Kind::Gaussian(Topics::Fixed)),
        ("G-LDA (1)".into(), Kind::Gaussian(Topics::Online(1))),
        (format!("G-LDA ({middle})"), Kind::Gaussian(Topics::Online(middle))),
        ("G-LDA (all)".into(), Kind::Gaussian(Topics::Online(n_tests))),
        (format!("infvoc (ours: simpler, {middle})"), Kind::InfiniteVocabulary(middle)),
        ("infvoc (ours: simpler, all)".into(), Kind::InfiniteVocabulary(n_tests)),
        ("LDA, unknown words dropped".into(), Kind::Lda),
    ]
}

fn run(data: &Path, quick: bool, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let mut rows = classification::run(data, quick, note)?;
    rows.extend(deviations::run(data, quick, note)?);
    Ok(rows)
}

impl Synonyms {
    /// The test documents with new words.
    fn replace(
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
