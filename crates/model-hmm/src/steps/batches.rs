//! Divides text into mini-batches.

use crate::recursion::batch::Batch;
use latens_corpus::{Sentences, WordId};
use latens_math::Rng;

/// Sentences, and for a model with tags one tag per word.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a> {
    pub(crate) sentences: &'a Sentences,
    pub(crate) tags: Option<&'a [Vec<u32>]>,
    /// Approximate number of tokens per sequence of running text; `None` if every sentence is a sequence.
    pub(crate) run_tokens: Option<usize>,
}

/// Text as a set of independent sequences.
pub(crate) struct Sequences<'a> {
    words: Vec<&'a [WordId]>,
    tags: Option<&'a [Vec<u32>]>,
}

impl<'a> Data<'a> {
    /// Divides the text at fixed positions.
    pub(crate) fn sequences(&self) -> Sequences<'a> {
        self.sequences_after(self.run_tokens)
    }

    /// Divides the text; draws the length of the first run, so that the boundaries differ between epochs.
    pub(crate) fn drawn_sequences(&self, rng: &mut Rng) -> Sequences<'a> {
        self.sequences_after(self.run_tokens.map(|n| 1 + (rng.uniform() * n as f64) as usize))
    }

    fn sequences_after(&self, first_tokens: Option<usize>) -> Sequences<'a> {
        let words = match (self.run_tokens, first_tokens) {
            (Some(n), Some(first)) => runs(self.sentences, first, n),
            _ => self.sentences.iter().collect(),
        };
        Sequences { words, tags: self.tags }
    }

    /// Divides the text into batches for scoring, without tags.
    pub(crate) fn scored_batches(&self) -> Vec<Batch<'a>> {
        /// Approximate number of tokens per batch.
        const BATCH_TOKENS: usize = 4096;
        /// Approximate number of tokens per run of sentences: enough that the missing context at its start hardly
        /// matters.
        const RUN_TOKENS: usize = 1024;
        let run_tokens = self.run_tokens.map(|_| RUN_TOKENS);
        Data { tags: None, run_tokens, ..*self }.sequences().in_batches(BATCH_TOKENS)
    }
}

impl<'a> Sequences<'a> {
    /// A batch of some sequences.
    pub(crate) fn batch(&self, idxs: &[u32]) -> Batch<'a> {
        let sentences = idxs.iter().map(|&idx| self.words[idx as usize]).collect();
        let tags = self
            .tags
            .map_or(vec![], |tags| idxs.iter().map(|&idx| &tags[idx as usize][..]).collect());
        Batch { sentences, tags }
    }

    /// Divides all sequences into batches, longest first.
    pub(crate) fn in_batches(&self, batch_tokens: usize) -> Vec<Batch<'a>> {
        let mut idxs: Vec<u32> = (0..self.words.len() as u32).collect();
        idxs.sort_by_key(|&idx| std::cmp::Reverse(self.words[idx as usize].len()));
        pack(&idxs, |idx| self.words[idx].len(), batch_tokens)
            .iter()
            .map(|idxs| self.batch(idxs))
            .collect()
    }

    /// Draws the mini-batches of an epoch in random order. Sequences of a batch have similar lengths, so that their
    /// steps can be processed together.
    pub(crate) fn shuffled(&self, batch_tokens: usize, rng: &mut Rng) -> Vec<Vec<u32>> {
        shuffled(self.words.len(), |idx| self.words[idx].len(), batch_tokens, rng)
    }
}

/// Draws mini-batches of `n` sequences of given lengths; see [`Sequences::shuffled`].
pub(crate) fn shuffled(
    n: usize,
    length: impl Fn(usize) -> usize,
    batch_tokens: usize,
    rng: &mut Rng,
) -> Vec<Vec<u32>> {
    /// Sequences whose lengths differ by fewer tokens may change order.
    const BLUR: f64 = 3.0;
    let mut idxs: Vec<(f64, u32)> =
        (0..n).map(|idx| (length(idx) as f64 + rng.uniform() * BLUR, idx as u32)).collect();
    idxs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let idxs: Vec<u32> = idxs.into_iter().map(|(_, idx)| idx).collect();
    let mut batches = pack(&idxs, length, batch_tokens);
    rng.shuffle(&mut batches);
    batches
}

