//! Scores of a tagger on a text: accuracy, and F1 of spans.

use super::per_type::{Confusion, TypeScores, confusions, ratio, type_scores};
use super::tagged::{EvaluateError, are_correct, tag_names, true_tags};
use crate::tagging::spans::{Span, are_chunk_tags, spans};
use latens_corpus::{TaggedSentence, TaggedSentences};
use latens_model::Tagger;
use std::collections::HashSet;

/// Maximum number of occurrences of a rare word in the training text. Unseen words are rare, too.
const RARE: u64 = 2;

/// Scores of a tagger on a text, as fractions. `None` means that there is nothing to score.
#[derive(Clone, Debug, PartialEq)]
pub struct TagScores {
    /// Number of tokens.
    pub tokens: usize,
    /// Fraction of tokens with the correct tag.
    pub accuracy: f64,
    /// Number of out-of-vocabulary tokens.
    pub oov_tokens: usize,
    /// Number of rare tokens, out-of-vocabulary ones included.
    pub rare_tokens: usize,
    /// Accuracy on out-of-vocabulary words, which do not occur in the training text.
    pub oov_accuracy: Option<f64>,
    /// Accuracy on rare words, which occur at most twice in the training text.
    pub rare_accuracy: Option<f64>,
    /// Tags of the text that are unknown to the tagger.
    pub unknown_tags: Vec<String>,
    /// Scores of spans, if the tags encode spans.
    pub spans: Option<SpanScores>,
    /// Counts of each type of span or, if the tags do not encode spans, of each tag, in alphabetical order.
    pub types: Vec<TypeScores>,
    /// What was mistaken for what, the most frequent confusions first.
    pub confusions: Vec<Confusion>,
}

/// Scores of spans. A span is correct if its type, its first and its last word are correct.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanScores {
    /// Fraction of predicted spans that are correct.
    pub precision: f64,
    /// Fraction of true spans that were predicted.
    pub recall: f64,
    /// 2 · precision · recall / (precision + recall).
    pub f1: f64,
    /// F1 of the true and predicted spans that contain an out-of-vocabulary word.
    pub oov_f1: Option<f64>,
    /// F1 of the true and predicted spans that contain a rare word.
    pub rare_f1: Option<f64>,
}

/// Tags a text and scores the tags. `column` has the true tags, counted from 0.
pub fn evaluate(
    tagger: &dyn Tagger,
    text: &TaggedSentences,
    column: usize,
) -> Result<TagScores, EvaluateError> {
    text.check_column(column)?;
    let found = tag_names(tagger, text)?;
    let true_tags = true_tags(text, column);
    let are_spans = are_chunk_tags(true_tags.iter().flatten().copied());
    let (mut all, mut oov, mut rare) = (Tally::default(), Tally::default(), Tally::default());
    let words = text.iter().flat_map(|sentence| sentence.words());
    for (word, is_correct) in words.zip(are_correct(&true_tags, &found)) {
        let n_seen = tagger.n_seen(word);
        all.add(is_correct);
        if n_seen == 0 {
            oov.add(is_correct);
        }
        if n_seen <= RARE {
            rare.add(is_correct);
        }
    }
    let unknown_tags = unknown_tags(tagger, &true_tags, are_spans);
    Ok(TagScores {
        tokens: text.n_tokens(),
        oov_tokens: oov.n,
        rare_tokens: rare.n,
        types: type_scores(&true_tags, &found, are_spans),
        confusions: confusions(&true_tags, &found, are_spans),
        accuracy: all.ratio().unwrap_or(0.0),
        oov_accuracy: oov.ratio(),
        rare_accuracy: rare.ratio(),
        unknown_tags,
        spans: are_spans.then(|| span_scores(tagger, text, &true_tags, &found)),
    })
}

/// The tags of a text that are unknown to the tagger, in order. For tags of spans only the type matters.
fn unknown_tags(tagger: &dyn Tagger, truth: &[Vec<&str>], are_spans: bool) -> Vec<String> {
    let known: HashSet<&str> = tagger.tags().iter().map(String::as_str).collect();
    let kinds: HashSet<&str> = known.iter().map(|tag| kind(tag)).collect();
    let is_known = |tag: &str| known.contains(tag) || (are_spans && kinds.contains(kind(tag)));
    let mut unknown: Vec<String> = Vec::new();
    for &tag in truth.iter().flatten().filter(|tag| !is_known(tag)) {
        if !unknown.iter().any(|other| other == tag) {
            unknown.push(tag.to_owned());
        }
    }
    unknown
}

/// The part of a tag after the dash.
fn kind(tag: &str) -> &str {
    tag.split_once('-').map_or("", |(_, kind)| kind)
}

fn span_scores(
    tagger: &dyn Tagger,
    text: &TaggedSentences,
    truth: &[Vec<&str>],
    found: &[Vec<&str>],
) -> SpanScores {
    let with_words_seen = |most: u64| {
        move |sentence: TaggedSentence<'_>, span: &Span<'_>| {
            span.words.clone().any(|i| tagger.n_seen(sentence.word(i)) <= most)
        }
    };
    let all = SpanTally::of(text, truth, found, |_, _| true);
    let oov = SpanTally::of(text, truth, found, with_words_seen(0));
    let rare = SpanTally::of(text, truth, found, with_words_seen(RARE));
    SpanScores {
        precision: ratio(all.n_correct, all.n_predicted).unwrap_or(0.0),
        recall: ratio(all.n_correct, all.n_true).unwrap_or(0.0),
        f1: all.f1().unwrap_or(0.0),
        oov_f1: oov.f1(),
        rare_f1: rare.f1(),
    }
}

