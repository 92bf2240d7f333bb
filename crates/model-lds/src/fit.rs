//! From counts to a model.

use crate::learn::moments::text_moments::Moments;
use crate::learn::trainer::{Learned, State, Task, learn};
use crate::model::Lds;
use crate::params::LdsParams;
use latens_corpus::{Corpus, Sentences};
use latens_counts::{Budget, CountError, LagCounts};
use latens_model::{Checkpoint, FitError, ParamError, Progress, Valid, Watch, fingerprint};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// What a model learns from.
pub struct Training<'a> {
    /// Counts of pairs of words. They are taken apart as the model's own form of them is made, so that there
    /// are never two copies.
    pub counts: LagCounts,
    /// Text that decides when to stop, read with the lexicon of the counts.
    pub valid: Option<&'a Sentences>,
}

impl<'a> Training<'a> {
    /// Counts a text; it is not read again.
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
    /// Learns a model.
    ///
    /// Facts of it say what was measured: `gain` of the counts and `valid_gain` of held-out text, in nats a
    /// token over independent words; `pseudo_counts`; `best_iteration`; and what went wrong, if anything did
    /// ([`Lds::warnings`]).
    pub fn fit(
        params: &Valid<LdsParams>,
        training: Training<'_>,
        watch: &mut Watch,
    ) -> Result<Lds, FitError> {
        fit_from(None, params, training, watch)
    }

    /// Goes on from a checkpoint of [`Lds::fit`] with the same parameters and counts; only `n_iterations` may
    /// be another.
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
    Lds::from_learned(params.clone(), lexicon, facts, mu, unigrams, best)
        .map_err(FitError::step("use the model"))
}

/// Refuses what no model can be learned from.
fn check(params: &LdsParams, counts: &LagCounts) -> Result<(), FitError> {
    let param = |name, must: String, got: String| FitError::Params(ParamError { name, must, got });
    if counts.boundary() != params.boundary {
        let must = format!("{:?}, as in the counts", counts.boundary()).to_lowercase();
        return Err(param("boundary", must, format!("{:?}", params.boundary).to_lowercase()));
    }
    let n_types = counts.unigrams().iter().filter(|&&count| count > 0).count();
    if n_types < 3 {
        let has = format!("{n_types}, ends of sentences among them");
        return Err(FitError::not_enough_data("at least 3 different words", has));
    }
    let needed = params.counted_lags();
    if counts.n_lags() < needed {
        let must = format!("at most {}, the lags that were counted", counts.n_lags());
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
        let needs = format!("words {needed} tokens apart");
        return Err(FitError::not_enough_data(needs, "none"));
    }
    let most = n_types - 1;
    if params.dim > most {
        let must = format!("at most {most}, one less than the number of different words");
        return Err(param("dim", must, params.dim.to_string()));
    }
    Ok(())
}

/// What is added to every count.
struct PseudoCounts {
    used: f64,
    /// Whether more was used than was asked for.
    is_raised: bool,
}

/// Words seen so often need no pseudo-counts.
const OFTEN: u64 = 50;

impl PseudoCounts {
    /// Without pseudo-counts, words that were seen once, each after the other, are certain to follow each
    /// other: such a model is worth nothing elsewhere, and its covariances have no inverse.
    fn choose(params: &LdsParams, counts: &LagCounts) -> PseudoCounts {
        let usual = 0.2 * counts.n_tokens() as f64 / counts.unigrams().len() as f64;
        let usual = if usual < 1.0 { 1.0 } else { usual.round() };
        let asked = params.pseudo_counts.unwrap_or(usual);
        let has_rare = counts.unigrams().iter().any(|&count| count < OFTEN);
        let is_raised = has_rare && asked < 1.0;
        PseudoCounts { used: if is_raised { 1.0 } else { asked }, is_raised }
    }
}

fn facts(params: &LdsParams, state: &State, pseudo_counts: &PseudoCounts) -> Map<String, Value> {
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

fn warnings(params: &LdsParams, state: &State, pseudo_counts: &PseudoCounts) -> Vec<String> {
    let mut warnings = Vec::new();
    if pseudo_counts.is_raised {
        warnings.push(format!(
            "`pseudo_counts` = {} is too few for words seen fewer than {OFTEN} times: 1 was used",
            params.pseudo_counts.unwrap_or(0.0)
        ));
    }
    if state.correlation > 0.9 {
        warnings.push(
            "some words are almost certain to follow each other: the model learns them by heart; \
             raise `pseudo_counts`"
                .to_owned(),
        );
    }
    if let Some(reason) = &state.stopped {
        warnings.push(format!(
            "EM stopped at iteration {}: {reason}; the model before it is kept; raise `pseudo_counts`",
            state.iteration
        ));
    }
    if state.worst_fall > 1e-2 {
        let worst = 100.0 * state.worst_fall;
        warnings.push(format!("the gain fell by {worst:.1} % in a step; raise `lags`"));
    }
    warnings
}

/// A number that two trainings share if they have the same counts, for all that anyone meets.
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
