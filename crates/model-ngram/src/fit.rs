//! Fitting: counts the n-grams of a text, then estimates probabilities.

use crate::cost::{cost, least_memory};
use crate::kneser_ney::Estimator;
use crate::model::Ngram;
use crate::params::NgramParams;
use crate::partial_counts::PartialCounts;
use crate::streamed::{self, LevelWriter};
use latens_corpus::{Corpus, Lexicon, Sentences, Vocab, WordId};
use latens_counts::{Budget, CountError, NgramCounts};
use latens_model::{
    Bytes, Cost, Fit, FitError, Progress, Session, Setup, Valid, Watch, check_that,
};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::time::Instant;

/// Approximate number of tokens per shard. A checkpoint is available after each, every few seconds.
const SHARD_TOKENS: u64 = 1 << 25;

impl Fit for NgramParams {
    type Model = Ngram;
    type Data = Corpus;
    /// The memory limit, and the folder for temporary files beyond it. The model does not depend on it. Without a limit,
    /// all n-grams are in memory.
    type Inputs<'a> = Option<Budget>;
    type Error = FitError;

    fn cost_with(
        params: &NgramParams,
        corpus: &Corpus,
        budget: &Option<Budget>,
        _: &Setup<'_>,
    ) -> Cost {
        cost(params, corpus, budget.as_ref())
    }

    fn fit_with(
        params: &Valid<NgramParams>,
        corpus: &Corpus,
        budget: Option<Budget>,
        session: Session<'_>,
    ) -> Result<Ngram, FitError> {
        session.refuse_cuda()?;
        session.refuse_valid()?;
        if let Some(budget) = budget {
            let is_unset = session.checkpoint.is_none();
            check_that(is_unset, "checkpoint", "unset with a memory limit", "a checkpoint")?;
            let least = least_memory(corpus);
            let must = format!("at least {} for this text", Bytes(least as u64));
            check_that(budget.bytes >= least, "memory", must, Bytes(budget.bytes as u64))?;
            return fit_within(params, corpus, &budget, session.watch);
        }
        let counted = match session.checkpoint {
            Some(checkpoint) => PartialCounts::from_checkpoint(params, corpus, checkpoint)?,
            None => PartialCounts::empty(),
        };
        fit_in_shards(params, corpus, counted, SHARD_TOKENS, session.watch)
    }
}

impl Ngram {
    /// Counts the n-grams of one shard of a text.
    ///
    /// [`NgramCounts::merge`] combines the counts of several shards that share a vocabulary.
    pub fn count(
        params: &Valid<NgramParams>,
        shard: &Corpus,
        budget: &Budget,
        watch: &mut Watch,
    ) -> Result<NgramCounts, FitError> {
        let total = shard.sentences.n_tokens() as u64;
        let vocab = &shard.lexicon.vocab;
        count_shard(params, &shard.sentences, vocab, budget, 0, total, watch)
    }

