//! A batch of sentences.

use latens_corpus::WordId;
use std::cmp::Reverse;

/// Sentences that are processed together, optionally with one tag per word (but none for `<eos>`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch<'a> {
    pub(crate) sentences: Vec<&'a [WordId]>,
    pub(crate) tags: Vec<&'a [u32]>,
}

impl Batch<'_> {
    /// The number of tokens of all sentences.
    pub(crate) fn n_tokens(&self) -> usize {
        self.sentences.iter().map(|sentence| sentence.len()).sum()
    }
}

/// Some sentences of a batch, whose recursion runs on one thread unless they are all of it.
pub(crate) struct Part<'a> {
    /// Their indices in the batch.
    pub(crate) sentences: Vec<usize>,
    pub(crate) batch: Batch<'a>,
}

impl<'a> Batch<'a> {
    /// Splits a batch into at most `n` parts with about as many tokens each, and sentences of nearly the same length.
    pub(crate) fn parts(&self, n: usize) -> Vec<Part<'a>> {
        if n <= 1 {
            let sentences = (0..self.sentences.len()).collect();
            return vec![Part { sentences, batch: self.clone() }];
        }
        let mut order: Vec<usize> = (0..self.sentences.len()).collect();
        order.sort_by_key(|&sentence| Reverse(self.sentences[sentence].len()));
        let (mut rest, mut n_before) = (order.into_iter(), 0);
        let n_tokens = self.n_tokens();
        let part = |part: usize| {
            let mut sentences = vec![];
            while n_before < part * n_tokens / n || part == n {
                let Some(sentence) = rest.next() else { break };
                n_before += self.sentences[sentence].len();
                sentences.push(sentence);
            }
            let tagged = if self.tags.is_empty() { &[] } else { &sentences[..] };
            let batch = Batch {
                sentences: sentences.iter().map(|&sentence| self.sentences[sentence]).collect(),
                tags: tagged.iter().map(|&sentence| self.tags[sentence]).collect(),
            };
            Part { sentences, batch }
        };
        (1..=n).map(part).filter(|part| !part.sentences.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_is_in_one_part_with_its_tags() {
        let words: Vec<WordId> = (0..40).map(WordId).collect();
        let tags: Vec<u32> = (0..40).collect();
        // Sentences and tags of these lengths, from different places.
        let lens = [3, 0, 7, 2, 2, 9, 1, 0, 4];
        let all = Batch {
            sentences: lens.iter().enumerate().map(|(i, &n)| &words[i..i + n]).collect(),
            tags: lens.iter().enumerate().map(|(i, &n)| &tags[i..i + n]).collect(),
        };
        for n in [1, 2, 3, 30] {
            let parts = all.parts(n);
            assert!(parts.len() <= n && (n > 3 || parts.len() == n));
            let mut found: Vec<usize> = vec![];
            for part in &parts {
                assert_eq!(part.sentences.len(), part.batch.sentences.len());
                for (i, &s) in part.sentences.iter().enumerate() {
                    assert_eq!(part.batch.sentences[i], all.sentences[s]);
                    assert_eq!(part.batch.tags[i], all.tags[s]);
                }
                found.extend(&part.sentences);
            }
            found.sort_unstable();
            assert!(found.into_iter().eq(0..lens.len()));
        }
        let without = Batch { tags: vec![], ..all };
        assert!(without.parts(3).iter().all(|part| part.batch.tags.is_empty()));
        assert!(Batch::default().parts(3).is_empty());
    }
}
