use crate::words::word_id::WordId;
use latens_store::StringTable;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

/// Spelling of [`WordId::UNK`]. The same word in a text is the unknown word.
pub const UNK: &str = "<unk>";
/// Spelling of [`WordId::EOS`]. The same word in a text is *not* the end of a sentence but an unknown
/// word.
pub const EOS: &str = "<eos>";

/// Words, their ids and their counts.
///
/// Ids 0 and 1 are `<unk>` and `<eos>`. A learned vocabulary orders the other words by descending
/// frequency. Words of equal frequency are sorted by their bytes, so the same text gives the same
/// vocabulary in whatever order its parts are read.
#[derive(Clone, Debug)]
pub struct Vocab {
    strings: StringTable,
    counts: Vec<u64>,
}

/// Limits on the words that a learned vocabulary keeps.
///
/// Exhaustive: a word is kept by its count and its rank. Other rules are in [`Cleaning`](crate::Cleaning).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VocabLimits {
    /// Minimum count of a word; rarer words become `<unk>`.
    pub min_count: u64,
    /// Maximum number of words, including `<unk>` and `<eos>`; 0 means no limit.
    pub max_vocab: usize,
}

impl Default for VocabLimits {
    fn default() -> Self {
        VocabLimits { min_count: 1, max_vocab: 0 }
    }
}

/// A list of words is not a valid vocabulary.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VocabError {
    /// The first two words are not `<unk>` and `<eos>`.
    #[error("a vocabulary must start with `<unk>` and `<eos>`, got {found:?}")]
    SpecialWords {
        /// The first two words.
        found: Vec<String>,
    },
    /// A word occurs twice.
    #[error("the word `{word}` occurs twice in the vocabulary")]
    Twice {
        /// The word.
        word: String,
    },
    /// The words are not UTF-8, or their text does not match their offsets.
    #[error("the words of the vocabulary are damaged: invalid UTF-8 or offsets")]
    Letters,
    /// The number of counts differs from the number of words.
    #[error("the vocabulary has {words} words but {counts} counts")]
    Counts {
        /// Number of words.
        words: usize,
        /// Number of counts.
        counts: usize,
    },
}

impl Vocab {
    /// Learns a vocabulary from the words `seen` and their counts. The count of `<unk>` includes all
    /// words outside the limits.
    ///
    /// Counts of a word that is in `seen` several times are added up, before the limits apply. `<unk>` and
    /// `<eos>` may be in `seen`; the limits do not apply to them.
    pub fn from_counts<'a>(
        seen: impl IntoIterator<Item = (&'a str, u64)>,
        limits: &VocabLimits,
    ) -> Vocab {
        let mut sums: HashMap<&str, u64> = HashMap::new();
        for (word, count) in seen {
            let sum = sums.entry(word).or_default();
            *sum = sum.saturating_add(count);
        }
        let mut unk = sums.remove(UNK).unwrap_or(0);
        let eos = sums.remove(EOS).unwrap_or(0);
        let mut words: Vec<(&str, u64)> = sums.into_iter().collect();
        words.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let room = match limits.max_vocab {
            0 => usize::MAX,
            max => max.saturating_sub(2),
        };
        let frequent = words.partition_point(|&(_, count)| count >= limits.min_count);
        let (kept, dropped) = words.split_at(frequent.min(room));
        unk = dropped.iter().fold(unk, |sum, &(_, count)| sum.saturating_add(count));
        let kept = [(UNK, unk), (EOS, eos)].into_iter().chain(kept.iter().copied());
        let (strings, counts): (Vec<&str>, Vec<u64>) = kept.unzip();
        Vocab { strings: strings.into_iter().collect(), counts }
    }

    /// Creates a vocabulary from words and counts in the order of their ids, as model files store them.
    pub fn from_parts<S: AsRef<str>>(
        words: impl IntoIterator<Item = S>,
        counts: Vec<u64>,
    ) -> Result<Vocab, VocabError> {
        let mut strings = StringTable::default();
        for (i, word) in words.into_iter().enumerate() {
            if strings.intern(word.as_ref()) as usize != i {
                return Err(VocabError::Twice { word: word.as_ref().to_owned() });
            }
        }
        if strings.find(UNK) != Some(WordId::UNK.0) || strings.find(EOS) != Some(WordId::EOS.0) {
            let found = strings.iter().take(2).map(str::to_owned).collect();
            return Err(VocabError::SpecialWords { found });
        }
        if counts.len() != strings.len() {
            return Err(VocabError::Counts { words: strings.len(), counts: counts.len() });
        }
        Ok(Vocab { strings, counts })
    }

    /// Creates a vocabulary from the concatenated text of all words and the end of each word in it, as
    /// files store them.
    pub fn from_arrays(
        letters: &[u8],
        ends: &[u64],
        counts: Vec<u64>,
    ) -> Result<Vocab, VocabError> {
        let letters = std::str::from_utf8(letters).map_err(|_| VocabError::Letters)?;
        let mut words = Vec::with_capacity(ends.len());
        let mut begin = 0;
        for &end in ends {
            let end = usize::try_from(end).map_err(|_| VocabError::Letters)?;
            words.push(letters.get(begin..end).ok_or(VocabError::Letters)?);
            begin = end;
        }
        if begin != letters.len() {
            return Err(VocabError::Letters);
        }
        Vocab::from_parts(words, counts)
    }