    /// Estimates a model from n-gram counts.
    ///
    /// Fails if the counts have another vocabulary than `lexicon`, or contradict each other, as those of a
    /// damaged file may.
    ///
    /// # Panics
    /// If the counts have another order than `params`.
    pub fn from_counts(
        params: &Valid<NgramParams>,
        lexicon: &Lexicon,
        counts: &NgramCounts,
    ) -> Result<Ngram, FitError> {
        assert_eq!(counts.order(), params.order, "the counts must have the order of the model");
        if !counts.fits(&lexicon.vocab) {
            let (action, problem) = ("use n-gram counts", "they have a different vocabulary");
            return Err(FitError::Step { action, source: problem.into() });
        }
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
    check_number(estimator.largest_order() as u64)?;
    let (trie, discounts) = estimator.finish(params).ok_or_else(missing_history)?;
    Ok(Ngram::from_estimated(params, lexicon, trie, &discounts))
}

/// Numbers of n-grams are stored as `u32`.
fn check_number(n_ngrams: u64) -> Result<(), FitError> {
    if u32::try_from(n_ngrams).is_ok() {
        return Ok(());
    }
    let allows = format!("at most {} distinct n-grams per order", u32::MAX);
    Err(FitError::too_much_data(allows, n_ngrams))
}

fn missing_history() -> FitError {
    let (action, problem) = ("use n-gram counts", "an n-gram was counted without its history");
    FitError::Step { action, source: problem.into() }
}

/// Counts and estimates in about the memory of `budget`.
fn fit_within(
    params: &Valid<NgramParams>,
    corpus: &Corpus,
    budget: &Budget,
    watch: &mut Watch,
) -> Result<Ngram, FitError> {
    let started = Instant::now();
    let Corpus { lexicon, sentences } = corpus;
    let (n_words, total) = (lexicon.vocab.len(), sentences.n_tokens() as u64);
    let mut levels = LevelWriter::new(params, n_words, &budget.folder).map_err(fit_error)?;
    let mut report = |done_tokens: usize| {
        // The next batch reads its own part of the text.
        sentences.release();
        watch(&progress(done_tokens as u64, total))
    };
    // Counting takes up to a third more while it turns a batch into a sorted run.
    let counting = budget.clone().bytes(budget.bytes / 4 * 3);
    let mut add = |reversed: &[WordId], count| levels.add(reversed, count);
    NgramCounts::visit(sentences, n_words, params.order, &counting, &mut report, &mut add)
        .map_err(fit_error)?;
    let levels = levels.finish().map_err(fit_error)?;
    check_number(levels.largest_order())?;
    let total_ngrams = levels.n_ngrams();
    let mut report = |done: u64| {
        let (phase, unit, total) = ("estimate probabilities", "n-grams", Some(total_ngrams));
        let progress = Progress { phase, done, total, unit, ..Progress::default() };
        match watch(&progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(CountError::Interrupted),
        }
    };
    let estimated =
        streamed::estimate(&levels, budget, &mut report).map_err(|error| match error {
            CountError::Interrupted => FitError::Interrupted,
            error => FitError::step("estimate probabilities")(error),
        })?;
    let (trie, discounts) = estimated.ok_or_else(missing_history)?;
    let mut model = Ngram::from_estimated(params, lexicon, trie, &discounts);
    model.add_fact("tokens", total);
    model.add_fact("sentences", sentences.len());
    model.add_fact("seconds", started.elapsed().as_secs_f64());
    Ok(model)
}

fn fit_in_shards(
    params: &Valid<NgramParams>,
    corpus: &Corpus,
    counted: PartialCounts,
    shard_tokens: u64,
    watch: &mut Watch,
) -> Result<Ngram, FitError> {
    let started = Instant::now();
    let Corpus { lexicon, sentences } = corpus;
    let (n_words, total) = (lexicon.vocab.len(), sentences.n_tokens() as u64);
    let budget = Budget::default();
    let mut parts = Parts::default();
    let mut done = counted.n_sentences;
    while done < sentences.len() {
        let begin = sentences.offsets()[done];
        let full = sentences.offsets().partition_point(|&offset| offset < begin + shard_tokens);
        let end = full.clamp(done + 1, sentences.len());
        let shard = sentences.slice(done..end);
        let shard = count_shard(params, &shard, &lexicon.vocab, &budget, begin, total, watch)?;
        parts.add(shard, &budget)?;
        done = end;
        let checkpoint = || {
            let counts = parts.sum(&budget)?;
            Ok(PartialCounts::so_far(&counted, counts.as_deref(), done).checkpoint(params, corpus))
        };
        let done_tokens = sentences.offsets()[done];
        Progress { checkpoint: Some(&checkpoint), ..progress(done_tokens, total) }.report(watch)?;
    }
    let counts = parts.into_sum(&budget)?;
    let mut estimator = Estimator::new(params.order, n_words);
    counted.for_each_with(counts.as_ref(), |reversed, count| estimator.add(reversed, count));
    drop(counts);
    let mut model = finish(estimator, params, lexicon)?;
    model.add_fact("tokens", total);
    model.add_fact("sentences", sentences.len());
    model.add_fact("seconds", started.elapsed().as_secs_f64());
    Ok(model)
}

/// The counts of all shards so far. Like the digits of a binary number, each part consists of at least twice as many shards as
/// the next one, so that an n-gram is merged at most log₂ n times for n shards.
#[derive(Default)]
struct Parts {
    n_shards: u64,
    parts: Vec<NgramCounts>,
}

impl Parts {
    fn add(&mut self, shard: NgramCounts, budget: &Budget) -> Result<(), FitError> {
        self.n_shards += 1;
        self.parts.push(shard);
        for _ in 0..self.n_shards.trailing_zeros() {
            let last_two = self.parts.split_off(self.parts.len() - 2);
            self.parts.push(NgramCounts::merge(&last_two, budget).map_err(fit_error)?);
        }
        Ok(())
    }

    /// The sum of all parts, which are no longer needed.
    fn into_sum(mut self, budget: &Budget) -> Result<Option<NgramCounts>, FitError> {
        match self.parts.len() {
            0 | 1 => Ok(self.parts.pop()),
            _ => Ok(Some(NgramCounts::merge(&self.parts, budget).map_err(fit_error)?)),
        }
    }

