use crate::kneser_ney::Estimator;
use crate::model::Ngram;
use crate::params::NgramParams;
use latens_corpus::{Corpus, Lexicon, Sentences, WordId};
use latens_counts::{Budget, CountError, NgramCounts};
use latens_model::{
    Checkpoint, CheckpointError, FitError, Progress, Valid, Watch, data_fingerprint,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::cmp::Ordering;
use std::time::Instant;

/// A text is counted in shards of about this many tokens, with a checkpoint on offer after each: some
/// seconds of work.
const SHARD_TOKENS: u64 = 1 << 25;

impl Ngram {
    /// Learns a model from a text: counts its n-grams, then turns counts into probabilities.
    pub fn fit(
        params: &Valid<NgramParams>,
        corpus: &Corpus,
        watch: &mut Watch,
    ) -> Result<Ngram, FitError> {
        fit_in_shards(params, corpus, Counted::nothing(), SHARD_TOKENS, watch)
    }

    /// Goes on from a checkpoint of [`Ngram::fit`] with the same parameters and text.
    pub fn resume(
        params: &Valid<NgramParams>,
        corpus: &Corpus,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Ngram, FitError> {
        let counted = Counted::of_checkpoint(params, corpus, checkpoint)?;
        fit_in_shards(params, corpus, counted, SHARD_TOKENS, watch)
    }

    /// The statistics of one shard of a text. Those of several shards, encoded with one vocabulary,
    /// merge with [`NgramCounts::merge`] to those of the whole.
    pub fn count(
        params: &Valid<NgramParams>,
        shard: &Corpus,
        budget: &Budget,
        watch: &mut Watch,
    ) -> Result<NgramCounts, FitError> {
        let total = shard.sentences.n_tokens() as u64;
        let n_words = shard.lexicon.vocab.len();
        count_shard(params, &shard.sentences, n_words, budget, 0, total, watch)
    }

    /// The model of counts of the order that `params` has. Fails if they are of no text: counts from
    /// a file can be anything.
    ///
    /// # Panics
    /// If the counts have another order, or were made with another number of words.
    pub fn from_counts(
        params: &Valid<NgramParams>,
        lexicon: &Lexicon,
        counts: &NgramCounts,
    ) -> Result<Ngram, FitError> {
        assert_eq!(counts.order(), params.order, "counts of the model's order");
        assert_eq!(counts.n_words(), lexicon.vocab.len(), "counts with the model's vocabulary");
        let mut estimator = Estimator::new(params.order, lexicon.vocab.len());
        counts.for_each(|reversed, count| estimator.add(reversed, count));
        finish(estimator, params, lexicon)
    }
}

fn finish(
    estimator: Estimator,
    params: &Valid<NgramParams>,
    lexicon: &Lexicon,
) -> Result<Ngram, FitError> {
    let Some((trie, discounts)) = estimator.finish(params) else {
        let (action, problem) = ("use n-gram counts", "an n-gram was counted without its history");
        return Err(FitError::Step { action, source: problem.into() });
    };
    let mut facts = Map::new();
    let discounts: Vec<[f64; 3]> = discounts.iter().map(|discounts| discounts.0).collect();
    facts.insert("discounts".to_owned(), json!(discounts));
    Ok(Ngram { params: params.clone(), lexicon: lexicon.clone(), facts, trie })
}

fn fit_in_shards(
    params: &Valid<NgramParams>,
    corpus: &Corpus,
    counted: Counted,
    shard_tokens: u64,
    watch: &mut Watch,
) -> Result<Ngram, FitError> {
    let started = Instant::now();
    let Corpus { lexicon, sentences } = corpus;
    let (n_words, total) = (lexicon.vocab.len(), sentences.n_tokens() as u64);
    let budget = Budget::default();
    let mut counts: Option<NgramCounts> = None;
    let mut done = counted.n_sentences;
    while done < sentences.len() {
        let begin = sentences.offsets()[done];
        let full = sentences.offsets().partition_point(|&offset| offset < begin + shard_tokens);
        let end = full.clamp(done + 1, sentences.len());
        let shard = sentences.slice(done..end);
        let shard = count_shard(params, &shard, n_words, &budget, begin, total, watch)?;
        counts = Some(match counts {
            Some(counts) => NgramCounts::merge(&[counts, shard], &budget).map_err(fit_error)?,
            None => shard,
        });
        done = end;
        let checkpoint =
            || Ok(Counted::so_far(&counted, counts.as_ref(), done).checkpoint(params, corpus));
        let done_tokens = sentences.offsets()[done];
        Progress { checkpoint: Some(&checkpoint), ..progress(done_tokens, total) }.report(watch)?;
    }
    let mut estimator = Estimator::new(params.order, n_words);
    counted.for_each_with(counts.as_ref(), |reversed, count| estimator.add(reversed, count));
    let mut model = finish(estimator, params, lexicon)?;
    model.add_fact("tokens", total);
    model.add_fact("sentences", sentences.len());
    model.add_fact("seconds", started.elapsed().as_secs_f64());
    Ok(model)
}

/// Counts a shard that begins after `begin` tokens of `total`.
fn count_shard(
    params: &NgramParams,
    shard: &Sentences,
    n_words: usize,
    budget: &Budget,
    begin: u64,
    total: u64,
    watch: &mut Watch,
) -> Result<NgramCounts, FitError> {
    let mut report = |done_tokens: usize| watch(&progress(begin + done_tokens as u64, total));
    NgramCounts::of(shard, n_words, params.order, budget, &mut report).map_err(fit_error)
}

fn progress(done: u64, total: u64) -> Progress<'static> {
    let (phase, unit) = ("count n-grams", "tokens");
    Progress { phase, done, total: Some(total), unit, ..Progress::default() }
}

fn fit_error(error: CountError) -> FitError {
    match error {
        CountError::Interrupted => FitError::Interrupted,
        error => FitError::step("count n-grams")(error),
    }
}

/// n-grams of the first sentences of a text, as a checkpoint has them: words from last to first, in
/// ascending order.
struct Counted {
    order: usize,
    words: Vec<WordId>,
    counts: Vec<u64>,
    n_sentences: usize,
}

/// What a checkpoint has besides arrays.
#[derive(Serialize, Deserialize)]
struct State {
    n_sentences: usize,
    n_ngrams: usize,
}

impl Counted {
    fn nothing() -> Counted {
        Counted { order: 1, words: Vec::new(), counts: Vec::new(), n_sentences: 0 }
    }

    /// What an earlier run and this one have counted together.
    fn so_far(before: &Counted, counts: Option<&NgramCounts>, n_sentences: usize) -> Counted {
        let mut all = Counted { n_sentences, ..Counted::nothing() };
        before.for_each_with(counts, |reversed, count| {
            all.order = reversed.len();
            all.words.extend_from_slice(reversed);
            all.counts.push(count);
        });
        all
    }

    fn checkpoint(&self, params: &Valid<NgramParams>, corpus: &Corpus) -> Checkpoint {
        let n_ngrams = self.counts.len();
        let state = State { n_sentences: self.n_sentences, n_ngrams };
        let fingerprint = data_fingerprint(&corpus.lexicon.vocab, &corpus.sentences);
        Checkpoint::new(Ngram::KIND, params, fingerprint, &state)
            .with_array("words", &[n_ngrams, self.order], &self.words)
            .with_array("counts", &[n_ngrams], &self.counts)
    }

    fn of_checkpoint(
        params: &Valid<NgramParams>,
        corpus: &Corpus,
        checkpoint: &Checkpoint,
    ) -> Result<Counted, FitError> {
        let fingerprint = data_fingerprint(&corpus.lexicon.vocab, &corpus.sentences);
        checkpoint.check_fits(Ngram::KIND, params, fingerprint, &[])?;
        let State { n_sentences, n_ngrams } = checkpoint.state()?;
        let order = params.order;
        let words = checkpoint.array("words", &[n_ngrams, order])?;
        let counts = checkpoint.array("counts", &[n_ngrams])?;
        let counted = Counted { order, words, counts, n_sentences };
        counted.check(corpus)?;
        Ok(counted)
    }

    /// Whether these can be n-grams of the first sentences of this text.
    fn check(&self, corpus: &Corpus) -> Result<(), CheckpointError> {
        let n_words = corpus.lexicon.vocab.len();
        let is_possible = |ngram: &[WordId]| {
            let n_known = ngram.iter().take_while(|word| word.index() < n_words).count();
            n_known > 0 && ngram[n_known..].iter().all(|word| word.index() == n_words)
        };
        let ngrams = self.words.chunks_exact(self.order);
        if !ngrams.clone().all(is_possible) || !ngrams.is_sorted_by(|a, b| a < b) {
            let problem = "its n-grams do not ascend, or are not of the vocabulary";
            return Err(CheckpointError::Invalid { problem });
        }
        let sum = self.counts.iter().try_fold(0u64, |sum, &count| sum.checked_add(count));
        let n_tokens = corpus.sentences.offsets().get(self.n_sentences);
        if self.counts.contains(&0) || n_tokens.is_none() || sum.as_ref() != n_tokens {
            let problem = "its n-grams are not as many as the tokens of its sentences";
            return Err(CheckpointError::Invalid { problem });
        }
        Ok(())
    }

    /// Visits the n-grams of both in ascending order, with the sums of their counts.
    fn for_each_with(&self, others: Option<&NgramCounts>, mut visit: impl FnMut(&[WordId], u64)) {
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
    use latens_model::{LanguageModel, Params};

    #[test]
    fn going_on_from_any_checkpoint_gives_the_same_model() {
        let corpus = latens_testkit::zipfian_corpus(50, 300, 1);
        let params = NgramParams { order: 3, ..NgramParams::default() }.validate().unwrap();
        let shard_tokens = corpus.sentences.n_tokens() as u64 / 5;
        let same = |a: &Ngram, b: &Ngram| {
            assert_eq!(a.n_ngrams(), b.n_ngrams());
            for sentence in corpus.sentences.iter() {
                assert_eq!(a.log_prob(sentence), b.log_prob(sentence));
            }
        };
        latens_testkit::check_resume(
            |watch| fit_in_shards(&params, &corpus, Counted::nothing(), shard_tokens, watch),
            |checkpoint, watch| {
                let counted = Counted::of_checkpoint(&params, &corpus, checkpoint)?;
                fit_in_shards(&params, &corpus, counted, shard_tokens, watch)
            },
            same,
        );
        let whole = Ngram::fit(&params, &corpus, &mut latens_model::unwatched).unwrap();
        let counted = Counted::nothing();
        let unwatched = &mut latens_model::unwatched;
        same(&whole, &fit_in_shards(&params, &corpus, counted, shard_tokens, unwatched).unwrap());
    }

    #[test]
    fn a_checkpoint_of_another_text_or_order_is_refused() {
        let corpus = latens_testkit::zipfian_corpus(50, 30, 1);
        let params = NgramParams { order: 2, ..NgramParams::default() }.validate().unwrap();
        let checkpoint = Counted::nothing().checkpoint(&params, &corpus);
        let refused = |params, corpus: &Corpus| {
            let resumed = Ngram::resume(params, corpus, &checkpoint, &mut latens_model::unwatched);
            matches!(resumed, Err(FitError::Checkpoint(_)))
        };
        assert!(refused(&params, &latens_testkit::zipfian_corpus(50, 30, 2)));
        let other = NgramParams { order: 3, ..NgramParams::default() }.validate().unwrap();
        assert!(refused(&other, &corpus));
    }

    #[test]
    fn a_checkpoint_that_contradicts_itself_is_refused() {
        let words = [[1, 3, 2], [2, 4, 4], [3, 2, 4]];
        let vocab = latens_corpus::Vocab::from_counts([("a", 2), ("b", 1)], &Default::default());
        let lexicon =
            Lexicon { preprocessing: Default::default(), limits: Default::default(), vocab };
        let sentences = Sentences::from_words([&[WordId(2), WordId(3)][..], &[WordId(2)]]);
        let corpus = Corpus { lexicon, sentences };
        let params = NgramParams { order: 3, ..NgramParams::default() }.validate().unwrap();
        let resume = |words: [[u32; 3]; 3], counts: [u64; 3], n_sentences| {
            let words = words.concat().into_iter().map(WordId).collect();
            let counted = Counted { order: 3, words, counts: counts.to_vec(), n_sentences };
            let checkpoint = counted.checkpoint(&params, &corpus);
            Ngram::resume(&params, &corpus, &checkpoint, &mut latens_model::unwatched)
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
        let lost = resume(with(2, [3, 3, 4]), [1, 1, 1], 1);
        assert!(matches!(lost, Err(FitError::Step { .. })), "{lost:?}");
    }
}