/// Packs sequences in order into batches of at most `batch_tokens` tokens, but at least one sequence.
pub(crate) fn pack(
    idxs: &[u32],
    length: impl Fn(usize) -> usize,
    batch_tokens: usize,
) -> Vec<Vec<u32>> {
    let mut batches: Vec<Vec<u32>> = Vec::new();
    let mut n_tokens = usize::MAX;
    for &idx in idxs {
        let len = length(idx as usize);
        if n_tokens.saturating_add(len) > batch_tokens {
            batches.push(Vec::new());
            n_tokens = 0;
        }
        batches.last_mut().expect("a batch was just pushed").push(idx);
        n_tokens += len;
    }
    batches
}

/// Joins consecutive sentences of a file into runs of at most `run_tokens` tokens (the first run at most
/// `first_tokens`), but at least one sentence.
fn runs(sentences: &Sentences, first_tokens: usize, run_tokens: usize) -> Vec<&[WordId]> {
    let (mut runs, mut limit) = (Vec::new(), first_tokens);
    for text in sentences.segments() {
        let (mut begin, mut end) = (0, 0);
        for sentence in text.split_inclusive(|&word| word == WordId::EOS) {
            if end > begin && end + sentence.len() - begin > limit {
                runs.push(&text[begin..end]);
                (begin, limit) = (end, run_tokens);
            }
            end += sentence.len();
        }
        if end > begin {
            runs.push(&text[begin..end]);
            limit = run_tokens;
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_sentence_occurs_once_per_epoch() {
        let corpus = latens_testkit::zipfian_corpus(50, 200, 1);
        let sentences = &corpus.sentences;
        let data = Data { sentences, tags: None, run_tokens: None };
        let sequences = data.drawn_sequences(&mut Rng::new(3));
        for batch_tokens in [1, 40, 1 << 20] {
            let batches = sequences.shuffled(batch_tokens, &mut Rng::new(1));
            let idxs: BTreeSet<u32> = batches.iter().flatten().copied().collect();
            assert_eq!(idxs.len(), sentences.len());
            assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), sentences.len());
            for batch in &batches {
                let n: usize = batch.iter().map(|&idx| sentences.get(idx as usize).len()).sum();
                assert!(n <= batch_tokens || batch.len() == 1);
            }
        }
        let again = sequences.shuffled(40, &mut Rng::new(1));
        assert_eq!(sequences.shuffled(40, &mut Rng::new(1)), again);
        assert_ne!(sequences.shuffled(40, &mut Rng::new(2)), again);
    }

    #[test]
    fn runs_split_the_text_at_sentence_ends() {
        let corpus = latens_testkit::zipfian_corpus(50, 200, 1);
        let sentences = &corpus.sentences;
        let longest = sentences.iter().map(<[WordId]>::len).max().unwrap();
        for run_tokens in [1, 2 * longest, 1 << 20] {
            let data = Data { sentences, tags: None, run_tokens: Some(run_tokens) };
            for sequences in [data.sequences(), data.drawn_sequences(&mut Rng::new(5))] {
                assert_eq!(sequences.words.concat(), sentences.tokens());
                for words in &sequences.words {
                    assert_eq!(words.last(), Some(&WordId::EOS));
                    let n_sentences = words.iter().filter(|&&word| word == WordId::EOS).count();
                    assert!(words.len() <= run_tokens || n_sentences == 1);
                }
            }
            let sequences = data.sequences();
            let mut pairs = sequences.words.windows(2);
            assert!(pairs.all(|two| two[0].len() + two[1].len() > run_tokens));
        }
        // Runs do not cross file boundaries.
        let n = sentences.len() as u64;
        let files = Sentences::from_parts(
            sentences.tokens().to_vec().into(),
            sentences.offsets().to_vec().into(),
            vec![0, n / 3, n].into(),
            corpus.lexicon.vocab.len(),
        );
        let files = files.unwrap();
        let data = Data { sentences: &files, tags: None, run_tokens: Some(1 << 20) };
        let lengths = data.sequences().words.iter().map(|words| words.len()).collect::<Vec<_>>();
        assert_eq!(lengths, files.segments().map(<[WordId]>::len).collect::<Vec<_>>());

        let data = Data { sentences, tags: None, run_tokens: Some(2 * longest) };
        let first = |seed| data.drawn_sequences(&mut Rng::new(seed)).words[0].len();
        assert!((0..20).any(|seed| first(seed) != first(0)));
    }
}