    /// The sum of all parts; `None` without a part.
    fn sum(&self, budget: &Budget) -> Result<Option<Cow<'_, NgramCounts>>, FitError> {
        match &self.parts[..] {
            [] => Ok(None),
            [part] => Ok(Some(Cow::Borrowed(part))),
            parts => Ok(Some(Cow::Owned(NgramCounts::merge(parts, budget).map_err(fit_error)?))),
        }
    }
}

/// Counts a shard that starts after `begin` of `total` tokens.
fn count_shard(
    params: &NgramParams,
    shard: &Sentences,
    vocab: &Vocab,
    budget: &Budget,
    begin: u64,
    total: u64,
    watch: &mut Watch,
) -> Result<NgramCounts, FitError> {
    let mut report = |done_tokens: usize| watch(&progress(begin + done_tokens as u64, total));
    NgramCounts::of(shard, vocab, params.order, budget, &mut report).map_err(fit_error)
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

#[cfg(test)]
mod tests {
    use super::*;
    use latens_model::{LanguageModel, Model, Params};

    #[test]
    fn a_memory_limit_does_not_change_the_model() {
        let text = latens_corpus::embedded::text(latens_corpus::embedded::Split::Valid);
        let text = Corpus::from_lines(text.lines()).unwrap();
        let random = latens_testkit::zipfian_corpus(60, 400, 1);
        for corpus in [&text, &random] {
            for (order, min_counts) in
                [(1, vec![1]), (2, vec![1]), (3, vec![1, 1, 2]), (5, vec![1]), (6, vec![1, 2, 3])]
            {
                let params = NgramParams { order, min_counts, ..NgramParams::default() };
                let params = params.validate().unwrap();
                let whole = params.clone().into_inner().fit(corpus).unwrap();
                let expected = whole.writer().to_bytes();
                for bytes in [1, 1 << 14, 1 << 30] {
                    let folder = tempfile::tempdir().unwrap();
                    let budget = Budget::default().bytes(bytes).folder(folder.path());
                    let watch = &mut latens_model::unwatched;
                    let model = fit_within(&params, corpus, &budget, watch).unwrap();
                    assert!(model.writer().to_bytes() == expected, "order {order}, {bytes} bytes");
                    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
                }
            }
        }
    }

    #[test]
    fn no_temporary_file_survives_an_interruption() {
        let corpus = latens_testkit::zipfian_corpus(60, 400, 1);
        let params = NgramParams::default().validate().unwrap();
        let fit = |stop_at: usize| {
            let folder = tempfile::tempdir().unwrap();
            let budget = Budget::default().bytes(1).folder(folder.path());
            let mut n_reports = 0;
            let fitted = fit_within(&params, &corpus, &budget, &mut |_| {
                n_reports += 1;
                if n_reports > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
            (fitted, n_reports)
        };
        let (fitted, n_reports) = fit(usize::MAX);
        assert!(fitted.is_ok() && n_reports > 3, "{n_reports} reports");
        for stop_at in 0..n_reports {
            assert!(matches!(fit(stop_at).0, Err(FitError::Interrupted)), "{stop_at}");
        }
    }

    #[test]
    fn a_wrong_limit_or_folder_is_one_clear_error() {
        let corpus = latens_testkit::zipfian_corpus(60, 400, 1);
        let folder = tempfile::tempdir().unwrap();
        let fit = |bytes, folder: &std::path::Path| {
            let budget = Budget::default().bytes(bytes).folder(folder);
            NgramParams::default().with(Some(budget)).fit(&corpus)
        };
        let error = fit(1 << 20, folder.path()).unwrap_err().to_string();
        assert!(error.contains("memory") && error.contains("at least"), "{error}");
        let missing = folder.path().join("missing");
        let error = fit(1 << 30, &missing).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("missing"), "{cause}");
        assert!(fit(1 << 30, folder.path()).is_ok());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn resuming_from_any_checkpoint_gives_the_same_model() {
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
            |watch| fit_in_shards(&params, &corpus, PartialCounts::empty(), shard_tokens, watch),
            |checkpoint, watch| {
                let counted = PartialCounts::from_checkpoint(&params, &corpus, checkpoint)?;
                fit_in_shards(&params, &corpus, counted, shard_tokens, watch)
            },
            same,
        );
        let whole = params.clone().into_inner().fit(&corpus).unwrap();
        for n_shards in [2, 5, 7, 8] {
            let (counted, watch) = (PartialCounts::empty(), &mut latens_model::unwatched);
            let tokens = corpus.sentences.n_tokens() as u64 / n_shards;
            same(&whole, &fit_in_shards(&params, &corpus, counted, tokens, watch).unwrap());
        }
    }
}
