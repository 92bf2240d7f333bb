//! The training text in blocks of a few thousand tokens, and random dropping of frequent words.

use latens_corpus::{Sentences, WordId};
use latens_math::Rng;
use std::ops::Range;

/// Smallest and largest number of tokens per block.
const BLOCK_TOKENS: Range<usize> = 256..8192;
/// Approximate number of blocks of a small text, so that the learning rate decreases in small steps.
const N_BLOCKS: usize = 128;

/// Splits a text into blocks of whole sentences. Only a sentence longer than a block is split.
pub(crate) fn blocks(sentences: &Sentences) -> Vec<Range<usize>> {
    let size = (sentences.n_tokens() / N_BLOCKS).clamp(BLOCK_TOKENS.start, BLOCK_TOKENS.end);
    let (mut blocks, mut begin) = (Vec::new(), 0);
    let mut last = 0;
    for &end in &sentences.offsets()[1..] {
        let end = end as usize;
        if end - begin > size && last > begin {
            blocks.push(begin..last);
            begin = last;
        }
        while end - begin > size {
            blocks.push(begin..begin + size);
            begin += size;
        }
        last = end;
    }
    if begin < last {
        blocks.push(begin..last);
    }
    blocks
}

/// Counts each word of a text. `<eos>` is not counted.
pub(crate) fn counts(sentences: &Sentences, n_words: usize) -> Vec<u64> {
    let mut counts = vec![0; n_words];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    counts[WordId::EOS.index()] = 0;
    counts
}

/// Probability that a token of each word is kept: min(1, √(t/f) + t/f), with f the relative frequency of the word and t
/// = `subsample`, as in the original program and in gensim.
pub(crate) fn keep_probs(counts: &[u64], subsample: f64) -> Vec<f64> {
    let total: u64 = counts.iter().sum();
    let keep = |&count: &u64| {
        if subsample == 0.0 || count == 0 {
            return 1.0;
        }
        let ratio = subsample * total as f64 / count as f64;
        (ratio.sqrt() + ratio).min(1.0)
    };
    counts.iter().map(keep).collect()
}

/// Overwrites `kept` with the randomly kept words of a sentence.
#[inline(always)]
pub(crate) fn keep_some(sentence: &[WordId], probs: &[f64], rng: &mut Rng, kept: &mut Vec<u32>) {
    kept.clear();
    for word in sentence {
        let prob = probs[word.index()];
        if prob >= 1.0 || rng.uniform() < prob {
            kept.push(word.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lengths: &[usize]) -> Sentences {
        Sentences::from_words(lengths.iter().map(|&length| vec![WordId(2); length]))
    }

    #[test]
    fn blocks_cover_the_text_and_end_at_sentence_ends() {
        let lengths: Vec<usize> = (0..3000).map(|i| i % 40).collect();
        let sentences = text(&lengths);
        let blocks = blocks(&sentences);
        let mut end = 0;
        for block in &blocks {
            assert_eq!(block.start, end);
            assert!(block.len() <= sentences.n_tokens() / N_BLOCKS);
            assert!(block.len() > 400 || block.end == sentences.n_tokens());
            assert_eq!(sentences.tokens()[block.end - 1], WordId::EOS);
            end = block.end;
        }
        assert_eq!(end, sentences.n_tokens());
    }

    #[test]
    fn only_sentences_longer_than_a_block_are_split() {
        let lengths = |lengths: &[usize]| -> Vec<usize> {
            blocks(&text(lengths)).iter().map(ExactSizeIterator::len).collect()
        };
        assert_eq!(lengths(&[99, 99, 99]), [200, 100]);
        assert_eq!(lengths(&[99, 599, 99]), [100, 256, 256, 188]);
        assert_eq!(lengths(&[255, 256]), [256, 256, 1]);
        assert!(lengths(&[]).is_empty());
    }

    #[test]
    fn eos_is_not_counted() {
        let sentences = Sentences::from_words([&[WordId(2), WordId(2), WordId(0)][..], &[]]);
        assert_eq!(counts(&sentences, 4), [1, 0, 2, 0]);
    }

    #[test]
    fn tokens_are_kept_with_the_probability_of_the_formula() {
        let counts = [0, 0, 90_000, 9_990, 10];
        let probs = keep_probs(&counts, 1e-2);
        let expected = |f: f64| (0.01 / f).sqrt() + 0.01 / f;
        assert!((probs[2] - expected(0.9)).abs() < 1e-12);
        assert!((probs[3] - expected(0.0999)).abs() < 1e-12);
        assert_eq!((probs[0], probs[4]), (1.0, 1.0));
        assert!(keep_probs(&counts, 0.0).iter().all(|&p| p == 1.0));
        let (mut rng, mut kept) = (Rng::new(3), Vec::new());
        keep_some(&vec![WordId(2); 90_000], &probs, &mut rng, &mut kept);
        let (mean, p) = (90_000.0 * probs[2], probs[2]);
        let allowed = 4.0 * (90_000.0 * p * (1.0 - p)).sqrt();
        assert!((kept.len() as f64 - mean).abs() < allowed);
    }
}
