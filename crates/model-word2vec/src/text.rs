//! The text as workers take it: in blocks of some thousand tokens, from each of which frequent words are left out
//! now and then.

use latens_corpus::{Sentences, WordId};
use latens_math::Rng;
use std::ops::Range;

/// How many tokens a block has at most, and how many a small text's have at least.
const BLOCK_TOKENS: Range<usize> = 256..8192;
/// A small text has about so many blocks, so that the learning rate falls in small steps.
const N_BLOCKS: usize = 128;

/// Cuts a text into blocks of whole sentences. Only a sentence that is longer than a block is cut.
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

/// How often each word stands in a text. Ends of sentences are no words.
pub(crate) fn counts(sentences: &Sentences, n_words: usize) -> Vec<u64> {
    let mut counts = vec![0; n_words];
    sentences.tokens().iter().for_each(|word| counts[word.index()] += 1);
    counts[WordId::EOS.index()] = 0;
    counts
}

/// With what probability a token of each word is kept (the original program, and gensim): √(t/f) + t/f, at most 1,
/// for a word that is a share f of the text and a `subsample` of t.
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

/// The words of a sentence that are kept, written to `kept`.
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
    fn blocks_are_the_text_cut_at_ends_of_sentences() {
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
    fn only_sentences_longer_than_a_block_are_cut() {
        let lengths = |lengths: &[usize]| -> Vec<usize> {
            blocks(&text(lengths)).iter().map(ExactSizeIterator::len).collect()
        };
        assert_eq!(lengths(&[99, 99, 99]), [200, 100]);
        assert_eq!(lengths(&[99, 599, 99]), [100, 256, 256, 188]);
        assert_eq!(lengths(&[255, 256]), [256, 256, 1]);
        assert!(lengths(&[]).is_empty());
    }

    #[test]
    fn ends_of_sentences_are_not_counted() {
        let sentences = Sentences::from_words([&[WordId(2), WordId(2), WordId(0)][..], &[]]);
        assert_eq!(counts(&sentences, 4), [1, 0, 2, 0]);
    }

    #[test]
    fn tokens_are_kept_as_often_as_the_formula_says() {
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
