//! Baum–Welch: expectation maximisation in closed form.

use crate::recursion::expected_counts::{Engine, Expected};
use crate::space::state_space::Support;
use crate::tables::probability_tables::{Batch, Kept, Tables};
use crate::train::batches::Data;
use crate::train::counts::{Counts, initial};
use crate::train::gradient::Task;
use latens_corpus::Vocab;
use latens_model::{
    Checkpoint, CheckpointError, Device, FitError, MakeCheckpoint, Progress, Watch,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::time::Instant;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    iteration: usize,
    best_iteration: Option<usize>,
    best_perplexity: Option<f64>,
    train_perplexity: Option<f64>,
    seconds: f64,
}

/// What came out of training.
pub(crate) struct Fitted {
    pub(crate) tables: Tables<f32>,
    pub(crate) facts: Map<String, Value>,
}

/// A model under estimation on some device.
pub(crate) trait Estimator {
    /// About how many numbers a batch may have, one for each token and state of its word.
    const BATCH_NUMBERS: usize;

    /// How many states a token is worked on with.
    fn states_per_token(&self) -> usize;

    /// Adds what a batch is expected to have done under the model.
    fn expect(&mut self, batch: &Batch<'_>) -> Result<(), FitError>;

    /// Σ ln p of the batches that were added, which are then forgotten by the next [`Estimator::maximize`].
    fn log_prob(&mut self) -> Result<f64, FitError>;

    /// The model that makes what was expected most likely.
    fn maximize(&mut self, prior: f64) -> Result<(), FitError>;

    /// Σ ln p of other sentences.
    fn score(&mut self, batches: &[Batch<'_>]) -> Result<f64, FitError>;

    /// The model; its emissions are rows of all states of a cluster.
    fn tables(&self) -> Result<Tables<f32>, FitError>;
}

/// The estimator on the CPU.
pub(crate) struct CpuEstimator<'a> {
    support: &'a Support,
    n_tags: usize,
    tables: Tables<f32>,
    counts: Counts,
    engine: Engine<f32>,
    expected: Expected<f32>,
    log_prob: f64,
}

impl<'a> CpuEstimator<'a> {
    /// An estimator that begins with a model whose emissions are rows of all states of a cluster.
    pub(crate) fn new(support: &'a Support, n_tags: usize, mut tables: Tables<f32>) -> Self {
        tables.lists = support.kept_lists(&Kept::all(support));
        if let Some(lists) = &tables.lists {
            tables.emission = lists.gather(&tables.emission, support.k);
        }
        CpuEstimator {
            support,
            n_tags,
            counts: Counts::new(support, tables.emission.len(), n_tags),
            tables,
            engine: Engine::default(),
            expected: Expected::default(),
            log_prob: 0.0,
        }
    }
}

impl Estimator for CpuEstimator<'_> {
    /// What fits in the cache.
    const BATCH_NUMBERS: usize = 1 << 21;

    fn states_per_token(&self) -> usize {
        let lists = self.tables.lists.as_ref();
        lists.map_or(self.support.k, |lists| lists.n_values() / lists.n_slots().max(1))
    }

    fn expect(&mut self, batch: &Batch<'_>) -> Result<(), FitError> {
        let CpuEstimator { support, tables, counts, engine, expected, log_prob, .. } = self;
        *log_prob += engine.expectations(support, tables, batch, expected).iter().sum::<f64>();
        counts.add(tables, expected);
        Ok(())
    }

    fn log_prob(&mut self) -> Result<f64, FitError> {
        Ok(self.log_prob)
    }

    fn maximize(&mut self, prior: f64) -> Result<(), FitError> {
        self.counts.maximize(self.support, prior, &mut self.tables);
        self.counts = Counts::new(self.support, self.tables.emission.len(), self.n_tags);
        self.log_prob = 0.0;
        Ok(())
    }

    fn score(&mut self, batches: &[Batch<'_>]) -> Result<f64, FitError> {
        let CpuEstimator { support, tables, engine, .. } = self;
        Ok(batches.iter().flat_map(|batch| engine.log_probs(support, tables, batch)).sum())
    }

    fn tables(&self) -> Result<Tables<f32>, FitError> {
        let mut tables = self.tables.clone();
        tables.list_all_states();
        Ok(tables)
    }
}

pub(crate) fn fit(
    task: &Task<'_>,
    vocab: &Vocab,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Fitted, FitError> {
    let mut tables = initial(task.params, task.support, vocab, task.n_tags);
    let mut best: Option<Tables<f32>> = None;
    let mut state = State {
        iteration: 0,
        best_iteration: None,
        best_perplexity: None,
        train_perplexity: None,
        seconds: 0.0,
    };
    if let Some(checkpoint) = checkpoint {
        (state, best) = restore(task, checkpoint, &mut tables)?;
    }
    match task.device {
        Device::Cpu => {
            let estimator = CpuEstimator::new(task.support, task.n_tags, tables);
            estimate(task, estimator, state, best, watch)
        }
        Device::Cuda => estimate(task, cuda_estimator(task, tables)?, state, best, watch),
    }
}

#[cfg(feature = "cuda")]
fn cuda_estimator<'a>(
    task: &Task<'a>,
    tables: Tables<f32>,
) -> Result<crate::cuda::baum_welch::CudaEstimator<'a>, FitError> {
    crate::cuda::baum_welch::CudaEstimator::new(task.support, &tables, latens_cuda::Precision::Fast)
        .map_err(|error| FitError::Device { device: task.device, problem: error.to_string() })
}

#[cfg(not(feature = "cuda"))]
fn cuda_estimator<'a>(task: &Task<'a>, _: Tables<f32>) -> Result<CpuEstimator<'a>, FitError> {
    let problem = "this program was built without CUDA".to_owned();
    Err(FitError::Device { device: task.device, problem })
}

