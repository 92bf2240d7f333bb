//! Estimates of the number of distinct n-grams or pairs of a text, before they are counted.

use crate::lags::lag_counts::Boundary;
use latens_corpus::{Sentences, WordId};
use std::collections::HashSet;

/// Estimates the number of distinct n-grams of `order` words that end at a token of a text. Positions before the
/// start of a sentence count as one more word. Exact below 65,536 n-grams.
pub fn distinct_ngrams(sentences: &Sentences, order: usize) -> f64 {
    let mut distinct = Distinct::default();
    for sentence in sentences.iter() {
        for end in 1..=sentence.len() {
            let begin = end.saturating_sub(order);
            distinct.add(hash(&sentence[begin..end]));
        }
    }
    distinct.estimate()
}

/// Estimates the number of distinct pairs of words `lag` tokens apart. Exact below 65,536 pairs.
pub fn distinct_pairs(sentences: &Sentences, lag: usize, boundary: Boundary) -> f64 {
    let mut distinct = Distinct::default();
    let mut add = |text: &[WordId]| {
        let later = text.get(lag..).unwrap_or_default();
        text.iter().zip(later).for_each(|(&a, &b)| distinct.add(hash(&[a, b])));
    };
    match boundary {
        Boundary::Stream => sentences.segments().for_each(&mut add),
        Boundary::Sentence => sentences.iter().for_each(&mut add),
    }
    distinct.estimate()
}

/// Adaptive sampling (Flajolet 1990): keeps the distinct hashes that end in `n_zeros` zeros, and asks for one more
/// zero whenever there are too many. Memory is bounded, and the standard error is below 1 %.
#[derive(Default)]
struct Distinct {
    kept: HashSet<u64>,
    n_zeros: u32,
}

/// Largest number of kept hashes.
const MAX_KEPT: usize = 1 << 16;

impl Distinct {
    fn add(&mut self, hash: u64) {
        if hash.trailing_zeros() < self.n_zeros {
            return;
        }
        self.kept.insert(hash);
        while self.kept.len() > MAX_KEPT {
            self.n_zeros += 1;
            self.kept.retain(|hash| hash.trailing_zeros() >= self.n_zeros);
        }
    }

    fn estimate(&self) -> f64 {
        self.kept.len() as f64 * 2f64.powi(self.n_zeros as i32)
    }
}

/// A hash of some words whose low bits are well mixed (the finalizer of SplitMix64).
fn hash(words: &[WordId]) -> u64 {
    let mix = |hash: u64, word: &WordId| {
        let x = (hash ^ u64::from(word.0)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    words.iter().fold(words.len() as u64, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(lists: &[&[u32]]) -> Sentences {
        // `from_words` adds the end of the sentence, which is word 1.
        Sentences::from_words(
            lists.iter().map(|list| list.iter().map(|&id| WordId(id)).collect::<Vec<_>>()),
        )
    }

    #[test]
    fn small_numbers_are_exact() {
        let text = sentences(&[&[2, 3, 2, 3], &[2, 3]]);
        // 2, 3 and the end; `<s> 2`, `2 3`, `3 2`, `3 </s>`.
        assert_eq!(distinct_ngrams(&text, 1), 3.0);
        assert_eq!(distinct_ngrams(&text, 2), 4.0);
        // The text is 2 3 2 3 1 2 3 1.
        assert_eq!(distinct_pairs(&text, 1, Boundary::Stream), 4.0);
        assert_eq!(distinct_pairs(&text, 1, Boundary::Sentence), 3.0);
        assert_eq!(distinct_pairs(&text, 2, Boundary::Sentence), 3.0);
        assert_eq!(distinct_pairs(&text, 7, Boundary::Stream), 1.0);
        assert_eq!(distinct_pairs(&text, 99, Boundary::Stream), 0.0);
    }

    #[test]
    fn large_numbers_are_estimated_within_three_percent() {
        let n = 1_000_000;
        let words: Vec<u32> = (2..n + 2).chain(2..n + 2).collect();
        let text = sentences(&[&words]);
        let estimate = distinct_ngrams(&text, 1);
        assert!((estimate / f64::from(n + 1) - 1.0).abs() < 0.03, "{estimate}");
    }
}
