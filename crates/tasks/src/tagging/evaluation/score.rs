//! How well a tagger tags.

use super::compare::Comparison;
use crate::tagging::spans::{Scheme, Span, are_chunk_tags, spans};
use latens_corpus::{MissingColumn, TaggedSentence, TaggedSentences};
use latens_model::{TagError, Tagger};
use rayon::prelude::*;
use std::collections::HashSet;
use thiserror::Error;

/// The most times a rare word was seen in training. Words that were never seen are rare, too.
const RARE: u64 = 2;

/// What a tagger makes of a text. Shares are of 1; `None` is a share of nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct TagScores {
    /// How many words were tagged.
    pub tokens: usize,
    /// The share of words whose tag is right.
    pub accuracy: f64,
    /// The same of words that were never seen in training.
    pub oov_accuracy: Option<f64>,
    /// The same of words that were seen at most twice.
    pub rare_accuracy: Option<f64>,
    /// Tags of the text that the tagger never saw, and so never finds.
    pub unknown_tags: Vec<String>,
    /// How well spans were found, if the tags are of spans.
    pub spans: Option<SpanScores>,
}

/// How well spans were found. A span is found if its type, its first and its last word are right.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanScores {
    /// The share of spans of the tagger that are right.
    pub precision: f64,
    /// The share of spans of the text that were found.
    pub recall: f64,
    /// 2 · precision · recall / (precision + recall).
    pub f1: f64,
    /// F1 of the spans, on either side, that have a word that was never seen in training.
    pub oov_f1: Option<f64>,
    /// F1 of the spans, on either side, that have a word that was seen at most twice.
    pub rare_f1: Option<f64>,
}

/// Why a tagger could not be measured.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvaluateError {
    /// A word has no such column.
    #[error(transparent)]
    Column(#[from] MissingColumn),
    /// A sentence could not be tagged.
    #[error(transparent)]
    Tag(#[from] TagError),
}

/// The names of the tags of each word of each sentence, in order.
pub fn tag_all<'t>(
    tagger: &'t dyn Tagger,
    text: &TaggedSentences,
) -> Result<Vec<Vec<&'t str>>, TagError> {
    let names = tagger.tags();
    let tag = |i: usize| -> Result<Vec<&'t str>, TagError> {
        let (sentence, words) = (text.get(i), text.get(i).words());
        let tags = match tagger.pos_column() {
            None => tagger.tag(&words)?,
            Some(column) => {
                let missing = TagError::NoPartsOfSpeech { column: column + 1 };
                tagger.tag_with_pos(&words, &sentence.column(column).ok_or(missing)?)?
            }
        };
        Ok(tags.into_iter().map(|tag| names[tag as usize].as_str()).collect())
    };
    (0..text.len()).into_par_iter().map(tag).collect()
}

/// Tags a text, and compares with what one of its columns, counted from 0, has.
pub fn evaluate(
    tagger: &dyn Tagger,
    text: &TaggedSentences,
    column: usize,
) -> Result<TagScores, EvaluateError> {
    text.check_column(column)?;
    let found = tag_all(tagger, text)?;
    let true_tags = true_tags(text, column);
    let has_spans = are_chunk_tags(true_tags.iter().flatten().copied());
    let (mut all, mut oov, mut rare) = (Tally::default(), Tally::default(), Tally::default());
    let words = text.iter().flat_map(|sentence| sentence.words());
    for (word, is_right) in words.zip(right_tags(&true_tags, &found)) {
        let n_seen = tagger.n_seen(word);
        all.add(is_right);
        if n_seen == 0 {
            oov.add(is_right);
        }
        if n_seen <= RARE {
            rare.add(is_right);
        }
    }
    let unknown_tags = unknown_tags(tagger, &true_tags, has_spans);
    Ok(TagScores {
        tokens: text.n_tokens(),
        accuracy: all.share().unwrap_or(0.0),
        oov_accuracy: oov.share(),
        rare_accuracy: rare.share(),
        unknown_tags,
        spans: has_spans.then(|| span_scores(tagger, text, &true_tags, &found)),
    })
}

/// Tags a text with two taggers, and compares which of them has which words right.
pub fn compare(
    taggers: [&dyn Tagger; 2],
    text: &TaggedSentences,
    column: usize,
) -> Result<Comparison, EvaluateError> {
    let [first, second] = taggers.map(|tagger| right(tagger, text, column));
    Ok(Comparison::of(first?.into_iter().zip(second?)))
}

/// Tags a text, and says of each of its words whether the tag is the one in a column, counted from 0. Spans are
/// compared as IOB2 writes them.
pub fn right(
    tagger: &dyn Tagger,
    text: &TaggedSentences,
    column: usize,
) -> Result<Vec<bool>, EvaluateError> {
    text.check_column(column)?;
    Ok(right_tags(&true_tags(text, column), &tag_all(tagger, text)?))
}

