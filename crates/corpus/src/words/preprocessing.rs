use crate::words::vocab::UNK;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation;

/// How text is split into words and how words are normalized before they are looked up.
///
/// Every model stores its preprocessing and applies it to all text that it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preprocessing {
    /// How text is split into words.
    pub tokenize: Tokenize,
    /// Whether text is converted to lowercase.
    pub lowercase: bool,
    /// How digits are normalized.
    pub digits: Digits,
}

/// How text is split into words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tokenize {
    /// At ASCII whitespace, for text that is tokenized already.
    #[default]
    Blanks,
    /// At Unicode word boundaries (UAX #29). Every punctuation mark is a word of its own.
    Words,
}

/// How digits are normalized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Digits {
    /// Keep digits.
    #[default]
    Keep,
    /// Replace every digit with `0`.
    Zero,
    /// Replace words made of digits, `.`, `,` and a leading sign with `<num>`.
    Num,
}

/// The word that [`Digits::Num`] puts in place of a number.
pub const NUM: &str = "<num>";

impl Preprocessing {
    /// Calls `word` with each normalized word of `text`, in order.
    #[inline]
    pub fn words<'a>(&self, text: &'a str, mut word: impl FnMut(&str)) {
        let mut normalized = |token: &'a str| match self.normalize(token) {
            Cow::Borrowed(token) => word(token),
            Cow::Owned(token) => word(&token),
        };
        match self.tokenize {
            Tokenize::Blanks => text.split_ascii_whitespace().for_each(&mut normalized),
            // Text that was preprocessed before may contain `<unk>` and `<num>`: keep them whole.
            Tokenize::Words => text.split_ascii_whitespace().for_each(|part| match part {
                UNK | NUM => normalized(part),
                part => part
                    .split_word_bounds()
                    .filter(|token| !token.trim().is_empty())
                    .for_each(&mut normalized),
            }),
        }
    }

    /// Normalizes one word: lowercase and digits.
    #[inline]
    pub fn normalize<'a>(&self, token: &'a str) -> Cow<'a, str> {
        let mut token = Cow::Borrowed(token);
        if self.lowercase && token.chars().any(char::is_uppercase) {
            token = Cow::Owned(token.to_lowercase());
        }
        match self.digits {
            Digits::Keep => token,
            Digits::Zero if token.bytes().any(|b| b.is_ascii_digit()) => Cow::Owned(
                token.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect(),
            ),
            Digits::Num if is_number(&token) => Cow::Borrowed(NUM),
            Digits::Zero | Digits::Num => token,
        }
    }
}

fn is_number(token: &str) -> bool {
    let body = token.strip_prefix(['-', '+']).unwrap_or(token);
    body.starts_with(|c: char| c.is_ascii_digit())
        && body.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(preprocessing: Preprocessing, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        preprocessing.words(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn blanks_splits_at_whitespace_only() {
        let split = words(Preprocessing::default(), "  Don't\tpanic, ok?\r ");
        assert_eq!(split, ["Don't", "panic,", "ok?"]);
    }

    #[test]
    fn words_splits_punctuation_off() {
        let how = Preprocessing { tokenize: Tokenize::Words, ..Preprocessing::default() };
        let split = words(how, "\"Don't panic,\" she said: 3.5 well-known naïve 東京.");
        let expected = [
            "\"", "Don't", "panic", ",", "\"", "she", "said", ":", "3.5", "well", "-", "known",
            "naïve", "東", "京", ".",
        ];
        assert_eq!(split, expected);
    }

    #[test]
    fn unk_and_num_stay_whole() {
        let how = Preprocessing { tokenize: Tokenize::Words, ..Preprocessing::default() };
        assert_eq!(words(how, "the <unk>, <unk> <num>"), ["the", "<", "unk", ">", ",", UNK, NUM]);
    }

    #[test]
    fn case_and_digits_are_normalized() {
        let how = Preprocessing { lowercase: true, digits: Digits::Zero, ..Default::default() };
        assert_eq!(words(how, "ÉTÉ 1987 B2B"), ["été", "0000", "b0b"]);
        let how = Preprocessing { digits: Digits::Num, ..Default::default() };
        assert_eq!(words(how, "1,987.5 -3 B2B ."), [NUM, NUM, "B2B", "."]);
    }
}
