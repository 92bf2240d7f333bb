//! Newsgroups told apart by the topics of their documents (Table 2).

use super::models::{Kind, Models, shares};
use super::replacement::shuffle;
use super::{PPDB, WORDNET, kinds};
use crate::corpora::topics::{Document, newsgroups};
use crate::experiment::Row;
use anyhow::Result;
use latens::lda::Topics;
use latens::math::Rng;
use latens::tasks::classification::LogisticRegression;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The penalty of weights.
const L2: f64 = 1e-3;
/// Accuracies of the paper, in the order of [`kinds`]; its infvoc is not said to have batches.
const PAPER_PPDB: [f64; 6] = [44.51, 44.66, 43.63, 44.72, 28.00, 28.00];
const PAPER_WORDNET: [f64; 6] = [43.53, 43.47, 43.11, 42.90, 19.30, 19.30];

pub(super) fn run(data: &Path, quick: bool, note: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let (train, tests) = documents(data, quick)?;
    let models = Models::fit(data, &train, quick, note)?;
    note("learning the classifiers");
    let classifiers = Classifiers::fit(&models, &train, &tests)?;
    let mut rows = classifiers.measure("original", &tests, None, note)?;
    for (list, paper) in [(PPDB, PAPER_PPDB), (WORDNET, PAPER_WORDNET)] {
        let altered = list.replace(data, &models, &train, &tests)?;
        note(&format!("{}: {}", list.name, altered.about));
        rows.extend(classifiers.measure(list.name, &altered.documents, Some(paper), note)?);
    }
    Ok(rows)
}

/// The documents to learn from and those to test with, in the split by date.
fn documents(data: &Path, quick: bool) -> Result<(Vec<Document>, Vec<Document>)> {
    let (mut tests, mut train): (Vec<Document>, Vec<Document>) =
        newsgroups(data)?.into_iter().partition(|document| document.is_test);
    let n_tests = if quick { 400 } else { 2000 };
    if quick {
        train = train.into_iter().step_by(4).collect();
    }
    // In the file they are sorted by class: the first ones would lack some, and a batch of neighbours would give
    // theirs away.
    shuffle(&mut tests, &mut Rng::new(1));
    tests.truncate(n_tests);
    Ok((train, tests))
}

/// One a kind of features, and the classes of the test documents.
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
        let numbers: BTreeMap<&str, usize> = names.into_iter().zip(0..).collect();
        let classes = |documents: &[Document]| -> Vec<usize> {
            documents.iter().map(|d| numbers.get(d.label.as_str()).copied().unwrap_or(0)).collect()
        };
        let train_classes = classes(train);
        let fit = |features: &[Vec<f32>]| {
            LogisticRegression::fit(&features.concat(), &train_classes, features[0].len(), L2)
        };
        Ok(Classifiers {
            models,
            gaussian: fit(&shares(&models.infer(train, Kind::Gaussian(Topics::Fixed))?)),
            lda: fit(&shares(&models.infer(train, Kind::Lda)?)),
            mean: fit(&models.mean_vectors(train)),
            tests: classes(tests),
        })
    }

    /// The accuracies in percent for test documents, which are also told at once.
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
            rows.push(Row { row, column, paper, ours });
        };
        for (i, (name, kind)) in kinds(100, tests.len()).into_iter().enumerate() {
            let classifier =
                if matches!(kind, Kind::Gaussian(_)) { &self.gaussian } else { &self.lda };
            let features = shares(&self.models.infer(tests, kind)?);
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
