//! The figures of the tables.

use super::paper::PAPER;
use anyhow::{Context, Result};
use latens::corpus::{TaggedSentence, TaggedSentences};
use latens::model::Tagger;
use latens::tasks::tagging::{FeatureTagger, Span, evaluate, spans, tag_names};
use std::collections::HashSet;

/// A tagging task with training text of one domain and test text of another.
pub(crate) struct Transfer {
    /// Training text.
    pub(crate) source: TaggedSentences,
    /// Test text.
    pub(crate) target: TaggedSentences,
    /// Column of the tags.
    pub(crate) column: usize,
    /// Column of parts of speech to use as features.
    pub(crate) pos_column: Option<usize>,
}

/// One figure of a row.
pub(crate) struct Figure {
    pub(crate) column: String,
    pub(crate) paper: Option<f64>,
    pub(crate) ours: f64,
}

/// Computes the figures of a row, given by its index.
pub(crate) type Measure = fn(&Transfer, &FeatureTagger, usize) -> Result<Vec<Figure>>;

/// Table 1: the fraction of wrong tags of all words, of unseen words, and of words seen at most twice.
pub(crate) fn errors(
    transfer: &Transfer,
    tagger: &FeatureTagger,
    row: usize,
) -> Result<Vec<Figure>> {
    let scores = evaluate(tagger, &transfer.target, transfer.column)?;
    let shares = [Some(scores.accuracy), scores.oov_accuracy, scores.rare_accuracy];
    let columns = ["All", "OOV", "Rare"].into_iter().zip(shares).enumerate();
    let error = |(i, (name, share)): (usize, (&str, Option<f64>))| {
        let ours = share.map_or(f64::NAN, |share| 100.0 * (1.0 - share));
        Figure { column: format!("{name} error"), paper: Some(PAPER[row].1[i]), ours }
    };
    Ok(columns.map(error).collect())
}

/// Table 2: recall, precision and F1 of all phrases, of phrases whose first word is unseen, and of phrases whose first
/// word was seen at most twice.
pub(crate) fn phrases(
    transfer: &Transfer,
    tagger: &FeatureTagger,
    row: usize,
) -> Result<Vec<Figure>> {
    let found = tag_names(tagger, &transfer.target)?;
    let mut columns = Vec::new();
    for (i, (name, most)) in [("All", u64::MAX), ("OOV", 0), ("Rare", 2)].into_iter().enumerate() {
        let counts = |sentence: TaggedSentence<'_>, span: &Span<'_>| {
            tagger.n_seen(sentence.word(span.words.start)) <= most
        };
        let (mut n_true, mut n_predicted, mut n_correct) = (0, 0, 0);
        for (sentence, found) in transfer.target.iter().zip(&found) {
            let truth = sentence.column(transfer.column).context("the test text has no chunks")?;
            let of = |tags| spans(tags).into_iter().filter(|span| counts(sentence, span));
            let truth: HashSet<Span<'_>> = of(&truth).collect();
            let found: HashSet<Span<'_>> = of(found).collect();
            n_true += truth.len();
            n_predicted += found.len();
            n_correct += truth.intersection(&found).count();
        }
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let figures = [
            ("R", percent(n_correct, n_true)),
            ("P", percent(n_correct, n_predicted)),
            ("F1", percent(2 * n_correct, n_true + n_predicted)),
        ];
        for (j, (figure, ours)) in figures.into_iter().enumerate() {
            let paper = Some(PAPER[row].2[3 * i + j]);
            columns.push(Figure { column: format!("{name} {figure}"), paper, ours });
        }
    }
    Ok(columns)
}
