use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

/// Unicode normalization form (UAX #15): one spelling for characters that look alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// Characters and their accents are composed: `e` and an acute accent become `é`.
    #[default]
    Nfc,
    /// Compatibility characters, such as ligatures and full-width letters, are replaced, too.
    Nfkc,
    /// Text is kept as it is.
    None,
}

impl Normalize {
    /// [`Normalize::None`], the normal form of files that do not store one.
    pub(crate) fn none() -> Normalize {
        Normalize::None
    }

    /// Returns `text` in this normal form. Text that is in it already is not copied.
    #[inline]
    pub fn apply<'a>(self, text: &'a str) -> Cow<'a, str> {
        if self == Normalize::None || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        self.apply_to_unicode(text)
    }

    fn apply_to_unicode<'a>(self, text: &'a str) -> Cow<'a, str> {
        let is_normal = match self {
            Normalize::Nfc => is_nfc_quick(text.chars()),
            Normalize::Nfkc => is_nfkc_quick(text.chars()),
            Normalize::None => IsNormalized::Yes,
        };
        match (is_normal, self) {
            (IsNormalized::Yes, _) | (_, Normalize::None) => Cow::Borrowed(text),
            (_, Normalize::Nfc) => Cow::Owned(text.nfc().collect()),
            (_, Normalize::Nfkc) => Cow::Owned(text.nfkc().collect()),
        }
    }

    /// [`Normalize::apply`] for one word. What would become a space is kept, because words have no spaces.
    #[inline]
    pub(crate) fn apply_to_word<'a>(self, word: &'a str) -> Cow<'a, str> {
        match self.apply(word) {
            Cow::Owned(normal) if normal.contains(|c: char| c.is_ascii_whitespace()) => {
                Normalize::Nfc.apply(word)
            }
            normal => normal,
        }
    }
}
