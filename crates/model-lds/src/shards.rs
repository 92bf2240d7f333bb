//! Lagged counts of the shards of a text.

use crate::fit::LdsInputs;
use crate::model::Lds;
use crate::params::LdsParams;
use latens_corpus::{Corpus, Lexicon, ReadError, Sentences};
use latens_counts::{Budget, CountError, LagCounts};
use latens_model::shards::{Arrays, Computed, Job, Part, ShardState, Sharded, Step};
use latens_model::{Fit, FitError, Valid};
use std::ops::ControlFlow;

/// Counts pairs of words in shards in one round, and learns a linear dynamical system from the sums.
///
/// Pairs of words do not cross the ends of shards. If every shard consists of whole files, the model is that of one
/// process.
pub struct LdsShards;

const COUNTS: &str = "counts";

impl Sharded for LdsShards {
    const KIND: &'static str = Lds::KIND;
    type Params = LdsParams;
    type Text = Sentences;

    fn begin(_: &Valid<LdsParams>, _: &Lexicon, _: Arrays) -> Result<ShardState, FitError> {
        Ok(ShardState { n_rounds: Some(1), ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<Sentences, ReadError> {
        part.sentences(lexicon)
    }

    fn statistics(
        job: &Job<'_, LdsParams>,
        _: usize,
        text: &Sentences,
        _: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        let corpus = corpus(job, text.clone());
        let (lags, boundary) = (job.params.counted_lags(), job.params.boundary);
        let watch = &mut |_| ControlFlow::Continue(());
        let counts = LagCounts::of(&corpus, lags, boundary, &Budget::default(), watch);
        Ok(Arrays::new().with(COUNTS, counts.map_err(failed)?.to_bytes()).into())
    }

    fn merge(a: Arrays, b: Arrays) -> Result<Arrays, FitError> {
        let sum = LagCounts::merge(&[counts(&a)?, counts(&b)?], &Budget::default());
        Ok(Arrays::new().with(COUNTS, sum.map_err(failed)?.to_bytes()))
    }

    fn update(job: &Job<'_, LdsParams>, sums: Arrays) -> Result<Step, FitError> {
        let inputs = LdsInputs::default().take_counts(counts(&sums)?);
        let nothing = corpus(job, Sentences::from_words::<Vec<_>>([]));
        let model = job.params.clone().into_inner().with(inputs).fit(&nothing)?;
        Ok(Step::Model(Box::new(model)))
    }
}

fn corpus(job: &Job<'_, LdsParams>, sentences: Sentences) -> Corpus {
    Corpus { lexicon: job.lexicon.clone(), sentences }
}

fn counts(arrays: &Arrays) -> Result<LagCounts, FitError> {
    let bytes = arrays.expect_any::<u8>(COUNTS)?;
    LagCounts::from_bytes(bytes, "lagged counts of a shard").map_err(failed)
}

fn failed(error: CountError) -> FitError {
    FitError::step("count pairs")(error)
}
