//! Text in mini-batches.

use crate::tables::probability_tables::Batch;
use latens_corpus::{Sentences, WordId};
use latens_math::Rng;

/// What is learned from: sentences, and for a model of tags a tag for each word of each sentence.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a> {
    pub(crate) sentences: &'a Sentences,
    pub(crate) tags: Option<&'a [Vec<u32>]>,
    /// About how many tokens of running text are one sequence; `None` if every sentence is one.
    pub(crate) run_tokens: Option<usize>,
}

/// Text as the sequences that a model takes it for.
pub(crate) struct Sequences<'a> {
    words: Vec<&'a [WordId]>,
    tags: Option<&'a [Vec<u32>]>,
}

impl<'a> Data<'a> {
    /// All text, the first run of sentences being as long as the others.
    pub(crate) fn sequences(&self) -> Sequences<'a> {
        self.sequences_after(self.run_tokens)
    }

    /// All text; where runs of sentences end is drawn.
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

    /// All text in batches to score, without tags.
    pub(crate) fn scored_batches(&self) -> Vec<Batch<'a>> {
        /// About how many tokens are scored together.
        const BATCH_TOKENS: usize = 4096;
        /// About how many tokens are one sequence, where sentences are joined: so many that it hardly counts
        /// that the first of them are read without what was before.
        const RUN_TOKENS: usize = 1024;
        let run_tokens = self.run_tokens.map(|_| RUN_TOKENS);
        Data { tags: None, run_tokens, ..*self }.sequences().in_batches(BATCH_TOKENS)
    }
}

impl<'a> Sequences<'a> {
    pub(crate) fn batch(&self, idxs: &[u32]) -> Batch<'a> {
        let sentences = idxs.iter().map(|&idx| self.words[idx as usize]).collect();
        let tags = self
            .tags
            .map_or(vec![], |tags| idxs.iter().map(|&idx| &tags[idx as usize][..]).collect());
        Batch { sentences, tags }
    }

    /// All sequences in batches, longest first.
    pub(crate) fn in_batches(&self, batch_tokens: usize) -> Vec<Batch<'a>> {
        let mut idxs: Vec<u32> = (0..self.words.len() as u32).collect();
        idxs.sort_by_key(|&idx| std::cmp::Reverse(self.words[idx as usize].len()));
        self.pack(&idxs, batch_tokens).iter().map(|idxs| self.batch(idxs)).collect()
    }

    /// The mini-batches of one epoch: sequences of about the same length together, so that their steps can be
    /// done side by side; what comes together, and in which order, is drawn.
    pub(crate) fn shuffled(&self, batch_tokens: usize, rng: &mut Rng) -> Vec<Vec<u32>> {
        /// How many tokens two lengths may differ and still trade places.
        const BLUR: f64 = 3.0;
        let words = self.words.iter().enumerate();
        let mut idxs: Vec<(f64, u32)> = words
            .map(|(idx, words)| (words.len() as f64 + rng.uniform() * BLUR, idx as u32))
            .collect();
        idxs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let idxs: Vec<u32> = idxs.into_iter().map(|(_, idx)| idx).collect();
        let mut batches = self.pack(&idxs, batch_tokens);
        rng.shuffle(&mut batches);
        batches
    }

    /// Sequences in order, as many together as have at most `batch_tokens` tokens, but at least one.
    fn pack(&self, idxs: &[u32], batch_tokens: usize) -> Vec<Vec<u32>> {
        let mut batches: Vec<Vec<u32>> = Vec::new();
        let mut n_tokens = usize::MAX;
        for &idx in idxs {
            let len = self.words[idx as usize].len();
            if n_tokens.saturating_add(len) > batch_tokens {
                batches.push(Vec::new());
                n_tokens = 0;
            }
            batches.last_mut().expect("one was just made").push(idx);
            n_tokens += len;
        }
        batches
    }
}

/// Sentences that follow each other, as many together as have at most `run_tokens` tokens, the first of them at
/// most `first_tokens`, but at least one; files keep apart.
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
    fn every_sentence_comes_once_an_epoch() {
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
    fn runs_are_the_text_cut_at_ends_of_sentences() {
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
        // Two files keep apart.
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
