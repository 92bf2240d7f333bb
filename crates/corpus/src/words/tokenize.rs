use crate::words::vocab::UNK;
use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

/// The word that [`Digits::Num`](crate::Digits::Num) puts in place of a number.
pub const NUM: &str = "<num>";

/// How text is split into words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tokenize {
    /// At ASCII whitespace, for text that is tokenized already.
    // The name in files is that of version 0.1.
    #[default]
    #[serde(rename = "blanks", alias = "whitespace")]
    Whitespace,
    /// At Unicode word boundaries (UAX #29). Every punctuation mark is a word of its own.
    Words,
    /// Like [`Tokenize::Words`], but hashtags, mentions and URLs stay whole.
    Tweets,
    /// Like [`Tokenize::Words`], but text in Chinese, Japanese, Thai, Lao, Khmer and Burmese script is split into words by
    /// the dictionaries and models of ICU. Needs the feature `segmentation`.
    Dictionary,
}

impl Tokenize {
    /// Whether this program can split text so: [`Tokenize::Dictionary`] needs the feature `segmentation`.
    pub fn is_supported(self) -> bool {
        self != Tokenize::Dictionary || cfg!(feature = "segmentation")
    }

    /// Calls `token` with each word of `text`, in order. Words are slices of `text`.
    ///
    /// # Panics
    /// If this is not [supported](Tokenize::is_supported).
    #[inline]
    pub fn split<'a>(self, text: &'a str, mut token: impl FnMut(&'a str)) {
        match self {
            Tokenize::Whitespace => text.split_ascii_whitespace().for_each(token),
            // Text that was preprocessed before may contain `<unk>` and `<num>`: keep them whole.
            Tokenize::Words => text.split_ascii_whitespace().for_each(|part| match part {
                UNK | NUM => token(part),
                part => split_words(part, &mut token),
            }),
            Tokenize::Tweets => text.split_ascii_whitespace().for_each(|part| match part {
                UNK | NUM => token(part),
                part => split_tweet(part, &mut token),
            }),
            Tokenize::Dictionary => text.split_ascii_whitespace().for_each(|part| match part {
                UNK | NUM => token(part),
                part if part.chars().any(has_no_spaces) => split_by_dictionary(part, &mut token),
                part => split_words(part, &mut token),
            }),
        }
    }
}

#[inline]
fn split_words<'a>(part: &'a str, token: &mut impl FnMut(&'a str)) {
    part.split_word_bounds().filter(|token| !token.trim().is_empty()).for_each(token);
}

/// Whether a character belongs to a script that is written without spaces between words.
pub fn has_no_spaces(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'         // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Burmese
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{3005}'..='\u{3007}'     // iteration mark, zero
        | '\u{3041}'..='\u{30ff}'     // Hiragana, Katakana
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'     // Han
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'     // half-width Katakana
        | '\u{20000}'..='\u{3ffff}'
    )
}

#[cfg(feature = "segmentation")]
fn split_by_dictionary<'a>(part: &'a str, token: &mut impl FnMut(&'a str)) {
    use icu_segmenter::options::WordBreakInvariantOptions;
    use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed};
    use std::sync::LazyLock;
    static SEGMENTER: LazyLock<WordSegmenterBorrowed<'static>> =
        LazyLock::new(|| WordSegmenter::new_auto(WordBreakInvariantOptions::default()));
    let mut begin = 0;
    for end in SEGMENTER.segment_str(part).filter(|&end| end > 0) {
        let word = &part[begin..end];
        if !word.trim().is_empty() {
            token(word);
        }
        begin = end;
    }
}

#[cfg(not(feature = "segmentation"))]
fn split_by_dictionary<'a>(_: &'a str, _: &mut impl FnMut(&'a str)) {
    panic!("`Tokenize::Dictionary` needs the feature `segmentation`");
}

