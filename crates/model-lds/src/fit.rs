//! Fitting a model to the counts of a corpus.

use crate::cost::cost;
use crate::learn::facts::facts;
use crate::learn::moments::text_moments::Moments;
use crate::learn::pseudo_counts::PseudoCounts;
use crate::learn::state::{Learned, Measured, Task};
use crate::learn::trainer::learn;
use crate::linalg::error::NumericError;
use crate::model::{Lds, LdsParts};
use crate::params::LdsParams;
use crate::system::canonical::rotate;
use latens_corpus::{Corpus, Lexicon, Sentences};
use latens_counts::{Budget, CountError, LagCounts, LagMatrix};
use latens_model::{
    Checkpoint, Cost, Fit, FitError, ParamError, Progress, Session, Setup, Valid, Watch,
    data_fingerprint, fingerprint,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::time::Instant;

/// Additional inputs of a linear dynamical system.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LdsInputs<'a> {
    /// Counts of pairs of words. If given, training uses them and does not read the sentences of the corpus.
    pub counts: Option<Cow<'a, LagCounts>>,
}

impl<'a> LdsInputs<'a> {
    /// Learns from these counts instead of the sentences of the corpus.
    #[must_use]
    pub fn counts(mut self, counts: &'a LagCounts) -> Self {
        self.counts = Some(Cow::Borrowed(counts));
        self
    }

    /// Like [`LdsInputs::counts`], but training consumes the counts, so that memory never holds two copies.
    #[must_use]
    pub fn take_counts(mut self, counts: LagCounts) -> Self {
        self.counts = Some(Cow::Owned(counts));
        self
    }
}

/// Fits a model to the counts of pairs of words in a corpus.
///
/// The facts of the model contain `gain` of the counts and `valid_gain` of held-out text, both in nats per token
/// relative to independent words, `pseudo_counts`, `best_iteration` and, if there are any, `warnings`
/// ([`Lds::warnings`]).
impl Fit for LdsParams {
    type Model = Lds;
    type Data = Corpus;
    type Inputs<'a> = LdsInputs<'a>;
    type Error = FitError;

    fn cost_with(
        params: &LdsParams,
        corpus: &Corpus,
        inputs: &LdsInputs<'_>,
        _: &Setup<'_>,
    ) -> Cost {
        cost(params, corpus, inputs.counts.as_deref())
    }

    fn fit_with(
        params: &Valid<LdsParams>,
        corpus: &Corpus,
        inputs: LdsInputs<'_>,
        session: Session<'_>,
    ) -> Result<Lds, FitError> {
        session.refuse_cuda()?;
        let Session { valid, checkpoint, watch, .. } = session;
        let counts = match inputs.counts {
            Some(counts) if !counts.vocab().words().eq(corpus.lexicon.vocab.words()) => {
                let must = "counts with the vocabulary of the corpus".to_owned();
                let got = "counts with a different vocabulary".to_owned();
                return Err(ParamError { name: "counts", must, got }.into());
            }
            Some(counts) => counts,
            None => Cow::Owned(count(params, corpus, watch)?),
        };
        fit_counts(params, counts, valid, checkpoint, watch)
    }
}

/// Counts the pairs of words of a text.
fn count(
    params: &Valid<LdsParams>,
    corpus: &Corpus,
    watch: &mut Watch,
) -> Result<LagCounts, FitError> {
    let total = Some(corpus.sentences.n_tokens() as u64);
    let mut report = |done: usize| {
        let (phase, unit) = ("count pairs", "tokens");
        watch(&Progress { phase, done: done as u64, total, unit, ..Progress::default() })
    };
    let (lags, boundary) = (params.counted_lags(), params.boundary);
    let counts = LagCounts::of(corpus, lags, boundary, &Budget::default(), &mut report);
    counts.map_err(|error| match error {
        CountError::Interrupted => FitError::Interrupted,
        error => FitError::step("count pairs")(error),
    })
}

