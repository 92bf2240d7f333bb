//! Classification of 20 Newsgroups by topic proportions (Table 2).

use super::models::{Inference, Models, inferences, shares};
use super::synonyms::{PPDB, WORDNET};
use crate::corpora::topics::{Document, newsgroups};
use crate::experiment::{Effort, Row};
use anyhow::Result;
use latens::lda::Topics;
use latens::math::Rng;
use latens::tasks::classification::LogisticRegression;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// L2 regularization of the classifiers.
const L2: f64 = 1e-3;
/// Accuracies of the paper, in the order of [`inferences`]. It does not mention batches for infvoc.
const PAPER_PPDB: [f64; 6] = [44.51, 44.66, 43.63, 44.72, 28.00, 28.00];
const PAPER_WORDNET: [f64; 6] = [43.53, 43.47, 43.11, 42.90, 19.30, 19.30];

pub(super) fn run(data: &Path, effort: Effort, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let (train, tests) = documents(data, effort)?;
    let models = Models::fit(data, &train, effort, note)?;
    note("fitting the classifiers");
    let classifiers = Classifiers::fit(&models, &train, &tests)?;
    let mut rows = classifiers.measure("original", &tests, None, note)?;
    for (list, paper) in [(PPDB, PAPER_PPDB), (WORDNET, PAPER_WORDNET)] {
        let altered = list.replace(data, &models, &train, &tests)?;
        note(&format!("{}: {}", list.name, altered.about));
        rows.extend(classifiers.measure(list.name, &altered.documents, Some(paper), note)?);
    }
    Ok(rows)
}

/// Training and test documents of the by-date split.
fn documents(data: &Path, effort: Effort) -> Result<(Vec<Document>, Vec<Document>)> {
    let (mut tests, mut train): (Vec<Document>, Vec<Document>) =
        newsgroups(data)?.into_iter().partition(|document| document.is_test);
    let n_tests = if effort.is_quick() { 400 } else { 2000 };
    if effort.is_quick() {
        train = train.into_iter().step_by(4).collect();
    }
    // The file is sorted by class: its first documents would lack classes, and a batch of neighbors would reveal theirs.
    Rng::new(1).shuffle(&mut tests);
    tests.truncate(n_tests);
    Ok((train, tests))
}

/// One classifier per kind of features, and the classes of the test documents.
struct Classifiers<'a> {
    models: &'a Models,
    gaussian: LogisticRegression,
    lda: LogisticRegression,
    mean: LogisticRegression,
    tests: Vec<usize>,
}

impl<'a> Classifiers<'a> {
    fn fit(models: &'a Models, train: &[Document], tests: &[Document]) -> Result<Classifiers<'a>> {
        let names: BTreeSet<&str> = train.iter().map(|d| d.label.as_str()).collect();
        let class_of: BTreeMap<&str, usize> = names.into_iter().zip(0..).collect();
        let classes = |documents: &[Document]| -> Vec<usize> {
            documents.iter().map(|d| class_of.get(d.label.as_str()).copied().unwrap_or(0)).collect()
        };
        let train_classes = classes(train);
        let fit = |features: &[Vec<f32>]| {
            LogisticRegression::fit(&features.concat(), &train_classes, features[0].len(), L2)
        };
        Ok(Classifiers {
            models,
            gaussian: fit(&shares(&models.infer(train, Inference::Gaussian(Topics::Fixed))?)),
            lda: fit(&shares(&models.infer(train, Inference::Lda)?)),
            mean: fit(&models.mean_vectors(train)),
            tests: classes(tests),
        })
    }

    /// Reports the accuracies on test documents, in percent, and returns them as rows.
    fn measure(
        &self,
        column: &str,
        tests: &[Document],
        paper: Option<[f64; 6]>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut row = |row: String, paper: Option<f64>, ours: f64| {
            let column = format!("20news, {column}");
            note(&format!("{column}, {row}: {ours:.1} %"));
            rows.push(Row::new(row, column, paper, ours));
        };
        for (i, (name, inference)) in inferences(100, tests.len()).into_iter().enumerate() {
            let classifier = if matches!(inference, Inference::Gaussian(_)) {
                &self.gaussian
            } else {
                &self.lda
            };
            let features = shares(&self.models.infer(tests, inference)?);
            let paper = paper.and_then(|paper| paper.get(i).copied());
            row(name, paper, self.percent(classifier, &features));
        }
        let mean = self.percent(&self.mean, &self.models.mean_vectors(tests));
        row("mean word vector".into(), None, mean);
        Ok(rows)
    }

    fn percent(&self, classifier: &LogisticRegression, features: &[Vec<f32>]) -> f64 {
        100.0 * classifier.accuracy(&features.concat(), &self.tests)
    }
}