fn true_tags(text: &TaggedSentences, column: usize) -> Vec<Vec<&str>> {
    text.iter().map(|sentence| sentence.column(column).expect("every word has it")).collect()
}

/// Whether each tag is right. Spans that are not written in IOB2, which taggers answer in, are written so first.
fn right_tags(truth: &[Vec<&str>], found: &[Vec<&str>]) -> Vec<bool> {
    let are_spans = are_chunk_tags(truth.iter().flatten().copied());
    let pairs = truth.iter().zip(found);
    if !are_spans || Scheme::of(truth.iter().map(Vec::as_slice)) == Scheme::Iob2 {
        return pairs.flat_map(|(t, f)| t.iter().zip(f).map(|(t, f)| t == f)).collect();
    }
    let written = pairs.map(|(t, f)| (Scheme::Iob2.write(t), Scheme::Iob2.write(f)));
    written.flat_map(|(t, f)| t.into_iter().zip(f).map(|(t, f)| t == f)).collect()
}

/// The tags of a text that the tagger never finds, in order. Of spans only types count, however they are written.
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

/// What follows the dash.
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
        precision: share(all.n_right, all.n_found).unwrap_or(0.0),
        recall: share(all.n_right, all.n_true).unwrap_or(0.0),
        f1: all.f1().unwrap_or(0.0),
        oov_f1: oov.f1(),
        rare_f1: rare.f1(),
    }
}

#[derive(Default)]
struct Tally {
    n: usize,
    n_right: usize,
}

impl Tally {
    fn add(&mut self, is_right: bool) {
        self.n += 1;
        self.n_right += usize::from(is_right);
    }

    fn share(&self) -> Option<f64> {
        share(self.n_right, self.n)
    }
}

#[derive(Default)]
struct SpanTally {
    n_true: usize,
    n_found: usize,
    n_right: usize,
}

impl SpanTally {
    /// Counts the spans that `counts` wants.
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
            tally.n_found += found.len();
            tally.n_right += truth.intersection(&found).count();
        }
        tally
    }

    /// 2 · right / (true + found), which is the harmonic mean of precision and recall.
    fn f1(&self) -> Option<f64> {
        share(2 * self.n_right, self.n_true + self.n_found)
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::Inputs;

    /// Knows the words `a` (seen 5 times), `b` (twice) and `c` (never), and one tag for each.
    struct ByWord(Vec<String>);

    impl Tagger for ByWord {
        fn tags(&self) -> &[String] {
            &self.0
        }

        fn tag(&self, words: &[&str]) -> Result<Vec<u32>, TagError> {
            let place = |&word: &&str| match word {
                "a" => Ok(0),
                "b" => Ok(1),
                "c" => Ok(2),
                word => Err(TagError::UnknownWord { word: word.to_owned() }),
            };
            words.iter().map(place).collect()
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
    fn accuracy_is_told_for_all_unknown_and_rare_words() {
        let text = read("a X\nb Y\n\nc X\nb X\na X\n");
        let scores = evaluate(&tagger(["X", "Y", "Z"]), &text, 1).unwrap();
        assert_eq!(scores.tokens, 5);
        assert_eq!(scores.accuracy, 3.0 / 5.0);
        assert_eq!(scores.oov_accuracy, Some(0.0));
        assert_eq!(scores.rare_accuracy, Some(1.0 / 3.0));
        assert_eq!(scores.spans, None);
        let known = evaluate(&tagger(["X", "Y", "Z"]), &read("a X\n"), 1).unwrap();
        assert_eq!((known.oov_accuracy, known.rare_accuracy), (None, None));
    }

    #[test]
    fn spans_are_right_as_a_whole() {
        // True are: a b; c; b; c.
        let text = read("a B-NP\nb I-NP\nc B-NP\n\nb B-NP\na O\n\nc B-NP\n");
        let scores = evaluate(&tagger(["B-NP", "I-NP", "O"]), &text, 1).unwrap();
        let spans = scores.spans.unwrap();
        // Found are: a b; b; a. Two of them are right.
        assert_eq!((spans.precision, spans.recall), (2.0 / 3.0, 2.0 / 4.0));
        assert!((spans.f1 - 2.0 * (2.0 / 3.0) * 0.5 / (2.0 / 3.0 + 0.5)).abs() < 1e-12);
        // With unknown words: true are c and c, none is found.
        assert_eq!(spans.oov_f1, Some(0.0));
        // With rare words: true are all four, found are a b and b.
        assert_eq!(spans.rare_f1, Some(2.0 * 2.0 / 6.0));
    }

    #[test]
    fn what_cannot_be_measured_is_told() {
        let error = evaluate(&tagger(["X", "Y", "Z"]), &read("a X\n\nq X\n"), 1).unwrap_err();
        assert_eq!(error, EvaluateError::Tag(TagError::UnknownWord { word: "q".into() }));
        let error = evaluate(&tagger(["X", "Y", "Z"]), &read("a X\n"), 2).unwrap_err();
        assert!(error.to_string().contains("no column 3"), "{error}");
    }
}
