//! n-gram counts of a part of a text, as checkpoints store them.

use crate::model::Ngram;
use crate::params::NgramParams;
use latens_corpus::{Corpus, WordId};
use latens_counts::NgramCounts;
use latens_model::{Checkpoint, CheckpointError, FitError, Valid, data_fingerprint};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// n-gram counts of the first sentences of a text, in ascending order of the reversed n-grams.
pub(crate) struct PartialCounts {
    order: usize,
    /// Words of each n-gram from last to first: n-grams × order.
    words: Vec<WordId>,
    counts: Vec<u64>,
    pub(crate) n_sentences: usize,
}

/// State of a checkpoint besides its arrays.
#[derive(Serialize, Deserialize)]
struct State {
    n_sentences: usize,
    n_ngrams: usize,
}

impl PartialCounts {
    /// No counts yet.
    pub(crate) fn empty() -> PartialCounts {
        PartialCounts { order: 1, words: Vec::new(), counts: Vec::new(), n_sentences: 0 }
    }

    /// Adds the counts of this run to those of an earlier one.
    pub(crate) fn so_far(
        before: &PartialCounts,
        counts: Option<&NgramCounts>,
        n_sentences: usize,
    ) -> PartialCounts {
        let mut all = PartialCounts { n_sentences, ..PartialCounts::empty() };
        before.for_each_with(counts, |reversed, count| {
            all.order = reversed.len();
            all.words.extend_from_slice(reversed);
            all.counts.push(count);
        });
        all
    }

    pub(crate) fn checkpoint(&self, params: &Valid<NgramParams>, corpus: &Corpus) -> Checkpoint {
        let n_ngrams = self.counts.len();
        let state = State { n_sentences: self.n_sentences, n_ngrams };
        let fingerprint = data_fingerprint(&corpus.lexicon.vocab, &corpus.sentences);
        Checkpoint::new(Ngram::KIND, params, fingerprint, &state)
            .with_array("words", &[n_ngrams, self.order], &self.words)
            .with_array("counts", &[n_ngrams], &self.counts)
    }

    pub(crate) fn from_checkpoint(
        params: &Valid<NgramParams>,
        corpus: &Corpus,
        checkpoint: &Checkpoint,
    ) -> Result<PartialCounts, FitError> {
        let fingerprint = data_fingerprint(&corpus.lexicon.vocab, &corpus.sentences);
        checkpoint.check_fits(Ngram::KIND, params, fingerprint, &[])?;
        let State { n_sentences, n_ngrams } = checkpoint.state()?;
        let order = params.order;
        let words = checkpoint.array("words", &[n_ngrams, order])?;
        let counts = checkpoint.array("counts", &[n_ngrams])?;
        let counted = PartialCounts { order, words, counts, n_sentences };
        counted.check(corpus)?;
        Ok(counted)
    }

    /// Checks that these can be the n-grams of the first sentences of a text.
    fn check(&self, corpus: &Corpus) -> Result<(), CheckpointError> {
        let n_words = corpus.lexicon.vocab.len();
        let is_possible = |ngram: &[WordId]| {
            let n_known = ngram.iter().take_while(|word| word.index() < n_words).count();
            n_known > 0 && ngram[n_known..].iter().all(|word| word.index() == n_words)
        };
        let ngrams = self.words.chunks_exact(self.order);
        if !ngrams.clone().all(is_possible) || !ngrams.is_sorted_by(|a, b| a < b) {
            let problem = "its n-grams are not sorted or not of the vocabulary";
            return Err(CheckpointError::Invalid { problem });
        }
        let sum = self.counts.iter().try_fold(0u64, |sum, &count| sum.checked_add(count));
        let n_tokens = corpus.sentences.offsets().get(self.n_sentences);
        if self.counts.contains(&0) || n_tokens.is_none() || sum.as_ref() != n_tokens {
            let problem = "its counts do not sum to the number of tokens of its sentences";
            return Err(CheckpointError::Invalid { problem });
        }
        Ok(())
    }