/// Splits text without whitespace; hashtags, mentions and URLs stay whole.
fn split_tweet<'a>(part: &'a str, token: &mut impl FnMut(&'a str)) {
    let (mut begin, mut at) = (0, 0);
    while at < part.len() {
        let rest = &part[at..];
        let before = part[..at].chars().next_back();
        let whole = match before {
            // The middle of a word, such as an e-mail address.
            Some(c) if at > begin && (c.is_alphanumeric() || c == '_') => 0,
            _ => url_len(rest).max(tag_len(rest)),
        };
        if whole > 0 {
            split_words(&part[begin..at], token);
            token(&rest[..whole]);
            begin = at + whole;
            at = begin;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    split_words(&part[begin..], token);
}

/// Length of the URL at the beginning of a text in bytes, without the punctuation of the sentence after it; 0 if there is
/// none.
fn url_len(text: &str) -> usize {
    let starts = |prefix: &str| {
        text.get(..prefix.len()).is_some_and(|found| found.eq_ignore_ascii_case(prefix))
    };
    let Some(prefix) = ["http://", "https://", "www."].into_iter().find(|prefix| starts(prefix))
    else {
        return 0;
    };
    let end = text.find(['<', '>', '"', '“', '”', '«', '»']).unwrap_or(text.len());
    let mut url = &text[..end];
    while let Some(last) = url.chars().next_back() {
        // A parenthesis that was opened in the URL belongs to it.
        let count = |wanted| url.matches(wanted).count();
        let is_own = last == ')' && count('(') >= count(')');
        if is_own || !".,;:!?'’…)]}".contains(last) {
            break;
        }
        url = &url[..url.len() - last.len_utf8()];
    }
    if url.len() > prefix.len() { url.len() } else { 0 }
}

/// Length of the hashtag or mention at the beginning of a text in bytes; 0 if there is none.
fn tag_len(text: &str) -> usize {
    let Some(name) = text.strip_prefix(['#', '@', '＃', '＠']) else { return 0 };
    let is_mention = text.starts_with(['@', '＠']);
    let belongs = |c: char| {
        if is_mention {
            c.is_ascii_alphanumeric() || c == '_'
        } else {
            // Marks are vowels and accents of many scripts.
            c.is_alphanumeric() || c == '_' || unicode_normalization::char::is_combining_mark(c)
        }
    };
    let len = name.find(|c: char| !belongs(c)).unwrap_or(name.len());
    if len > 0 { text.len() - name.len() + len } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tweet(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        Tokenize::Tweets.split(text, |word| words.push(word));
        words
    }

    #[test]
    fn hashtags_mentions_and_urls_stay_whole() {
        let cases: &[(&str, &[&str])] = &[
            ("RT @user_1: #NLP rocks!", &["RT", "@user_1", ":", "#NLP", "rocks", "!"]),
            ("see https://t.co/a1B?x=1#top, ok", &["see", "https://t.co/a1B?x=1#top", ",", "ok"]),
            ("(www.example.org/a_(b)).", &["(", "www.example.org/a_(b)", ")", "."]),
            ("\"HTTP://A.org\"", &["\"", "HTTP://A.org", "\""]),
            ("#été#winter", &["#été", "#winter"]),
            ("#हिन्दी", &["#हिन्दी"]),
            ("@a@b", &["@a", "@b"]),
            ("# 1 @ home", &["#", "1", "@", "home"]),
            ("a@b.org C# don't", &["a", "@", "b.org", "C", "#", "don't"]),
            ("👩‍👩‍👧 ok <unk>", &["👩‍👩‍👧", "ok", UNK]),
            ("https:// www.", &["https", ":", "/", "/", "www", "."]),
        ];
        for (text, expected) in cases {
            assert_eq!(tweet(text), *expected, "{text}");
        }
    }

    #[cfg(feature = "segmentation")]
    #[test]
    fn a_dictionary_splits_text_without_spaces_into_words() {
        let split = |text| {
            let mut words = Vec::new();
            Tokenize::Dictionary.split(text, |word| words.push(word));
            words
        };
        // The examples of the segmenter of ICU, and text with spaces.
        assert_eq!(split("こんにちは世界。"), ["こんにちは", "世界", "。"]);
        assert_eq!(split("我们在北京。 don't"), ["我们", "在", "北京", "。", "don't"]);
        assert!(split("ภาษาไทยภาษาไทย").len() < 8);
    }

    #[test]
    fn scripts_without_spaces_are_known() {
        assert!("東京はกขမြខ".chars().all(has_no_spaces));
        assert!(!"abc é привет 한국어 हिन्दी".chars().any(has_no_spaces));
    }

    #[test]
    fn without_tags_and_urls_tweets_are_words() {
        let text = "\"Don't panic,\" she said: 3.5 well-known naïve 東京. a/b $5";
        let mut words = Vec::new();
        Tokenize::Words.split(text, |word| words.push(word));
        assert_eq!(tweet(text), words);
    }
}
