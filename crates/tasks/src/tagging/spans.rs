//! Spans encoded in tags (IOB1, IOB2, BIOES), extracted as the program `conlleval` of the CoNLL shared tasks does.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Scheme that encodes spans in tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// `I` for every word, but `B` for the first word of a span that follows a span of the same type directly.
    Iob1,
    /// `B` for the first word, `I` for the others.
    #[default]
    Iob2,
    /// `S` for a span of one word, else `B` for the first word, `E` for the last one, `I` between.
    Bioes,
}

impl Scheme {
    /// Detects the scheme of some sentences. Ambiguous sentences count as IOB2.
    pub fn of<'a>(sentences: impl IntoIterator<Item = &'a [&'a str]>) -> Scheme {
        let mut scheme = Scheme::Iob2;
        for tags in sentences {
            if tags.iter().any(|tag| matches!(split(tag), ("E" | "S", kind) if !kind.is_empty())) {
                return Scheme::Bioes;
            }
            let starts = spans(tags).into_iter().map(|span| tags[span.words.start]);
            if starts.map(split).any(|(letter, _)| letter == "I") {
                scheme = Scheme::Iob1;
            }
        }
        scheme
    }

    /// Converts the tags of a sentence, in any scheme, to this scheme.
    pub fn write(self, tags: &[&str]) -> Vec<String> {
        let mut written = vec!["O".to_owned(); tags.len()];
        let mut before: Option<Span<'_>> = None;
        for span in spans(tags) {
            let Range { start, end } = span.words;
            let follows = |before: Span<'_>| before.kind == span.kind && before.words.end == start;
            let touches = before.is_some_and(follows);
            for (i, tag) in written[start..end].iter_mut().enumerate() {
                let (is_first, is_last) = (i == 0, start + i + 1 == end);
                let letter = match self {
                    Scheme::Iob1 if is_first && touches => 'B',
                    Scheme::Iob2 if is_first => 'B',
                    Scheme::Bioes if is_first && is_last => 'S',
                    Scheme::Bioes if is_first => 'B',
                    Scheme::Bioes if is_last => 'E',
                    Scheme::Iob1 | Scheme::Iob2 | Scheme::Bioes => 'I',
                };
                *tag = format!("{letter}-{}", span.kind);
            }
            before = Some(span);
        }
        written
    }
}

/// A sequence of consecutive words that belong together, such as a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Span<'a> {
    /// Type, e.g., `NP` or `PER`.
    pub kind: &'a str,
    /// Indices of its words in the sentence.
    pub words: Range<usize>,
}

/// Whether tags encode spans: each is `O`, or a letter of `BIES`, a dash and a type, and not all are `O`.
pub fn are_chunk_tags<'a>(tags: impl IntoIterator<Item = &'a str>) -> bool {
    let mut has_span = false;
    for tag in tags {
        match split(tag) {
            ("O", "") => {}
            ("B" | "I" | "E" | "S", kind) if !kind.is_empty() => has_span = true,
            _ => return false,
        }
    }
    has_span
}

/// Extracts the spans of one sentence.
///
/// `B` starts a span and `I` continues it; `E` ends a span and `S` is a span of one word. Inconsistent tags are read as
/// `conlleval` does: `I` after `O`, or after a span of another type, starts a span, which also covers IOB1. A span
/// continues until another one starts or an `O` follows.
pub fn spans<'a>(tags: &[&'a str]) -> Vec<Span<'a>> {
    let mut spans: Vec<Span<'a>> = Vec::new();
    let mut before = ("O", "");
    for (i, &tag) in tags.iter().enumerate() {
        let tag = split(tag);
        if tag.0 != "O" {
            match spans.last_mut() {
                Some(span) if !starts_span(before, tag) => span.words.end = i + 1,
                _ => spans.push(Span { kind: tag.1, words: i..i + 1 }),
            }
        }
        before = tag;
    }
    spans
}

/// Whether a tag starts a span after another tag, or at the beginning of a sentence; `None` for `O`.
pub(crate) fn starts(before: Option<&str>, tag: &str) -> Option<bool> {
    let tag = split(tag);
    (tag.0 != "O").then(|| starts_span(before.map_or(("O", ""), split), tag))
}

/// Whether a tag other than `O` starts a span.
fn starts_span(before: (&str, &str), tag: (&str, &str)) -> bool {
    matches!(before.0, "O" | "E" | "S") || matches!(tag.0, "B" | "S") || before.1 != tag.1
}

/// `B-NP` → (`B`, `NP`), `O` → (`O`, empty).
fn split(tag: &str) -> (&str, &str) {
    tag.split_once('-').unwrap_or((tag, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans as `NP 0-2`, including the last word.
    fn found(tags: &str) -> Vec<String> {
        let tags: Vec<&str> = tags.split(' ').collect();
        let text =
            |span: &Span<'_>| format!("{} {}-{}", span.kind, span.words.start, span.words.end - 1);
        spans(&tags).iter().map(text).collect()
    }

    #[test]
    fn spans_start_and_end_as_in_conlleval() {
        let cases: &[(&str, &[&str])] = &[
            ("O O", &[]),
            ("B-NP I-NP O B-VP", &["NP 0-1", "VP 3-3"]),
            ("B-NP B-NP I-NP", &["NP 0-0", "NP 1-2"]),
            // I after O, at the beginning, and after another type starts a span.
            ("O I-NP I-NP", &["NP 1-2"]),
            ("I-NP O", &["NP 0-0"]),
            ("B-NP I-VP I-VP", &["NP 0-0", "VP 1-2"]),
            ("I-NP B-NP I-NP", &["NP 0-0", "NP 1-2"]),
            // E and S.
            ("B-X I-X E-X S-X B-X E-X", &["X 0-2", "X 3-3", "X 4-5"]),
            ("E-X E-X I-X", &["X 0-0", "X 1-1", "X 2-2"]),
            ("O E-X O", &["X 1-1"]),
            // The type is what follows the first dash.
            ("B-A-B I-A-B I-A", &["A-B 0-1", "A 2-2"]),
        ];
        for (tags, expected) in cases {
            assert_eq!(found(tags), *expected, "{tags}");
        }
    }

    #[test]
    fn schemes_convert_into_each_other() {
        let written = [
            (Scheme::Iob1, "I-X I-X B-X O I-Y I-X"),
            (Scheme::Iob2, "B-X I-X B-X O B-Y B-X"),
            (Scheme::Bioes, "B-X E-X S-X O S-Y S-X"),
        ];
        for (from, text) in written {
            let tags: Vec<&str> = text.split(' ').collect();
            assert_eq!(Scheme::of([&tags[..]]), from);
            for (to, expected) in written {
                assert_eq!(to.write(&tags).join(" "), expected, "{from:?} to {to:?}");
            }
        }
        let tags = ["O", "B-X", "O"];
        assert_eq!(Scheme::of([&tags[..]]), Scheme::Iob2);
        assert_eq!(Scheme::of([]), Scheme::Iob2);
    }

    #[test]
    fn parts_of_speech_are_not_chunk_tags() {
        assert!(are_chunk_tags(["O", "B-NP", "I-NP"]));
        assert!(are_chunk_tags(["S-PER", "O"]));
        for tags in
            [&["NN", "VB"][..], &["O", "O"], &["B-NP", "-LRB-"], &["B-", "O"], &["O", "X-Y"], &[]]
        {
            assert!(!are_chunk_tags(tags.iter().copied()), "{tags:?}");
        }
    }
}
