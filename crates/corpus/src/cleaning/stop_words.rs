//! Lists of stop words.
//!
//! The lists are those of NLTK, from the crate `stop-words`. The English one is short: it lacks words such
//! as "would", "also" and "many", which dominate topics. `english.txt` adds them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Words that are left out of documents, whatever their case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopWords {
    /// Name of the list: a language, `none`, or the name of a file.
    pub name: String,
    /// The words in lowercase.
    words: BTreeSet<String>,
}

/// Languages and their codes (ISO 639-1).
const LANGUAGES: [(&str, &str); 30] = [
    ("albanian", "sq"),
    ("arabic", "ar"),
    ("azerbaijani", "az"),
    ("basque", "eu"),
    ("belarusian", "be"),
    ("bengali", "bn"),
    ("catalan", "ca"),
    ("danish", "da"),
    ("dutch", "nl"),
    ("english", "en"),
    ("finnish", "fi"),
    ("french", "fr"),
    ("german", "de"),
    ("greek", "el"),
    ("hebrew", "he"),
    ("hungarian", "hu"),
    ("indonesian", "id"),
    ("italian", "it"),
    ("kazakh", "kk"),
    ("nepali", "ne"),
    ("norwegian", "no"),
    ("portuguese", "pt"),
    ("romanian", "ro"),
    ("russian", "ru"),
    ("slovenian", "sl"),
    ("spanish", "es"),
    ("swedish", "sv"),
    ("tajik", "tg"),
    ("tamil", "ta"),
    ("turkish", "tr"),
];

/// English function words that the list of NLTK lacks, written for this project.
const MORE_ENGLISH: &str = include_str!("english.txt");

/// No words.
impl Default for StopWords {
    fn default() -> StopWords {
        StopWords { name: "none".to_owned(), words: BTreeSet::new() }
    }
}

impl StopWords {
    /// The stop words of a language, by its English name or its ISO 639-1 code: `english` or `en`.
    pub fn of_language(language: &str) -> Option<StopWords> {
        let language = language.to_lowercase();
        let known = |&&(name, code): &&(&str, &str)| language == name || language == code;
        let &(name, code) = LANGUAGES.iter().find(known)?;
        let mut words: Vec<&str> = stop_words::lookup(code)?.to_vec();
        if code == "en" {
            words.extend(MORE_ENGLISH.split_whitespace());
        }
        Some(StopWords::new(name, words))
    }

    /// The English stop words.
    pub fn english() -> StopWords {
        StopWords::of_language("english").expect("English has a list")
    }

    /// The names of all languages that have a list.
    pub fn languages() -> impl Iterator<Item = &'static str> {
        LANGUAGES.iter().map(|&(name, _)| name)
    }

    /// A list of words with a name.
    pub fn new<W: AsRef<str>>(
        name: impl Into<String>,
        words: impl IntoIterator<Item = W>,
    ) -> StopWords {
        let words = words.into_iter().map(|word| folded(word.as_ref()));
        StopWords { name: name.into(), words: words.collect() }
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a word is in the list, whatever its case and the form of its apostrophe.
    pub fn contains(&self, word: &str) -> bool {
        self.words.contains(word) || self.words.contains(&folded(word))
    }
}

/// The form in which words are compared.
fn folded(word: &str) -> String {
    word.to_lowercase().replace('’', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_list() {
        for (name, code) in LANGUAGES {
            let words = StopWords::of_language(name).unwrap();
            assert!(words.len() > 20, "{name}: {} words", words.len());
            assert_eq!(StopWords::of_language(code), Some(words));
        }
        assert_eq!(StopWords::of_language("klingon"), None);
    }

    #[test]
    fn words_are_found_whatever_their_case_and_apostrophe() {
        let english = StopWords::english();
        for word in ["the", "The", "THE", "don't", "Don’t", "would", "also"] {
            assert!(english.contains(word), "{word}");
        }
        for word in ["moon", "court", "computer"] {
            assert!(!english.contains(word), "{word}");
        }
        assert!(StopWords::of_language("german").unwrap().contains("Und"));
        assert!(StopWords::new("own", ["Moon"]).contains("moon"));
    }
}