fn estimate<E: Estimator>(
    task: &Task<'_>,
    mut estimator: E,
    mut state: State,
    mut best: Option<Tables<f32>>,
    watch: &mut Watch,
) -> Result<Fitted, FitError> {
    let batches = batches(&task.train, estimator.states_per_token(), E::BATCH_NUMBERS);
    while state.iteration < task.params.epochs {
        let started = Instant::now();
        for (at, batch) in batches.iter().enumerate() {
            estimator.expect(batch)?;
            let done = (state.iteration * batches.len() + at) as u64;
            progress(task, done, &batches, &[], None).report(watch)?;
        }
        let log_prob = estimator.log_prob()?;
        if !log_prob.is_finite() {
            // What was good on held-out text before is kept.
            if best.is_some() {
                break;
            }
            let (needs, has) = ("sentences that the model can make", "one that it cannot");
            return Err(FitError::not_enough_data(needs, has));
        }
        estimator.maximize(task.params.prior)?;
        state.seconds = started.elapsed().as_secs_f64();
        let train = (-log_prob / task.train.sentences.n_tokens().max(1) as f64).exp();
        state.iteration += 1;
        let mut metrics = vec![("train_perplexity", train)];
        if let Some(valid) = &task.valid {
            let log_prob = estimator.score(&valid.scored_batches())?;
            let perplexity = (-log_prob / valid.sentences.n_tokens().max(1) as f64).exp();
            // An impossible sentence makes every model infinitely bad: that tells nothing.
            let is_better = state.best_perplexity.is_none_or(|best| perplexity < best);
            if is_better && perplexity.is_finite() {
                state.best_perplexity = Some(perplexity);
                state.best_iteration = Some(state.iteration);
                best = Some(estimator.tables()?);
            }
            metrics.push(("valid_perplexity", perplexity));
        }
        // Of the iteration whose model is kept.
        if state.best_iteration.is_none_or(|best| best == state.iteration) {
            state.train_perplexity = Some(train);
        }
        metrics.push(("seconds_per_epoch", state.seconds));
        let save = || Ok(checkpoint_of(task, &state, &estimator.tables()?, best.as_ref()));
        let done = (state.iteration * batches.len()) as u64;
        progress(task, done, &batches, &metrics, Some(&save)).report(watch)?;
    }
    let mut facts = Map::new();
    facts.insert("epochs".into(), json!(state.iteration));
    facts.insert("train_perplexity".into(), json!(state.train_perplexity));
    facts.insert("valid_perplexity".into(), json!(state.best_perplexity));
    facts.insert("best_epoch".into(), json!(state.best_iteration));
    facts.insert("seconds_per_epoch".into(), json!(state.seconds));
    facts.retain(|_, value| !value.is_null());
    let tables = best.map_or_else(|| estimator.tables(), Ok)?;
    Ok(Fitted { tables, facts })
}

/// Sentences of about the same length together, with about so many numbers: one for each token and each of k states.
fn batches<'a>(data: &Data<'a>, k: usize, n_numbers: usize) -> Vec<Batch<'a>> {
    data.sequences().in_batches(n_numbers / k.max(256))
}

fn progress<'a>(
    task: &Task<'_>,
    done: u64,
    batches: &[Batch<'_>],
    metrics: &'a [(&'static str, f64)],
    checkpoint: Option<&'a MakeCheckpoint<'a>>,
) -> Progress<'a> {
    let total = Some((task.params.epochs * batches.len()) as u64);
    let iteration = Some(done / batches.len().max(1) as u64);
    Progress { phase: "learn", done, total, unit: "batches", metrics, iteration, checkpoint }
}

const ARRAYS: [&str; 4] = ["start", "transition", "emission", "tags"];

fn arrays(tables: &Tables<f32>) -> [&Vec<f32>; 4] {
    [&tables.start, &tables.transition, &tables.emission, &tables.tags]
}

fn checkpoint_of(
    task: &Task<'_>,
    state: &State,
    tables: &Tables<f32>,
    best: Option<&Tables<f32>>,
) -> Checkpoint {
    let mut checkpoint = Checkpoint::new(task.kind, task.params, task.fingerprint, state);
    for (prefix, tables) in [("", Some(tables)), ("best.", best)] {
        for (name, values) in ARRAYS.iter().zip(tables.into_iter().flat_map(arrays)) {
            checkpoint = checkpoint.with_array(&format!("{prefix}{name}"), &[values.len()], values);
        }
    }
    checkpoint
}

fn restore(
    task: &Task<'_>,
    checkpoint: &Checkpoint,
    tables: &mut Tables<f32>,
) -> Result<(State, Option<Tables<f32>>), CheckpointError> {
    checkpoint.check_fits(task.kind, task.params, task.fingerprint, &[])?;
    let state: State = checkpoint.state()?;
    let read = |prefix: &str| -> Result<Tables<f32>, CheckpointError> {
        let mut read = Vec::new();
        for (name, like) in ARRAYS.iter().zip(arrays(tables)) {
            let values: Vec<f32> = checkpoint.array(&format!("{prefix}{name}"), &[like.len()])?;
            if !values.iter().all(|value| (0.0..=1.0).contains(value)) {
                return Err(CheckpointError::Invalid { problem: "its probabilities are none" });
            }
            read.push(values);
        }
        let [start, transition, emission, tags] = read.try_into().expect("four were read");
        Ok(Tables { k: tables.k, start, transition, emission, lists: None, tags, factors: None })
    };
    let best = state.best_iteration.map(|_| read("best.")).transpose()?;
    let current = read("")?;
    *tables = current;
    Ok((state, best))
}
