use crate::word::WordId;
use latens_store::StringTable;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

/// How [`WordId::UNK`] is written. The same word in a text is the unknown word.
pub const UNK: &str = "<unk>";
/// How [`WordId::EOS`] is written. The same word in a text is *not* the end of a sentence: it is
/// read as unknown.
pub const EOS: &str = "<eos>";

/// Words and their numbers, most frequent first; ids 0 and 1 are `<unk>` and `<eos>`.
///
/// Words of equal frequency are in the order of their letters, so that the same text gives the same
/// vocabulary whatever the order in which its parts were read.
#[derive(Clone, Debug)]
pub struct Vocab {
    strings: StringTable,
    counts: Vec<u64>,
}

/// Which of the words seen a vocabulary keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VocabLimits {
    /// Words seen fewer times become `<unk>`.
    pub min_count: u64,
    /// The most words to keep, `<unk>` and `<eos>` among them; 0 keeps all.
    pub max_vocab: usize,
}

impl Default for VocabLimits {
    fn default() -> Self {
        VocabLimits { min_count: 1, max_vocab: 0 }
    }
}

/// A list of words that is no vocabulary.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VocabError {
    /// The first two words must be `<unk>` and `<eos>`.
    #[error("a vocabulary begins with `<unk>` and `<eos>`, this one with {found:?}")]
    SpecialWords {
        /// What stood there.
        found: Vec<String>,
    },
    /// A word occurs twice.
    #[error("the word `{word}` occurs twice in the vocabulary")]
    Twice {
        /// The word.
        word: String,
    },
    /// The letters are no UTF-8, or words end outside them.
    #[error("the letters of the vocabulary are damaged")]
    Letters,
    /// There are not as many counts as words.
    #[error("a vocabulary of {words} words has {counts} counts")]
    Counts {
        /// How many words there are.
        words: usize,
        /// How many counts there are.
        counts: usize,
    },
}

impl Vocab {
    /// A vocabulary of the words in `seen`, with the counts of what became `<unk>` added to it.
    ///
    /// `<unk>` and `<eos>` may be in `seen`; they are kept whatever the limits say.
    pub fn from_counts<'a>(
        seen: impl IntoIterator<Item = (&'a str, u64)>,
        limits: &VocabLimits,
    ) -> Vocab {
        let (mut unk, mut eos) = (0, 0);
        let mut words = Vec::new();
        for (word, count) in seen {
            match word {
                UNK => unk += count,
                EOS => eos += count,
                _ => words.push((word, count)),
            }
        }
        words.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let room = match limits.max_vocab {
            0 => usize::MAX,
            max => max.saturating_sub(2),
        };
        let frequent = words.partition_point(|&(_, count)| count >= limits.min_count);
        let (kept, dropped) = words.split_at(frequent.min(room));
        unk += dropped.iter().map(|&(_, count)| count).sum::<u64>();
        let kept = [(UNK, unk), (EOS, eos)].into_iter().chain(kept.iter().copied());
        let (strings, counts): (Vec<&str>, Vec<u64>) = kept.unzip();
        Vocab { strings: strings.into_iter().collect(), counts }
    }

    /// A vocabulary from its words and counts in the order of their ids, as a model file has them.
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

    /// A vocabulary from the letters of all words and the place where each word ends among them, as
    /// files have it.
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

    /// How many words there are, `<unk>` and `<eos>` among them.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there is no word but `<unk>` and `<eos>`.
    pub fn is_empty(&self) -> bool {
        self.len() <= 2
    }

    /// The id of a word of a text, [`WordId::UNK`] for a word that is not here.
    #[inline]
    pub fn id(&self, word: &str) -> WordId {
        self.get(word).unwrap_or(WordId::UNK)
    }

    /// The id of a word of a text, if it is here. The letters `<eos>` in a text are no word.
    #[inline]
    pub fn get(&self, word: &str) -> Option<WordId> {
        self.strings.find(word).map(WordId).filter(|&id| id != WordId::EOS)
    }

    /// The letters of a word.
    ///
    /// # Panics
    /// If the id is of another, larger vocabulary.
    pub fn word(&self, id: WordId) -> &str {
        self.strings.get(id.0)
    }

    /// How often the word was seen when the vocabulary was made.
    pub fn count(&self, id: WordId) -> u64 {
        self.counts[id.index()]
    }

    /// All counts, in the order of the ids.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// All words, in the order of their ids.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &str> {
        self.strings.iter()
    }

    /// A number that two vocabularies share if, and in practice only if, they have the same words
    /// with the same ids. Counts play no part.
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
    fn words_are_sorted_by_frequency_then_by_letters() {
        let vocab = Vocab::from_counts(SEEN, &VocabLimits::default());
        assert_eq!(vocab.words().collect::<Vec<_>>(), [UNK, EOS, "d", "a", "b", "c"]);
        assert_eq!(vocab.counts(), [2, 0, 9, 3, 3, 1]);
    }

    #[test]
    fn words_beyond_the_limits_are_counted_as_unknown() {
        let rare = VocabLimits { min_count: 2, ..VocabLimits::default() };
        assert_eq!(Vocab::from_counts(SEEN, &rare).counts(), [3, 0, 9, 3, 3]);
        let small = VocabLimits { max_vocab: 3, ..VocabLimits::default() };
        assert_eq!(Vocab::from_counts(SEEN, &small).counts(), [9, 0, 9]);
    }

    #[test]
    fn the_letters_eos_in_a_text_are_no_end_of_sentence() {
        let vocab = Vocab::from_counts(SEEN, &VocabLimits::default());
        assert_eq!(vocab.id(EOS), WordId::UNK);
        assert_eq!(vocab.id(UNK), WordId::UNK);
        assert_eq!(vocab.id("never seen"), WordId::UNK);
    }

    #[test]
    fn parts_that_are_no_vocabulary_are_refused() {
        let twice = Vocab::from_parts([UNK, EOS, "a", "a"], vec![0; 4]).unwrap_err();
        assert_eq!(twice, VocabError::Twice { word: "a".into() });
        assert!(Vocab::from_parts(["a", EOS], vec![0; 2]).is_err());
        assert!(Vocab::from_parts([UNK, EOS], vec![0; 3]).is_err());
    }

    #[test]
    fn the_fingerprint_depends_on_words_and_order_alone() {
        let of = |words: [&str; 3], n| Vocab::from_parts(words, vec![n; 3]).unwrap().fingerprint();
        assert_eq!(of([UNK, EOS, "a"], 1), of([UNK, EOS, "a"], 2));
        assert_ne!(of([UNK, EOS, "a"], 1), of([UNK, EOS, "b"], 1));
        let joined = Vocab::from_parts([UNK, EOS, "a\nb"], vec![1; 3]).unwrap();
        let apart = Vocab::from_parts([UNK, EOS, "a", "b"], vec![1; 4]).unwrap();
        assert_ne!(joined.fingerprint(), apart.fingerprint());
    }
}
