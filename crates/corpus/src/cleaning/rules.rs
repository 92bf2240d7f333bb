use crate::cleaning::frequency::DocumentFrequency;
use crate::cleaning::phrases::Phrases;
use crate::cleaning::stop_words::StopWords;
use crate::words::tokenize::NUM;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Which words of documents are left out, and which are joined to phrases.
///
/// The default leaves out and joins nothing. [`Cleaning::topics`] is for topic models.
///
/// ```
/// use latens_corpus::{Cleaning, DocumentCorpus};
///
/// let reader = DocumentCorpus::reader().lowercase(true).cleaning(Cleaning::topics());
/// let corpus = reader.read_texts(["The moon and 3 stars", "the sun !"])?;
/// assert_eq!(corpus.documents.n_tokens(), 3);
/// assert_eq!(corpus.lexicon.documents(["the moon , 17 suns"]).n_tokens(), 2);
/// # Ok::<(), latens_corpus::ReadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Cleaning {
    /// Words that are left out.
    pub stop_words: StopWords,
    /// Whether words without letters are left out, punctuation and numbers, and single ASCII letters.
    pub letters_only: bool,
    /// Minimum number of documents that contain a word; words of fewer are not in the vocabulary.
    pub min_df: DocumentFrequency,
    /// Maximum number of documents that contain a word; words of more are left out.
    pub max_df: DocumentFrequency,
    /// Maximum number of phrases: pairs of words that occur together more often than by chance.
    pub n_phrases: usize,
    /// The words of the training documents that exceed `max_df`.
    pub(crate) frequent: BTreeSet<String>,
    /// The phrases of the training documents.
    pub(crate) phrases: Phrases,
}

impl Default for Cleaning {
    fn default() -> Cleaning {
        Cleaning {
            stop_words: StopWords::default(),
            letters_only: false,
            min_df: DocumentFrequency::ONE,
            max_df: DocumentFrequency::ALL,
            n_phrases: 0,
            frequent: BTreeSet::new(),
            phrases: Phrases::default(),
        }
    }
}

impl Cleaning {
    /// Leaves out English stop words, punctuation and numbers.
    pub fn topics() -> Cleaning {
        Cleaning { stop_words: StopWords::english(), letters_only: true, ..Cleaning::default() }
    }

    /// Whether all words are kept as they are.
    pub fn is_empty(&self) -> bool {
        let is_limited =
            (self.min_df, self.max_df) != (DocumentFrequency::ONE, DocumentFrequency::ALL);
        self.stop_words.is_empty()
            && !self.letters_only
            && !is_limited
            && self.n_phrases == 0
            && self.frequent.is_empty()
            && self.phrases.is_empty()
    }

    /// The pairs of words that are joined to phrases.
    pub fn phrases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.phrases.pairs()
    }

    /// The words of the training documents that are left out because they are in too many documents.
    pub fn frequent(&self) -> impl Iterator<Item = &str> {
        self.frequent.iter().map(String::as_str)
    }

    /// Calls `visit` with the words of a document that are left, and with its phrases.
    pub fn clean<'a>(&'a self, words: &[&'a str], mut visit: impl FnMut(&str)) {
        clean_tokens(
            words,
            |word| self.keeps(word),
            |first, second| self.phrases.joined(first, second),
            |word| {
                if !self.frequent.contains(word) {
                    visit(word);
                }
            },
        );
    }

    /// Whether a word is neither a stop word nor punctuation nor a number.
    pub(crate) fn keeps(&self, word: &str) -> bool {
        // A single ASCII letter is an initial, a variable or a bullet; other scripts have words of one character.
        let is_word = || word != NUM && word.len() > 1 && word.chars().any(char::is_alphabetic);
        !self.stop_words.contains(word) && (!self.letters_only || is_word())
    }
}

/// Leaves out tokens and joins pairs of tokens, from left to right. Tokens on both sides of one that is left
/// out are not neighbors.
pub(crate) fn clean_tokens<T: Copy>(
    tokens: &[T],
    keeps: impl Fn(T) -> bool,
    joined: impl Fn(T, T) -> Option<T>,
    mut visit: impl FnMut(T),
) {
    let mut rest = tokens;
    while let [first, others @ ..] = rest {
        rest = others;
        if !keeps(*first) {
            continue;
        }
        let pair = others.first().and_then(|second| joined(*first, *second));
        visit(pair.unwrap_or(*first));
        if pair.is_some() {
            rest = &others[1..];
        }
    }
}
