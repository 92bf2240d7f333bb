//! Fitting a model to counts.

use crate::learn::moments::text_moments::Moments;
use crate::learn::state::{Learned, Measured, Task, TrainingState};
use crate::learn::trainer::learn;
use crate::linalg::error::NumericError;
use crate::model::{Lds, LdsParts};
use crate::params::LdsParams;
use crate::system::canonical::rotate;
use latens_corpus::{Corpus, Lexicon, Sentences};
use latens_counts::{Budget, CountError, LagCounts};
use latens_model::{Checkpoint, FitError, ParamError, Progress, Valid, Watch, fingerprint};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// The training data of a model.
pub struct Training<'a> {
    /// Counts of pairs of words. Training consumes them, so that memory never holds two copies.
    pub counts: LagCounts,
    /// Held-out text for early stopping, read with the lexicon of the counts.
    pub valid: Option<&'a Sentences>,
}

impl<'a> Training<'a> {
    /// Counts the pairs of words of a text. Training does not read the text again.
    pub fn of(
        params: &Valid<LdsParams>,
        corpus: &Corpus,
        valid: Option<&'a Sentences>,
        watch: &mut Watch,
    ) -> Result<Training<'a>, FitError> {
        let total = Some(corpus.sentences.n_tokens() as u64);
        let mut report = |done: usize| {
            let (phase, unit) = ("count pairs", "tokens");
            watch(&Progress { phase, done: done as u64, total, unit, ..Progress::default() })
        };
        let (lags, boundary) = (params.counted_lags(), params.boundary);
        let counts = LagCounts::of(corpus, lags, boundary, &Budget::default(), &mut report);
        let counts = counts.map_err(|error| match error {
            CountError::Interrupted => FitError::Interrupted,
            error => FitError::step("count pairs")(error),
        })?;
        Ok(Training { counts, valid })
    }
}

impl Lds {
    /// Fits a model.
    ///
    /// Its facts contain `gain` of the counts and `valid_gain` of held-out text, both in nats per token relative to
    /// independent words, `pseudo_counts`, `best_iteration` and, if there are any, `warnings` ([`Lds::warnings`]).
    pub fn fit(
        params: &Valid<LdsParams>,
        training: Training<'_>,
        watch: &mut Watch,
    ) -> Result<Lds, FitError> {
        fit_from(None, params, training, watch)
    }

    /// Resumes training from a checkpoint of [`Lds::fit`]. Parameters and counts must be the same, except for
    /// `n_iterations`.
    pub fn resume(
        params: &Valid<LdsParams>,
        training: Training<'_>,
        checkpoint: &Checkpoint,
        watch: &mut Watch,
    ) -> Result<Lds, FitError> {
        let fingerprint = counts_fingerprint(&training);
        checkpoint.check_fits(Lds::KIND, params, fingerprint, &["n_iterations"])?;
        fit_from(Some(checkpoint), params, training, watch)
    }
}

fn fit_from(
    checkpoint: Option<&Checkpoint>,
    params: &Valid<LdsParams>,
    training: Training<'_>,
    watch: &mut Watch,
) -> Result<Lds, FitError> {
    let started = Instant::now();
    check(params, &training.counts)?;
    let fingerprint = counts_fingerprint(&training);
    let Training { counts, valid } = training;
    let pseudo_counts = PseudoCounts::choose(params, &counts);
    let (n_tokens, lexicon) = (counts.n_tokens(), counts.lexicon().clone());
    let unigrams = counts.unigrams().to_vec();
    let lags = counts.into_lags().take(params.counted_lags());
    let moments =
        Moments::new(&unigrams, lags.map(|lag| lag.to_csr(|n| n as f32)), pseudo_counts.used);
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
        return Err(FitError::not_enough_data("at least 3 different words", has));
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
        let must = format!("at most {max_dim}, one less than the number of different words");
        return Err(param("dim", must, params.dim.to_string()));
    }
    Ok(())
}

/// The number added to the count of every word.
struct PseudoCounts {
    used: f64,
    /// Whether `used` is larger than the value of the parameter.
    is_raised: bool,
}

/// Words with at least this count need no pseudo-counts.
const FREQUENT: u64 = 50;

impl PseudoCounts {
    /// Without pseudo-counts, two words that occur once, one after the other, have a correlation of 1. Such a model
    /// does not generalize, and its covariances are singular.
    fn choose(params: &LdsParams, counts: &LagCounts) -> PseudoCounts {
        let default = 0.2 * counts.n_tokens() as f64 / counts.unigrams().len() as f64;
        let default = if default < 1.0 { 1.0 } else { default.round() };
        let requested = params.pseudo_counts.unwrap_or(default);
        let has_rare = counts.unigrams().iter().any(|&count| count < FREQUENT);
        let is_raised = has_rare && requested < 1.0;
        PseudoCounts { used: if is_raised { 1.0 } else { requested }, is_raised }
    }
}

fn facts(
    params: &LdsParams,
    state: &TrainingState,
    pseudo_counts: &PseudoCounts,
) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("gain".into(), state.gain.into());
    if let Some(gain) = state.valid_gain {
        facts.insert("valid_gain".into(), gain.into());
    }
    facts.insert("best_iteration".into(), state.best_iteration.into());
    facts.insert("iterations".into(), state.iteration.into());
    facts.insert("pseudo_counts".into(), pseudo_counts.used.into());
    facts.insert("clipped".into(), state.n_clipped.into());
    let warnings = warnings(params, state, pseudo_counts);
    if !warnings.is_empty() {
        facts.insert("warnings".into(), json!(warnings));
    }
    facts
}

fn warnings(
    params: &LdsParams,
    state: &TrainingState,
    pseudo_counts: &PseudoCounts,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if pseudo_counts.is_raised {
        warnings.push(format!(
            "`pseudo_counts` = {} is too small for words with fewer than {FREQUENT} occurrences: \
             1 was used",
            params.pseudo_counts.unwrap_or(0.0)
        ));
    }
    if state.correlation > 0.9 {
        warnings.push(
            "some words are almost certain to follow each other, which the model overfits; raise \
             `pseudo_counts`"
                .to_owned(),
        );
    }
    if let Some(reason) = &state.stopped {
        warnings.push(format!(
            "EM stopped at iteration {}: {reason}; the best earlier model is kept; raise \
             `pseudo_counts`",
            state.iteration
        ));
    }
    if state.worst_fall > 1e-2 {
        let worst = 100.0 * state.worst_fall;
        warnings.push(format!("the gain fell by {worst:.1} % in one iteration; raise `lags`"));
    }
    warnings
}

/// A fingerprint of the counts and the held-out text.
fn counts_fingerprint(training: &Training<'_>) -> u64 {
    let counts = &training.counts;
    let halves = |number: u64| [number as u32, (number >> 32) as u32];
    let mut numbers: Vec<u64> = vec![counts.vocab().fingerprint()];
    numbers.extend(counts.unigrams());
    for lag in counts.lags() {
        numbers.push(lag.nnz() as u64);
        numbers.extend(lag.row_sums());
        numbers.extend(lag.column_sums());
    }
    if let Some(valid) = training.valid {
        numbers.push(latens_model::data_fingerprint(counts.vocab(), valid));
    }
    fingerprint(numbers.into_iter().flat_map(halves))
}