fn fit_counts(
    params: &Valid<LdsParams>,
    counts: Cow<'_, LagCounts>,
    valid: Option<&Sentences>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Lds, FitError> {
    let started = Instant::now();
    let fingerprint = counts_fingerprint(&counts, valid);
    if let Some(checkpoint) = checkpoint {
        checkpoint.check_fits(Lds::KIND, params, fingerprint, &["n_iterations"])?;
    }
    check(params, &counts)?;
    let pseudo_counts = PseudoCounts::choose(params, &counts);
    let (n_tokens, lexicon) = (counts.n_tokens(), counts.lexicon().clone());
    let unigrams = counts.unigrams().to_vec();
    let moments = moments(&unigrams, counts, params.counted_lags(), pseudo_counts.used);
    let task = Task { params, moments: &moments, valid, fingerprint, kind: Lds::KIND };
    let learned = learn(&task, checkpoint, watch)?;
    let mut facts = facts(params, &learned.state, &pseudo_counts);
    facts.insert("tokens".into(), n_tokens.into());
    facts.insert("seconds".into(), started.elapsed().as_secs_f64().into());
    let Learned { best, .. } = learned;
    let mu = moments.mu().to_vec();
    drop(moments);
    finish(params.clone(), lexicon, facts, mu, unigrams, best)
        .map_err(FitError::step("finish the model"))
}

/// The covariances from counts. Counts that are owned are freed lag by lag.
fn moments(
    unigrams: &[u64],
    counts: Cow<'_, LagCounts>,
    n_lags: usize,
    pseudo_counts: f64,
) -> Moments<f32> {
    let to_csr = |lag: &LagMatrix| lag.to_csr(|n| n as f32);
    match counts {
        Cow::Owned(counts) => {
            let lags = counts.into_lags().take(n_lags);
            Moments::new(unigrams, lags.map(|lag| to_csr(&lag)), pseudo_counts)
        }
        Cow::Borrowed(counts) => {
            let lags = counts.lags().iter().take(n_lags);
            Moments::new(unigrams, lags.map(to_csr), pseudo_counts)
        }
    }
}

/// The model in its final form, with the state rotated.
fn finish(
    params: Valid<LdsParams>,
    lexicon: Lexicon,
    facts: Map<String, Value>,
    mu: Vec<f64>,
    counts: Vec<u64>,
    best: Measured,
) -> Result<Lds, NumericError> {
    let (system, rotation) = best.model.rotated()?;
    let filtered_moment = rotate(&best.moments.filtered, &rotation);
    let smoothed_moment = rotate(&best.moments.smoothed, &rotation);
    drop(best);
    Lds::new(LdsParts {
        params,
        lexicon,
        facts,
        mu,
        counts,
        system,
        filtered_moment,
        smoothed_moment,
    })
}

/// Checks that a model with these parameters can be learned from the counts.
fn check(params: &LdsParams, counts: &LagCounts) -> Result<(), FitError> {
    let param = |name, must: String, got: String| FitError::Params(ParamError { name, must, got });
    if counts.boundary() != params.boundary {
        let must = format!("{:?}, the boundary of the counts", counts.boundary()).to_lowercase();
        return Err(param("boundary", must, format!("{:?}", params.boundary).to_lowercase()));
    }
    let n_types = counts.unigrams().iter().filter(|&&count| count > 0).count();
    if n_types < 3 {
        let has = format!("{n_types}, including the end of sentence");
        return Err(FitError::not_enough_data("at least 3 distinct words", has));
    }
    let needed = params.counted_lags();
    if counts.n_lags() < needed {
        let must = format!("at most {}, the number of counted lags", counts.n_lags());
        let too_far = params.lags > counts.n_lags();
        return Err(match too_far {
            true => param("lags", must, params.lags.to_string()),
            false => {
                let must = format!(
                    "at most {}, for {} counted lags",
                    counts.n_lags().div_ceil(2),
                    counts.n_lags()
                );
                param("ssid_lags", must, params.ssid_lags.to_string())
            }
        });
    }
    if counts.lag(needed).total() == 0 {
        let needs = format!("pairs of words {needed} tokens apart");
        return Err(FitError::not_enough_data(needs, "none"));
    }
    let max_dim = n_types - 1;
    if params.dim > max_dim {
        let must = format!("at most {max_dim}, one less than the number of distinct words");
        return Err(param("dim", must, params.dim.to_string()));
    }
    Ok(())
}

/// A fingerprint of the counts and the held-out text.
fn counts_fingerprint(counts: &LagCounts, valid: Option<&Sentences>) -> u64 {
    let halves = |number: u64| [number as u32, (number >> 32) as u32];
    let mut numbers: Vec<u64> = vec![counts.vocab().fingerprint()];
    numbers.extend(counts.unigrams());
    for lag in counts.lags() {
        numbers.push(lag.nnz() as u64);
        numbers.extend(lag.row_sums());
        numbers.extend(lag.column_sums());
    }
    if let Some(valid) = valid {
        numbers.push(data_fingerprint(counts.vocab(), valid));
    }
    fingerprint(numbers.into_iter().flat_map(halves))
}
