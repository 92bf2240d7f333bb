//! Scores of each tag or type of span, and what is mistaken for what.

use crate::tagging::spans::{Span, spans};
use std::collections::{BTreeMap, HashSet};

/// Counts of one tag, or of the spans of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeScores {
    /// The tag, or the type of the spans.
    pub name: String,
    /// Number of occurrences in the text.
    pub n_true: usize,
    /// Number of predictions.
    pub n_predicted: usize,
    /// Number of correct predictions.
    pub n_correct: usize,
}

impl TypeScores {
    /// Fraction of predictions that are correct; `None` without predictions.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.n_correct, self.n_predicted)
    }

    /// Fraction of occurrences that were predicted; `None` without occurrences.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.n_correct, self.n_true)
    }

    /// 2 · precision · recall / (precision + recall).
    pub fn f1(&self) -> f64 {
        ratio(2 * self.n_correct, self.n_true + self.n_predicted).unwrap_or(0.0)
    }
}

/// Words of one tag or type of span for which another was predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    /// The true tag; for tags of spans its type, or `O`.
    pub truth: String,
    /// The predicted tag; for tags of spans its type, or `O`.
    pub predicted: String,
    /// Number of words.
    pub count: usize,
}

pub(crate) fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Scores of each tag or type of span, in alphabetical order.
pub(crate) fn type_scores(
    truth: &[Vec<&str>],
    found: &[Vec<&str>],
    are_spans: bool,
) -> Vec<TypeScores> {
    let mut types: BTreeMap<&str, TypeScores> = BTreeMap::new();
    for (truth, found) in truth.iter().zip(found) {
        let (truth, found): (HashSet<Span<'_>>, HashSet<Span<'_>>) = match are_spans {
            true => (spans(truth).into_iter().collect(), spans(found).into_iter().collect()),
            false => (single_words(truth), single_words(found)),
        };
        truth.iter().for_each(|span| types.entry(span.kind).or_default().n_true += 1);
        found.iter().for_each(|span| types.entry(span.kind).or_default().n_predicted += 1);
        let correct = truth.intersection(&found);
        correct.for_each(|span| types.entry(span.kind).or_default().n_correct += 1);
    }
    let named = |(name, scores): (&str, TypeScores)| TypeScores { name: name.to_owned(), ..scores };
    types.into_iter().map(named).collect()
}

/// Each word as a span of its own.
fn single_words<'a>(tags: &[&'a str]) -> HashSet<Span<'a>> {
    tags.iter().enumerate().map(|(i, &kind)| Span { kind, words: i..i + 1 }).collect()
}

/// All confusions, the most frequent ones first. Of tags of spans only the type counts.
pub(crate) fn confusions(
    truth: &[Vec<&str>],
    found: &[Vec<&str>],
    are_spans: bool,
) -> Vec<Confusion> {
    let name = |tag| if are_spans { type_of(tag) } else { tag };
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (&truth, &predicted) in truth.iter().flatten().zip(found.iter().flatten()) {
        let pair = (name(truth), name(predicted));
        if pair.0 != pair.1 {
            *counts.entry(pair).or_default() += 1;
        }
    }
    let confusion = |((truth, predicted), count): ((&str, &str), usize)| Confusion {
        truth: truth.to_owned(),
        predicted: predicted.to_owned(),
        count,
    };
    let mut confusions: Vec<Confusion> = counts.into_iter().map(confusion).collect();
    confusions.sort_by_key(|confusion| std::cmp::Reverse(confusion.count));
    confusions
}

/// The type of a tag of spans, or the tag itself if it has none.
fn type_of(tag: &str) -> &str {
    tag.split_once('-').map_or(tag, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_counted_by_type_and_words_by_confusion() {
        let truth = [vec!["B-PER", "I-PER", "O", "B-LOC"], vec!["B-PER", "O"]];
        let found = [vec!["B-PER", "I-PER", "B-LOC", "O"], vec!["B-LOC", "B-PER"]];
        let types = type_scores(&truth, &found, true);
        // LOC: one true, two predicted, none correct; PER: two true, two predicted, one correct.
        let counts = |name: &str| {
            let found = types.iter().find(|found| found.name == name).unwrap();
            (found.n_true, found.n_predicted, found.n_correct)
        };
        assert_eq!((counts("LOC"), counts("PER")), ((1, 2, 0), (2, 2, 1)));
        assert_eq!(types[1].precision(), Some(0.5));
        assert_eq!(types[1].recall(), Some(0.5));
        assert_eq!(types[1].f1(), 0.5);
        let text = |c: &Confusion| format!("{} {} {}", c.truth, c.predicted, c.count);
        let found: Vec<String> = confusions(&truth, &found, true).iter().map(text).collect();
        assert_eq!(found, ["LOC O 1", "O LOC 1", "O PER 1", "PER LOC 1"]);
    }

    #[test]
    fn tags_of_words_are_counted_word_by_word() {
        let (truth, found) = ([vec!["N", "V", "N"]], [vec!["N", "N", "N"]]);
        let types = type_scores(&truth, &found, false);
        assert_eq!((types[0].n_true, types[0].n_predicted, types[0].n_correct), (2, 3, 2));
        assert_eq!((types[1].recall(), types[1].precision()), (Some(0.0), None));
        let expected = Confusion { truth: "V".into(), predicted: "N".into(), count: 1 };
        assert_eq!(confusions(&truth, &found, false), [expected]);
    }
}
