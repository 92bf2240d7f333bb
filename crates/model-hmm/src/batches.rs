//! Sentences in mini-batches.

use crate::tables::Batch;
use latens_corpus::Sentences;
use latens_math::Rng;

/// What is learned from: sentences, and for a model of tags a tag for each word of each sentence.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a> {
    pub(crate) sentences: &'a Sentences,
    pub(crate) tags: Option<&'a [Vec<u32>]>,
}

impl<'a> Data<'a> {
    pub(crate) fn batch(&self, idxs: &[u32]) -> Batch<'a> {
        let sentences = idxs.iter().map(|&idx| self.sentences.get(idx as usize)).collect();
        let tags = self
            .tags
            .map_or(vec![], |tags| idxs.iter().map(|&idx| &tags[idx as usize][..]).collect());
        Batch { sentences, tags }
    }

    /// All sentences in batches, longest first.
    pub(crate) fn in_batches(&self, batch_tokens: usize) -> Vec<Batch<'a>> {
        let mut idxs: Vec<u32> = (0..self.sentences.len() as u32).collect();
        idxs.sort_by_key(|&idx| std::cmp::Reverse(self.sentences.get(idx as usize).len()));
        pack(self.sentences, &idxs, batch_tokens).iter().map(|idxs| self.batch(idxs)).collect()
    }

    /// The same without tags.
    pub(crate) fn untagged(&self, batch_tokens: usize) -> Vec<Batch<'a>> {
        Data { tags: None, ..*self }.in_batches(batch_tokens)
    }
}

/// The mini-batches of one epoch: sentences of about the same length together, so that their steps can be
/// done side by side; what comes together, and in which order, is drawn.
pub(crate) fn shuffled(sentences: &Sentences, batch_tokens: usize, rng: &mut Rng) -> Vec<Vec<u32>> {
    /// How many tokens two lengths may differ and still trade places.
    const BLUR: f64 = 3.0;
    let mut idxs: Vec<(f64, u32)> = (0..sentences.len())
        .map(|idx| (sentences.get(idx).len() as f64 + rng.uniform() * BLUR, idx as u32))
        .collect();
    idxs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let idxs: Vec<u32> = idxs.into_iter().map(|(_, idx)| idx).collect();
    let mut batches = pack(sentences, &idxs, batch_tokens);
    rng.shuffle(&mut batches);
    batches
}

/// Sentences in order, as many together as have at most `batch_tokens` tokens, but at least one.
fn pack(sentences: &Sentences, idxs: &[u32], batch_tokens: usize) -> Vec<Vec<u32>> {
    let mut batches: Vec<Vec<u32>> = Vec::new();
    let mut n_tokens = usize::MAX;
    for &idx in idxs {
        let len = sentences.get(idx as usize).len();
        if n_tokens.saturating_add(len) > batch_tokens {
            batches.push(Vec::new());
            n_tokens = 0;
        }
        batches.last_mut().expect("one was just made").push(idx);
        n_tokens += len;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_sentence_comes_once_an_epoch() {
        let corpus = latens_testkit::zipfian_corpus(50, 200, 1);
        let sentences = &corpus.sentences;
        for batch_tokens in [1, 40, 1 << 20] {
            let batches = shuffled(sentences, batch_tokens, &mut Rng::new(1));
            let idxs: BTreeSet<u32> = batches.iter().flatten().copied().collect();
            assert_eq!(idxs.len(), sentences.len());
            assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), sentences.len());
            for batch in &batches {
                let n: usize = batch.iter().map(|&idx| sentences.get(idx as usize).len()).sum();
                assert!(n <= batch_tokens || batch.len() == 1);
            }
        }
        let again = shuffled(sentences, 40, &mut Rng::new(1));
        assert_eq!(shuffled(sentences, 40, &mut Rng::new(1)), again);
        assert_ne!(shuffled(sentences, 40, &mut Rng::new(2)), again);
    }
}