    /// Number of words, including `<unk>` and `<eos>`.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there are no words besides `<unk>` and `<eos>`.
    pub fn is_empty(&self) -> bool {
        self.len() <= 2
    }

    /// Returns the id of a word, or [`WordId::UNK`] if the vocabulary lacks it. For `<eos>`, which does not occur in texts, use
    /// [`WordId::EOS`].
    #[inline]
    pub fn id(&self, word: &str) -> WordId {
        self.get(word).unwrap_or(WordId::UNK)
    }

    /// Returns the id of a word, or `None` if the vocabulary lacks it. The string `<eos>` in a text is
    /// not the end-of-sentence token, so its result is `None`.
    #[inline]
    pub fn get(&self, word: &str) -> Option<WordId> {
        self.strings.find(word).map(WordId).filter(|&id| id != WordId::EOS)
    }

    /// Returns the text of a word.
    ///
    /// # Panics
    /// If the id comes from a larger vocabulary.
    pub fn word(&self, id: WordId) -> &str {
        self.strings.get(id.0)
    }

    /// Count of a word in the text that the vocabulary was learned from.
    ///
    /// # Panics
    /// If the id comes from a larger vocabulary.
    pub fn count(&self, id: WordId) -> u64 {
        self.counts[id.index()]
    }

    /// All counts in the order of ids.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Iterates over all words in the order of their ids.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &str> {
        self.strings.iter()
    }

    /// Hash of all words in the order of their ids. Vocabularies with equal fingerprints are equal in
    /// practice, apart from their counts.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3::new();
        for word in self.words() {
            hash.update(&(word.len() as u64).to_le_bytes());
            hash.update(word.as_bytes());
        }
        hash.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: [(&str, u64); 5] = [("b", 3), ("a", 3), ("c", 1), (UNK, 2), ("d", 9)];

    #[test]
    fn words_are_sorted_by_frequency_then_by_bytes() {
        let vocab = Vocab::from_counts(SEEN, &VocabLimits::default());
        assert_eq!(vocab.words().collect::<Vec<_>>(), [UNK, EOS, "d", "a", "b", "c"]);
        assert_eq!(vocab.counts(), [2, 0, 9, 3, 3, 1]);
    }

    #[test]
    fn words_outside_the_limits_are_counted_as_unknown() {
        let rare = VocabLimits { min_count: 2, ..VocabLimits::default() };
        assert_eq!(Vocab::from_counts(SEEN, &rare).counts(), [3, 0, 9, 3, 3]);
        let small = VocabLimits { max_vocab: 3, ..VocabLimits::default() };
        assert_eq!(Vocab::from_counts(SEEN, &small).counts(), [9, 0, 9]);
    }

    #[test]
    fn counts_of_a_repeated_word_are_added_up() {
        let seen = [("a", 2), ("b", 3), ("a", 2), (EOS, 1), ("c", 1), (EOS, 1)];
        let vocab = Vocab::from_counts(seen, &VocabLimits::default());
        assert_eq!(vocab.words().collect::<Vec<_>>(), [UNK, EOS, "a", "b", "c"]);
        assert_eq!(vocab.counts(), [0, 2, 4, 3, 1]);
        let limits = VocabLimits { min_count: 4, ..VocabLimits::default() };
        assert_eq!(Vocab::from_counts(seen, &limits).counts(), [4, 2, 4]);
    }

    #[test]
    fn the_string_eos_in_a_text_is_not_the_end_of_a_sentence() {
        let vocab = Vocab::from_counts(SEEN, &VocabLimits::default());
        assert_eq!(vocab.id(EOS), WordId::UNK);
        assert_eq!(vocab.id(UNK), WordId::UNK);
        assert_eq!(vocab.id("never seen"), WordId::UNK);
    }

    #[test]
    fn invalid_word_lists_are_refused() {
        let twice = Vocab::from_parts([UNK, EOS, "a", "a"], vec![0; 4]).unwrap_err();
        assert_eq!(twice, VocabError::Twice { word: "a".into() });
        assert!(Vocab::from_parts(["a", EOS], vec![0; 2]).is_err());
        assert!(Vocab::from_parts([UNK, EOS], vec![0; 3]).is_err());
    }

    #[test]
    fn the_fingerprint_depends_only_on_words_and_their_order() {
        let of = |words: [&str; 3], n| Vocab::from_parts(words, vec![n; 3]).unwrap().fingerprint();
        assert_eq!(of([UNK, EOS, "a"], 1), of([UNK, EOS, "a"], 2));
        assert_ne!(of([UNK, EOS, "a"], 1), of([UNK, EOS, "b"], 1));
        let joined = Vocab::from_parts([UNK, EOS, "a\nb"], vec![1; 3]).unwrap();
        let apart = Vocab::from_parts([UNK, EOS, "a", "b"], vec![1; 4]).unwrap();
        assert_ne!(joined.fingerprint(), apart.fingerprint());
    }
}
