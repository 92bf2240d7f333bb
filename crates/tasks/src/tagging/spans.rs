//! Spans of words from the tags of words, as the program `conlleval` of the CoNLL shared tasks counts them.

use std::ops::Range;

/// Some words in a row that belong together, such as a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Span<'a> {
    /// What it is: `NP`, `PER`.
    pub kind: &'a str,
    /// Its words, as places in the sentence.
    pub words: Range<usize>,
}

/// Whether tags say where spans begin and end: each is `O`, or a letter of `BIES`, a dash and a type; and not
/// all are `O`.
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

/// The spans of one sentence.
///
/// `B` begins one and `I` goes on; `E` ends one and `S` is one alone, where they are used. What `conlleval` does
/// with tags in no order is done here: `I` after `O`, or after a span of another type, begins a span, so
/// that IOB1 and IOB2 are both read; a span goes on until something else begins or an `O` comes.
pub fn spans<'a>(tags: &[&'a str]) -> Vec<Span<'a>> {
    let mut spans: Vec<Span<'a>> = Vec::new();
    let mut before = ("O", "");
    for (i, &tag) in tags.iter().enumerate() {
        let tag = split(tag);
        if tag.0 != "O" {
            match spans.last_mut() {
                Some(span) if !begins(before, tag) => span.words.end = i + 1,
                _ => spans.push(Span { kind: tag.1, words: i..i + 1 }),
            }
        }
        before = tag;
    }
    spans
}

/// Whether a tag other than `O` begins a span.
fn begins(before: (&str, &str), tag: (&str, &str)) -> bool {
    matches!(before.0, "O" | "E" | "S") || matches!(tag.0, "B" | "S") || before.1 != tag.1
}

/// `B-NP` ─▶ (`B`, `NP`), `O` ─▶ (`O`, nothing).
fn split(tag: &str) -> (&str, &str) {
    tag.split_once('-').unwrap_or((tag, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans as `NP 0-2`, the last word included.
    fn found(tags: &str) -> Vec<String> {
        let tags: Vec<&str> = tags.split(' ').collect();
        let text =
            |span: &Span<'_>| format!("{} {}-{}", span.kind, span.words.start, span.words.end - 1);
        spans(&tags).iter().map(text).collect()
    }

    #[test]
    fn spans_begin_and_end_as_conlleval_has_it() {
        let cases: &[(&str, &[&str])] = &[
            ("O O", &[]),
            ("B-NP I-NP O B-VP", &["NP 0-1", "VP 3-3"]),
            ("B-NP B-NP I-NP", &["NP 0-0", "NP 1-2"]),
            // I after O, after the start, and after another type begins a span.
            ("O I-NP I-NP", &["NP 1-2"]),
            ("I-NP O", &["NP 0-0"]),
            ("B-NP I-VP I-VP", &["NP 0-0", "VP 1-2"]),
            ("I-NP B-NP I-NP", &["NP 0-0", "NP 1-2"]),
            // Ends and single words.
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
    fn parts_of_speech_are_no_chunk_tags() {
        assert!(are_chunk_tags(["O", "B-NP", "I-NP"]));
        assert!(are_chunk_tags(["S-PER", "O"]));
        for tags in
            [&["NN", "VB"][..], &["O", "O"], &["B-NP", "-LRB-"], &["B-", "O"], &["O", "X-Y"], &[]]
        {
            assert!(!are_chunk_tags(tags.iter().copied()), "{tags:?}");
        }
    }
}