    /// Visits the n-grams of both in ascending order, with their summed counts.
    pub(crate) fn for_each_with(
        &self,
        others: Option<&NgramCounts>,
        mut visit: impl FnMut(&[WordId], u64),
    ) {
        let mut own = self.words.chunks_exact(self.order).zip(&self.counts).peekable();
        let mut merge = |reversed: &[WordId], count: u64| {
            let mut sum = count;
            while let Some((words, own_count)) = own.next_if(|(words, _)| *words <= reversed) {
                match words.cmp(reversed) {
                    Ordering::Equal => sum += own_count,
                    _ => visit(words, *own_count),
                }
            }
            visit(reversed, sum);
        };
        if let Some(others) = others {
            others.for_each(&mut merge);
        }
        own.for_each(|(words, &count)| visit(words, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::{Lexicon, Sentences};
    use latens_model::{Fit, Params};

    #[test]
    fn a_checkpoint_of_another_text_or_order_is_rejected() {
        let corpus = latens_testkit::zipfian_corpus(50, 30, 1);
        let params = NgramParams { order: 2, ..NgramParams::default() }.validate().unwrap();
        let checkpoint = PartialCounts::empty().checkpoint(&params, &corpus);
        let is_rejected = |params, corpus: &Corpus| {
            let counts = PartialCounts::from_checkpoint(params, corpus, &checkpoint);
            matches!(counts, Err(FitError::Checkpoint(_)))
        };
        assert!(is_rejected(&params, &latens_testkit::zipfian_corpus(50, 30, 2)));
        let other = NgramParams { order: 3, ..NgramParams::default() }.validate().unwrap();
        assert!(is_rejected(&other, &corpus));
    }

    #[test]
    fn an_inconsistent_checkpoint_is_rejected() {
        let words = [[1, 3, 2], [2, 4, 4], [3, 2, 4]];
        let vocab = latens_corpus::Vocab::from_counts([("a", 2), ("b", 1)], &Default::default());
        let lexicon = Lexicon::new(Default::default(), Default::default(), vocab);
        let sentences = Sentences::from_words([&[WordId(2), WordId(3)][..], &[WordId(2)]]);
        let corpus = Corpus { lexicon, sentences };
        let params = NgramParams { order: 3, ..NgramParams::default() }.validate().unwrap();
        let resume = |words: [[u32; 3]; 3], counts: [u64; 3], n_sentences| {
            let words = words.concat().into_iter().map(WordId).collect();
            let counted = PartialCounts { order: 3, words, counts: counts.to_vec(), n_sentences };
            let checkpoint = counted.checkpoint(&params, &corpus);
            params.clone().into_inner().builder().checkpoint(&checkpoint).fit(&corpus)
        };
        assert!(resume(words, [1, 1, 1], 1).is_ok());
        let with = |at: usize, ngram: [u32; 3]| {
            let mut words = words;
            words[at] = ngram;
            words
        };
        for wrong in [
            resume(words, [1, 1, 1], 2),
            resume(words, [1, 1, 1], 3),
            resume(words, [1, 1, 1], usize::MAX),
            resume(words, [1, 2, 0], 1),
            resume(words, [u64::MAX, 3, 1], 1),
            resume(words, [u64::MAX, 3, 1], 3),
            resume(with(0, [1, 5, 2]), [1, 1, 1], 1),
            resume(with(0, [1, 4, 2]), [1, 1, 1], 1),
            resume(with(2, [4, 4, 4]), [1, 1, 1], 1),
            resume(with(0, [2, 4, 4]), [1, 1, 1], 1),
        ] {
            assert!(matches!(wrong, Err(FitError::Checkpoint(_))), "{wrong:?}");
        }
        let without_history = resume(with(2, [3, 3, 4]), [1, 1, 1], 1);
        assert!(matches!(without_history, Err(FitError::Step { .. })), "{without_history:?}");
    }
}
