use crate::words::normalize::Normalize;
use crate::words::tokenize::{NUM, Tokenize};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

/// How text is split into words and how words are normalized before they are looked up.
///
/// Every model stores its preprocessing and applies it to all text that it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Preprocessing {
    /// How text is split into words.
    #[serde(deserialize_with = "supported")]
    pub tokenize: Tokenize,
    /// Whether text is converted to lowercase.
    pub lowercase: bool,
    /// How digits are normalized.
    pub digits: Digits,
    /// Unicode normalization. Files of version 0.1.0 have none.
    #[serde(default = "Normalize::none")]
    pub normalize: Normalize,
}

/// Setters.
impl Preprocessing {
    /// Sets [`tokenize`](field@Self::tokenize).
    #[must_use]
    pub fn tokenize(self, tokenize: Tokenize) -> Preprocessing {
        Preprocessing { tokenize, ..self }
    }

    /// Sets [`lowercase`](field@Self::lowercase).
    #[must_use]
    pub fn lowercase(self, lowercase: bool) -> Preprocessing {
        Preprocessing { lowercase, ..self }
    }

    /// Sets [`digits`](field@Self::digits).
    #[must_use]
    pub fn digits(self, digits: Digits) -> Preprocessing {
        Preprocessing { digits, ..self }
    }

    /// Sets [`normalize`](field@Self::normalize).
    #[must_use]
    pub fn normalize(self, normalize: Normalize) -> Preprocessing {
        Preprocessing { normalize, ..self }
    }
}

/// Reads a tokenization, if this program supports it.
fn supported<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tokenize, D::Error> {
    let tokenize = Tokenize::deserialize(deserializer)?;
    let refused = "the tokenization `dictionary` needs a build with the feature `segmentation`";
    if tokenize.is_supported() { Ok(tokenize) } else { Err(D::Error::custom(refused)) }
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

impl Preprocessing {
    /// Calls `word` with each normalized word of `text`, in order.
    #[inline]
    pub fn words(&self, text: &str, mut word: impl FnMut(&str)) {
        let text = self.normalize.apply(text);
        self.tokenize.split(&text, |token| match self.fold(token) {
            Cow::Borrowed(token) => word(token),
            Cow::Owned(token) => word(&token),
        });
    }

    /// Normalizes one word: Unicode, lowercase and digits.
    ///
    /// A character that compatibility normalization would replace by a space is kept, because words have no spaces.
    #[inline]
    pub fn normalize_word<'a>(&self, token: &'a str) -> Cow<'a, str> {
        match self.normalize.apply_to_word(token) {
            Cow::Borrowed(token) => self.fold(token),
            Cow::Owned(token) => Cow::Owned(self.fold(&token).into_owned()),
        }
    }

    /// Lowercase and digits.
    #[inline]
    fn fold<'a>(&self, token: &'a str) -> Cow<'a, str> {
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
    use crate::words::vocab::UNK;

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
    fn composed_and_decomposed_characters_are_the_same_word() {
        let (composed, decomposed) = ("\u{e9}t\u{e9} na\u{ef}ve", "e\u{301}te\u{301} nai\u{308}ve");
        let how = Preprocessing { tokenize: Tokenize::Words, ..Default::default() };
        assert_eq!(words(how, decomposed), words(how, composed));
        assert_eq!(how.normalize_word("e\u{301}"), "\u{e9}");
        let none = Preprocessing { normalize: Normalize::None, ..how };
        assert_ne!(words(none, decomposed), words(none, composed));
        let nfkc = Preprocessing { normalize: Normalize::Nfkc, ..how };
        assert_eq!(words(nfkc, "\u{fb01}ne\u{a0}x\u{b2}"), ["fine", "x2"]);
        assert_eq!(nfkc.normalize_word("10\u{a0}000"), "10\u{a0}000");
        let lower = Preprocessing { lowercase: true, ..how };
        assert_eq!(lower.normalize_word("E\u{301}"), "\u{e9}");
    }

    #[test]
    fn files_of_0_1_0_are_read_without_normalization() {
        let old: Preprocessing = serde_json::from_str("{\"tokenize\":\"words\"}").unwrap();
        assert_eq!((old.tokenize, old.normalize), (Tokenize::Words, Normalize::None));
        assert_eq!(Preprocessing::default().normalize, Normalize::Nfc);
        let json = serde_json::to_string(&Preprocessing::default()).unwrap();
        assert_eq!(serde_json::from_str::<Preprocessing>(&json).unwrap(), Preprocessing::default());
    }

    #[test]
    fn case_and_digits_are_normalized() {
        let how = Preprocessing { lowercase: true, digits: Digits::Zero, ..Default::default() };
        assert_eq!(words(how, "ÉTÉ 1987 B2B"), ["été", "0000", "b0b"]);
        let how = Preprocessing { digits: Digits::Num, ..Default::default() };
        assert_eq!(words(how, "1,987.5 -3 B2B ."), [NUM, NUM, "B2B", "."]);
    }
}
