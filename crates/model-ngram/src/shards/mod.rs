//! n-gram counts of the shards of a text.

use crate::model::Ngram;
use crate::params::NgramParams;
use latens_corpus::{Lexicon, ReadError, Sentences};
use latens_counts::{Budget, CountError, NgramCounts};
use latens_model::shards::{Arrays, Computed, Job, Part, ShardState, Sharded, Step};
use latens_model::{FitError, Valid};
use std::ops::ControlFlow;

/// Learns an n-gram model from shards in one round. Integers add up, so that the model is that of the whole text.
pub struct NgramShards;

const COUNTS: &str = "counts";
const SENTENCES: &str = "sentences";

impl Sharded for NgramShards {
    const KIND: &'static str = Ngram::KIND;
    type Params = NgramParams;
    type Text = Sentences;

    fn begin(_: &Valid<NgramParams>, _: &Lexicon, _: Arrays) -> Result<ShardState, FitError> {
        Ok(ShardState { n_rounds: Some(1), ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<Sentences, ReadError> {
        part.sentences(lexicon)
    }

    fn statistics(
        job: &Job<'_, NgramParams>,
        _: usize,
        text: &Sentences,
        _: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        let (vocab, order) = (&job.lexicon.vocab, job.params.order);
        let watch = &mut |_| ControlFlow::Continue(());
        let counts = NgramCounts::of(text, vocab, order, &Budget::default(), watch);
        Ok(arrays(&counts.map_err(failed)?, text.len() as u64).into())
    }

    fn merge(a: Arrays, b: Arrays) -> Result<Arrays, FitError> {
        let parts = [counts(&a)?, counts(&b)?];
        let sum = NgramCounts::merge(&parts, &Budget::default()).map_err(failed)?;
        let n = n_sentences(&a)?.checked_add(n_sentences(&b)?);
        Ok(arrays(&sum, n.ok_or(CountError::Overflow).map_err(failed)?))
    }

    fn update(job: &Job<'_, NgramParams>, sums: Arrays) -> Result<Step, FitError> {
        let all = counts(&sums)?;
        if all.order() != job.params.order {
            return Err(failed(CountError::NothingToMerge));
        }
        let mut model = Ngram::from_counts(&job.params, job.lexicon, &all)?;
        model.add_fact("tokens", all.n_tokens());
        model.add_fact("sentences", n_sentences(&sums)?);
        Ok(Step::Model(Box::new(model)))
    }
}

fn arrays(counts: &NgramCounts, n_sentences: u64) -> Arrays {
    Arrays::new().with(COUNTS, counts.to_bytes()).with(SENTENCES, vec![n_sentences])
}

fn counts(arrays: &Arrays) -> Result<NgramCounts, FitError> {
    let bytes = arrays.expect_any::<u8>(COUNTS)?;
    NgramCounts::from_bytes(bytes, "n-gram counts of a shard").map_err(failed)
}

fn n_sentences(arrays: &Arrays) -> Result<u64, FitError> {
    Ok(arrays.expect::<u64>(SENTENCES, 1)?[0])
}

fn failed(error: CountError) -> FitError {
    FitError::step("count n-grams")(error)
}
