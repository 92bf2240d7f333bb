use latens_corpus::{Sentences, WordId};
use latens_counts::runs::RunCounter;
use latens_counts::{Budget, CountError};

/// How often words stand anywhere, and right after each other.
///
/// Sentences of a file form one stream, as the classic program reads a text; ends of sentences are no
/// words, and nothing crosses the end of a file.
pub(crate) struct Bigrams {
    pub(crate) frequency: Vec<u64>,
    /// How many tokens there are, ends of sentences aside.
    pub(crate) n_tokens: u64,
    after: Neighbours,
    before: Neighbours,
}

/// For every word those that stand next to it on one side, and how often.
struct Neighbours {
    offsets: Vec<usize>,
    words: Vec<(u32, u64)>,
}

impl Bigrams {
    pub(crate) fn of(
        sentences: &Sentences,
        n_words: usize,
        budget: &Budget,
    ) -> Result<Bigrams, CountError> {
        const SHARD: usize = 1 << 24;
        let mut frequency = vec![0u64; n_words];
        let mut pairs = RunCounter::new(budget);
        for file in sentences.segments() {
            let mut last: Option<u32> = None;
            for shard in file.chunks(SHARD) {
                let mut keys: Vec<u64> = Vec::with_capacity(shard.len());
                for word in shard.iter().filter(|&&word| word != WordId::EOS).map(|word| word.0) {
                    frequency[word as usize] += 1;
                    keys.extend(last.map(|last| u64::from(last) << 32 | u64::from(word)));
                    last = Some(word);
                }
                pairs.push_keys(keys)?;
            }
        }
        let pairs = pairs.finish()?.collect::<Result<Vec<(u64, u64)>, CountError>>()?;
        let after = pairs.iter().map(|&(key, count)| ((key >> 32) as u32, key as u32, count));
        let after = Neighbours::of_sorted(n_words, after);
        let mut swapped: Vec<(u64, u64)> =
            pairs.into_iter().map(|(key, count)| (key.rotate_left(32), count)).collect();
        swapped.sort_unstable();
        let before = swapped.iter().map(|&(key, count)| ((key >> 32) as u32, key as u32, count));
        let before = Neighbours::of_sorted(n_words, before);
        let n_tokens = frequency.iter().sum();
        Ok(Bigrams { frequency, n_tokens, after, before })
    }

    /// The words that stand right after `word`, and how often.
    pub(crate) fn after(&self, word: u32) -> &[(u32, u64)] {
        self.after.of(word)
    }

    /// The words that stand right before `word`, and how often.
    pub(crate) fn before(&self, word: u32) -> &[(u32, u64)] {
        self.before.of(word)
    }
}

impl Neighbours {
    fn of_sorted(n_words: usize, pairs: impl Iterator<Item = (u32, u32, u64)>) -> Neighbours {
        let mut offsets = vec![0; n_words + 1];
        let mut words = Vec::new();
        for (word, neighbour, count) in pairs {
            offsets[word as usize + 1] += 1;
            words.push((neighbour, count));
        }
        for word in 0..n_words {
            offsets[word + 1] += offsets[word];
        }
        Neighbours { offsets, words }
    }

    fn of(&self, word: u32) -> &[(u32, u64)] {
        &self.words[self.offsets[word as usize]..self.offsets[word as usize + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_neighbours_across_sentences() {
        let [a, b] = [WordId(2), WordId(3)];
        let sentences = Sentences::from_words([vec![a, b], vec![], vec![a, b, b]]);
        let bigrams = Bigrams::of(&sentences, 4, &Budget::default()).unwrap();
        assert_eq!(bigrams.frequency, [0, 0, 2, 3]);
        assert_eq!(bigrams.n_tokens, 5);
        assert_eq!(bigrams.after(2), [(3, 2)]);
        assert_eq!(bigrams.after(3), [(2, 1), (3, 1)]);
        assert_eq!(bigrams.before(3), [(2, 2), (3, 1)]);
        assert!(bigrams.before(0).is_empty());
    }
}
