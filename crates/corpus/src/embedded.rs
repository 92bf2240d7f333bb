//! A small corpus inside the library, for examples and tests.
//!
//! It has 300 short English documents on ten subjects, written for this project. Some of them have
//! universal part-of-speech tags and named entities. `embedded/README.md` lists its sizes,
//! `embedded/ANNOTATION.md` the annotation guidelines.

use std::fmt::Write;

macro_rules! subjects {
    ($($name:literal),* $(,)?) => {
        /// Name, documents and annotation of each subject, in alphabetical order.
        const SUBJECTS: &[(&str, &str, &str)] = &[$((
            $name,
            include_str!(concat!("../embedded/", $name, ".txt")),
            include_str!(concat!("../embedded/", $name, ".conll")),
        )),*];
    };
}

subjects![
    "astronomy",
    "cooking",
    "finance",
    "football",
    "gardening",
    "law",
    "medicine",
    "music",
    "railways",
    "sailing",
];

/// Numbers of the annotated documents of each subject, counted from 1.
const TAGGED_DOCUMENTS: [usize; 7] = [1, 2, 3, 4, 5, 9, 10];

/// The part of the corpus that a document belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Training set: 240 documents.
    Train,
    /// Validation set: 30 documents.
    Valid,
    /// Test set: 30 documents.
    Test,
}

impl Split {
    /// All parts.
    pub const ALL: [Split; 3] = [Split::Train, Split::Valid, Split::Test];

    /// Name of the part: `train`, `valid` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Valid => "valid",
            Split::Test => "test",
        }
    }

    /// Of every ten documents of a subject, the ninth is for validation and the tenth for testing.
    fn of_document(number: usize) -> Split {
        match number % 10 {
            9 => Split::Valid,
            0 => Split::Test,
            _ => Split::Train,
        }
    }
}

/// One document of the embedded corpus.
#[derive(Clone, Debug)]
pub struct EmbeddedDocument {
    /// Subject of the document.
    pub subject: &'static str,
    /// Part of the corpus that it belongs to.
    pub split: Split,
    /// Sentences as plain text.
    pub sentences: Vec<&'static str>,
}

/// Returns all documents, grouped by subject.
pub fn documents() -> Vec<EmbeddedDocument> {
    let of_subject = |&(subject, text, _): &(&'static str, &'static str, _)| {
        blocks(text).enumerate().map(move |(i, block)| EmbeddedDocument {
            subject,
            split: Split::of_document(i + 1),
            sentences: block.lines().collect(),
        })
    };
    SUBJECTS.iter().flat_map(of_subject).collect()
}

/// Returns the sentences of one part in the format [`Lines`](crate::Format::Lines).
///
/// They are plain text: read them with [`Tokenize::Words`](crate::Tokenize::Words).
pub fn text(split: Split) -> String {
    let mut text = String::new();
    for document in documents().iter().filter(|document| document.split == split) {
        for sentence in &document.sentences {
            text.push_str(sentence);
            text.push('\n');
        }
    }
    text
}

/// Returns all documents in the format [`Docs`](crate::Format::Docs) with the fields label, split and
/// text.
pub fn docs() -> String {
    let mut text = String::new();
    for document in documents() {
        let (subject, split) = (document.subject, document.split.name());
        writeln!(text, "{subject}\t{split}\t{}", document.sentences.join(" "))
            .expect("writing to a string cannot fail");
    }
    text
}

/// Returns the annotated sentences of one part in the format [`Conll`](crate::Format::Conll) with the
/// columns word, universal part of speech and named entity.
pub fn tagged(split: Split) -> String {
    let mut text = String::new();
    for (&(_, _, annotation), documents) in SUBJECTS.iter().zip(documents().chunks(30)) {
        let tagged = TAGGED_DOCUMENTS.iter().map(|&number| &documents[number - 1]);
        let splits = tagged.flat_map(|document| document.sentences.iter().map(|_| document.split));
        for (sentence, _) in blocks(annotation).zip(splits).filter(|&(_, s)| s == split) {
            text.push_str(sentence);
            text.push_str("\n\n");
        }
    }
    text
}

fn blocks(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split("\n\n").map(|block| block.trim_matches('\n')).filter(|block| !block.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Preprocessing, Tokenize};

    const WORDS: Preprocessing = Preprocessing {
        tokenize: Tokenize::Words,
        lowercase: false,
        digits: crate::Digits::Keep,
        normalize: crate::Normalize::Nfc,
    };

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        WORDS.words(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn the_readme_states_the_size_of_the_corpus() {
        let documents = documents();
        assert_eq!(documents.len(), 300);
        for split in Split::ALL {
            let n = documents.iter().filter(|document| document.split == split).count();
            assert_eq!(n, if split == Split::Train { 240 } else { 30 });
        }
        let sentences: Vec<&str> = documents.iter().flat_map(|d| d.sentences.clone()).collect();
        let n_tokens: usize = sentences.iter().map(|sentence| words(sentence).len()).sum();
        let n_tagged: usize = Split::ALL.iter().map(|&s| tagged(s).matches("\n\n").count()).sum();
        let readme = include_str!("../embedded/README.md");
        for (n, what) in
            [(sentences.len(), "sentences"), (n_tokens, "tokens"), (n_tagged, "tagged")]
        {
            assert!(readme.contains(&format!("| {what} | {n} |")), "{n} {what}");
        }
    }

    #[test]
    fn every_sentence_is_unique() {
        let documents = documents();
        let mut sentences: Vec<&str> = documents.iter().flat_map(|d| d.sentences.clone()).collect();
        sentences.sort_unstable();
        assert!(sentences.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn the_annotation_has_the_words_of_the_documents() {
        for ((_, _, annotation), documents) in SUBJECTS.iter().zip(documents().chunks(30)) {
            let tagged = TAGGED_DOCUMENTS.iter().flat_map(|&n| documents[n - 1].sentences.clone());
            let mut annotated = blocks(annotation);
            for sentence in tagged {
                let rows =
                    annotated.next().expect("every tagged sentence has an annotation").lines();
                let rows: Vec<Vec<&str>> = rows.map(|row| row.split(' ').collect()).collect();
                let column: Vec<&str> = rows.iter().map(|row| row[0]).collect();
                assert_eq!(column, words(sentence));
                let mut previous = "O";
                for row in &rows {
                    let entity = row[2];
                    let continues = entity.starts_with("I-");
                    assert!(!continues || previous.get(1..) == entity.get(1..), "{sentence}");
                    previous = entity;
                }
            }
            assert!(annotated.next().is_none());
        }
    }

    #[test]
    fn the_annotation_uses_only_known_tags() {
        const TAGS: &str =
            "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X";
        const KINDS: &str = "PER LOC ORG MISC";
        for row in Split::ALL.map(tagged).concat().lines().filter(|line| !line.is_empty()) {
            let columns: Vec<&str> = row.split(' ').collect();
            let [_, tag, entity] = columns[..] else { panic!("expected three columns: {row}") };
            assert!(TAGS.split(' ').any(|known| known == tag), "{row}");
            let kind = entity.trim_start_matches("B-").trim_start_matches("I-");
            assert!(entity == "O" || KINDS.split(' ').any(|known| known == kind), "{row}");
        }
    }
}