#[derive(Default)]
struct Tally {
    n: usize,
    n_correct: usize,
}

impl Tally {
    fn add(&mut self, is_correct: bool) {
        self.n += 1;
        self.n_correct += usize::from(is_correct);
    }

    fn ratio(&self) -> Option<f64> {
        ratio(self.n_correct, self.n)
    }
}

#[derive(Default)]
struct SpanTally {
    n_true: usize,
    n_predicted: usize,
    n_correct: usize,
}

impl SpanTally {
    /// Counts the spans that satisfy `counts`.
    fn of(
        text: &TaggedSentences,
        truth: &[Vec<&str>],
        found: &[Vec<&str>],
        counts: impl Fn(TaggedSentence<'_>, &Span<'_>) -> bool,
    ) -> SpanTally {
        let mut tally = SpanTally::default();
        for ((sentence, truth), found) in text.iter().zip(truth).zip(found) {
            let counted = |tags| spans(tags).into_iter().filter(|span| counts(sentence, span));
            let truth: HashSet<Span<'_>> = counted(truth).collect();
            let found: HashSet<Span<'_>> = counted(found).collect();
            tally.n_true += truth.len();
            tally.n_predicted += found.len();
            tally.n_correct += truth.intersection(&found).count();
        }
        tally
    }

    /// 2 · correct / (true + predicted), the harmonic mean of precision and recall.
    fn f1(&self) -> Option<f64> {
        ratio(2 * self.n_correct, self.n_true + self.n_predicted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::Inputs;
    use latens_model::TagError;

    /// Knows the words `a` (seen 5 times), `b` (twice) and `c` (never), with one tag each.
    struct ByWord(Vec<String>);

    impl Tagger for ByWord {
        fn tags(&self) -> &[String] {
            &self.0
        }

        fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError> {
            let tag = |&word: &&str| match word {
                "a" => Ok(0),
                "b" => Ok(1),
                "c" => Ok(2),
                word => Err(TagError::UnknownWord { word: word.to_owned() }),
            };
            words.iter().map(tag).collect()
        }

        fn n_seen(&self, word: &str) -> u64 {
            [("a", 5), ("b", 2)].iter().find(|seen| seen.0 == word).map_or(0, |seen| seen.1)
        }
    }

    fn tagger(tags: [&str; 3]) -> ByWord {
        ByWord(tags.map(str::to_owned).to_vec())
    }

    fn read(text: &str) -> TaggedSentences {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.conll");
        std::fs::write(&path, text).unwrap();
        TaggedSentences::read(&Inputs::new([path])).unwrap()
    }

    #[test]
    fn accuracy_is_reported_for_all_unseen_and_rare_words() {
        let text = read("a X\nb Y\n\nc X\nb X\na X\n");
        let scores = evaluate(&tagger(["X", "Y", "Z"]), &text, 1).unwrap();
        assert_eq!(scores.tokens, 5);
        assert_eq!(scores.accuracy, 3.0 / 5.0);
        assert_eq!(scores.oov_accuracy, Some(0.0));
        assert_eq!(scores.rare_accuracy, Some(1.0 / 3.0));
        assert_eq!(scores.spans, None);
        assert_eq!((scores.oov_tokens, scores.rare_tokens), (1, 3));
        assert_eq!(scores.types.len(), 3);
        let known = evaluate(&tagger(["X", "Y", "Z"]), &read("a X\n"), 1).unwrap();
        assert_eq!((known.oov_accuracy, known.rare_accuracy), (None, None));
    }

    #[test]
    fn a_span_is_correct_only_as_a_whole() {
        // True spans: a b; c; b; c.
        let text = read("a B-NP\nb I-NP\nc B-NP\n\nb B-NP\na O\n\nc B-NP\n");
        let scores = evaluate(&tagger(["B-NP", "I-NP", "O"]), &text, 1).unwrap();
        let spans = scores.spans.unwrap();
        // Predicted spans: a b; b; a. Two of them are correct.
        assert_eq!((spans.precision, spans.recall), (2.0 / 3.0, 2.0 / 4.0));
        assert!((spans.f1 - 2.0 * (2.0 / 3.0) * 0.5 / (2.0 / 3.0 + 0.5)).abs() < 1e-12);
        // With unseen words: c and c are true, none is predicted.
        assert_eq!(spans.oov_f1, Some(0.0));
        // With rare words: all four are true, a b and b are predicted.
        assert_eq!(spans.rare_f1, Some(2.0 * 2.0 / 6.0));
    }

    #[test]
    fn untaggable_text_and_missing_columns_are_errors() {
        let error = evaluate(&tagger(["X", "Y", "Z"]), &read("a X\n\nq X\n"), 1).unwrap_err();
        assert_eq!(error, EvaluateError::Tag(TagError::UnknownWord { word: "q".into() }));
        let error = evaluate(&tagger(["X", "Y", "Z"]), &read("a X\n"), 2).unwrap_err();
        assert!(error.to_string().contains("no column 3"), "{error}");
    }
}
