//! The training loop: mini-batches, state dropout, schedules, the best model on held-out text.

use crate::batches::Data;
use crate::learner::{Choices, CpuLearner, Learner, LearnerState};
use crate::neural::Neural;
use crate::parameters::Parameters;
use crate::params::{HmmParams, Parameterization, Schedule, WordVectors};
use crate::scalar::Scalar;
use crate::support::Support;
use crate::tables::{Batch, Kept};
use latens_math::Rng;
use latens_model::{
    Checkpoint, CheckpointError, Device, FitError, Progress, Valid, Watch, check_that,
};
use latens_nn::{Dropout, Plateau};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Instant;

/// What came out of training.
pub(crate) struct Fitted {
    /// The best weights on held-out text, or the last ones without it.
    pub(crate) weights: Vec<f32>,
    pub(crate) facts: Map<String, Value>,
}

/// All that does not change while a model is trained.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<HmmParams>,
    pub(crate) support: &'a Support,
    pub(crate) spellings: Vec<&'a str>,
    pub(crate) n_tags: usize,
    pub(crate) train: Data<'a>,
    pub(crate) valid: Option<Data<'a>>,
    pub(crate) fingerprint: u64,
    pub(crate) device: Device,
    pub(crate) kind: &'static str,
}

/// How far training has come, apart from weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    /// Epochs that are over.
    epoch: usize,
    /// Mini-batches of this epoch that are over.
    batch: usize,
    /// Σ ln p, and the tokens it is over, of this epoch.
    log_prob: f64,
    n_tokens: u64,
    seconds: f64,
    n_steps: u64,
    plateau: Plateau,
    best_epoch: Option<usize>,
    best_perplexity: Option<f64>,
    train_perplexity: Option<f64>,
    seconds_per_epoch: Option<f64>,
}

/// Which random stream a choice comes from: one for each kind of choice and each place in the training, so
/// that training goes on from a checkpoint with the same choices.
fn stream(params: &HmmParams, kind: u64, epoch: usize, batch: usize) -> Rng {
    Rng::stream(params.seed ^ (kind << 56), ((epoch as u64) << 32) | batch as u64)
}

const WEIGHTS: u64 = 1;
const ORDER: u64 = 2;
const STATES: u64 = 3;
const UNITS: u64 = 4;

pub(crate) fn parameters(task: &Task<'_>) -> Box<dyn Parameters<f32>> {
    match task.params.parameterization {
        Parameterization::Scalar => Box::new(Scalar::new(task.support, task.n_tags)),
        Parameterization::Neural | Parameterization::Factored => {
            Box::new(Neural::new(task.params, task.support, &task.spellings, task.n_tags))
        }
    }
}

/// Trains by gradient, from the beginning or from a checkpoint.
pub(crate) fn fit(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Fitted, FitError> {
    let parameters = parameters(task);
    let n_weights = parameters.layout().len();
    let (state, learned, best) = match checkpoint {
        Some(checkpoint) => restore(task, checkpoint, n_weights)?,
        None => {
            let mut weights = vec![0.0; n_weights];
            parameters.init(&mut weights, &mut stream(task.params, WEIGHTS, 0, 0));
            (State::new(task.params), LearnerState::new(weights), None)
        }
    };
    match task.device {
        Device::Cpu => {
            let learner = CpuLearner::new(task.params, task.support, parameters, learned);
            Trainer { task, learner, state, best, diverged: None }.run(watch)
        }
        Device::Cuda => {
            let learner = cuda_learner(task, &learned)?;
            Trainer { task, learner, state, best, diverged: None }.run(watch)
        }
    }
}

/// The most states of a word, and the longest embedding, that the device's kernels have room for.
const MAX_STATES_OF_WORD: usize = 5_824;
const MAX_DIM: usize = 6_144;

/// Refuses what cannot be learned on the device.
pub(crate) fn check_device(task: &Task<'_>) -> Result<(), FitError> {
    let params = task.params;
    let words = [
        (params.word_vectors == WordVectors::Chars, "words read off letters"),
        (task.n_tags > 0, "tags"),
        (
            task.support.k > MAX_STATES_OF_WORD && task.support.n_clusters() > 1,
            "so many states for one word",
        ),
        (params.dim > MAX_DIM, "so long embeddings"),
    ];
    for (is_so, what) in words {
        let must = format!("`cpu` for a model with {what}");
        check_that(!is_so || task.device == Device::Cpu, "device", must, task.device)?;
    }
    Ok(())
}

#[cfg(feature = "cuda")]
fn cuda_learner<'a>(
    task: &Task<'a>,
    learned: &LearnerState,
) -> Result<crate::cuda::CudaLearner<'a>, FitError> {
    let (parameters, precision) = (parameters(task), latens_cuda::Precision::Fast);
    let layout = parameters.layout();
    crate::cuda::CudaLearner::new(task.params, task.support, layout, learned, precision)
        .map_err(|error| FitError::Device { device: task.device, problem: error.to_string() })
}

#[cfg(not(feature = "cuda"))]
fn cuda_learner<'a>(task: &Task<'a>, _: &LearnerState) -> Result<CpuLearner<'a>, FitError> {
    let problem = "this program was built without CUDA".to_owned();
    Err(FitError::Device { device: task.device, problem })
}

struct Trainer<'t, L> {
    task: &'t Task<'t>,
    learner: L,
    state: State,
    /// The best weights so far on held-out text.
    best: Option<Arc<Vec<f32>>>,
    /// The epoch, counted from 1, in which the loss was no longer a number.
    diverged: Option<usize>,
}

impl<'t, L: Learner> Trainer<'t, L> {
    fn run(mut self, watch: &mut Watch) -> Result<Fitted, FitError> {
        while self.state.epoch < self.task.params.epochs && self.diverged.is_none() {
            self.epoch(watch)?;
        }
        self.check_last()?;
        self.finish()
    }

    fn epoch(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        let params = self.task.params;
        let epoch = self.state.epoch;
        let mut order = stream(params, ORDER, epoch, 0);
        let train = &self.task.train;
        let sequences = train.drawn_sequences(&mut order);
        let batch_tokens = params.batch_tokens_of(train.sentences.n_tokens());
        let batches = sequences.shuffled(batch_tokens, &mut order);
        let mut started = Instant::now();
        let mut next = batches
            .get(self.state.batch)
            .map(|idxs| self.prepare(sequences.batch(idxs), self.state.batch));
        for at in self.state.batch..batches.len() {
            let (batch, plan, choices) = next.take().expect("one was made ready for each batch");
            let rate = self.learning_rate(batches.len());
            self.learner.begin_step(&batch, &plan, &choices, rate)?;
            // While a device works, the next batch is made ready.
            next = batches.get(at + 1).map(|idxs| self.prepare(sequences.batch(idxs), at + 1));
            let log_prob = self.learner.end_step()?;
            if !log_prob.is_finite() {
                self.diverged = Some(epoch + 1);
                return Ok(());
            }
            self.state.batch = at + 1;
            self.state.n_steps += 1;
            self.state.log_prob += log_prob;
            self.state.n_tokens += batch.n_tokens() as u64;
            self.state.seconds += started.elapsed().as_secs_f64();
            started = Instant::now();
            if at + 1 < batches.len() {
                self.report(batches.len(), &[], watch)?;
            }
        }
        self.end_epoch(batches.len(), watch)
    }

    /// A mini-batch of this epoch with what is drawn for it.
    fn prepare(&self, batch: Batch<'t>, at: usize) -> (Batch<'t>, L::Plan, Choices) {
        let (params, epoch) = (self.task.params, self.state.epoch);
        let mut states = stream(params, STATES, epoch, at);
        let kept = Kept::draw(self.task.support, params.state_dropout, &mut states);
        let seed = (stream(params, UNITS, epoch, at).uniform() * 2f64.powi(53)) as u64;
        let dropout = (params.dropout > 0.0).then(|| Dropout::new(params.dropout, seed));
        let plan = self.learner.plan(&batch, &kept);
        (batch, plan, Choices { kept, dropout })
    }

    fn learning_rate(&self, n_batches: usize) -> f64 {
        let params = self.task.params;
        let n_steps = (n_batches * params.epochs) as u64;
        match params.schedule {
            Schedule::Constant => params.learning_rate,
            Schedule::Cosine => {
                let rate = params.learning_rate;
                latens_nn::Schedule::Cosine { rate, n_steps, n_warmup: 0 }.rate(self.state.n_steps)
            }
            Schedule::Plateau => self.state.plateau.rate(),
        }
    }

    /// Measures the model, keeps it if it is the best so far, and begins the next epoch.
    fn end_epoch(&mut self, n_batches: usize, watch: &mut Watch) -> Result<(), FitError> {
        let train = (-self.state.log_prob / self.state.n_tokens.max(1) as f64).exp();
        let (mut metrics, mut measured) = (vec![("train_perplexity", train)], train);
        if let Some(valid) = &self.task.valid {
            let log_prob = self.learner.log_prob(&valid.scored_batches())?;
            let perplexity = (-log_prob / valid.sentences.n_tokens() as f64).exp();
            metrics.push(("valid_perplexity", perplexity));
            // An impossible sentence makes every model infinitely bad: that tells nothing.
            if perplexity != f64::INFINITY {
                measured = perplexity;
                let is_better = self.state.best_perplexity.is_none_or(|best| perplexity < best);
                if is_better && perplexity.is_finite() {
                    self.state.best_perplexity = Some(perplexity);
                    self.state.best_epoch = Some(self.state.epoch + 1);
                    self.best = Some(Arc::new(self.learner.weights()?));
                }
            }
        }
        self.state.plateau.observe(measured);
        if !train.is_finite() || measured.is_nan() {
            self.diverged = Some(self.state.epoch + 1);
        }
        metrics.push(("seconds_per_epoch", self.state.seconds));
        self.state.train_perplexity = Some(train);
        self.state.seconds_per_epoch = Some(self.state.seconds);
        self.state.epoch += 1;
        (self.state.batch, self.state.log_prob, self.state.n_tokens) = (0, 0.0, 0);
        self.state.seconds = 0.0;
        self.report(n_batches, &metrics, watch)
    }

    fn report(
        &self,
        n_batches: usize,
        metrics: &[(&'static str, f64)],
        watch: &mut Watch,
    ) -> Result<(), FitError> {
        let checkpoint = || self.checkpoint();
        let done = (self.state.epoch * n_batches + self.state.batch) as u64;
        Progress {
            phase: "learn",
            done,
            total: Some((self.task.params.epochs * n_batches) as u64),
            unit: "batches",
            metrics,
            iteration: Some(self.state.epoch as u64),
            checkpoint: Some(&checkpoint),
        }
        .report(watch)
    }

    fn checkpoint(&self) -> Result<Checkpoint, FitError> {
        let LearnerState { weights, mean, square, .. } = self.learner.state()?;
        let n = [weights.len()];
        let mut checkpoint =
            Checkpoint::new(self.task.kind, self.task.params, self.task.fingerprint, &self.state)
                .with_shared_array("weights", &n, weights.into())
                .with_shared_array("mean", &n, mean.into())
                .with_shared_array("square", &n, square.into());
        if let Some(best) = &self.best {
            checkpoint = checkpoint.with_shared_array("best", &n, Arc::clone(best));
        }
        Ok(checkpoint)
    }

    /// Where no held-out text has shown that a model is sound, the last one must still make the text that it
    /// was learned from.
    fn check_last(&mut self) -> Result<(), FitError> {
        if self.best.is_some() || self.diverged.is_some() || self.state.epoch == 0 {
            return Ok(());
        }
        let mut batches = self.task.train.scored_batches();
        batches.truncate(1);
        if !self.learner.log_prob(&batches)?.is_finite() {
            self.diverged = Some(self.state.epoch);
        }
        Ok(())
    }

    /// The best model; if there is none, the last one, unless that is lost.
    fn finish(self) -> Result<Fitted, FitError> {
        let State { epoch, train_perplexity, best_epoch, best_perplexity, .. } = self.state;
        let weights = match (self.best, self.diverged) {
            (Some(best), _) => Arc::unwrap_or_clone(best),
            (None, Some(epoch)) => {
                return Err(FitError::Diverged { epoch, lower: "learning_rate" });
            }
            (None, None) => self.learner.weights()?,
        };
        let mut facts = Map::new();
        facts.insert("epochs".into(), json!(epoch));
        let mut fact = |name: &str, value: Option<Value>| {
            facts.extend(value.map(|value| (name.to_owned(), value)));
        };
        fact("train_perplexity", train_perplexity.map(|value| json!(value)));
        fact("valid_perplexity", best_perplexity.map(|value| json!(value)));
        fact("best_epoch", best_epoch.map(|value| json!(value)));
        fact("seconds_per_epoch", self.state.seconds_per_epoch.map(|value| json!(value)));
        fact("diverged_in_epoch", self.diverged.map(|epoch| json!(epoch)));
        Ok(Fitted { weights, facts })
    }
}

impl State {
    fn new(params: &HmmParams) -> State {
        /// The factor by which the learning rate falls after an epoch without gain.
        const FACTOR: f64 = 4.0;
        State {
            epoch: 0,
            batch: 0,
            log_prob: 0.0,
            n_tokens: 0,
            seconds: 0.0,
            n_steps: 0,
            plateau: Plateau::new(params.learning_rate, FACTOR, 1),
            best_epoch: None,
            best_perplexity: None,
            train_perplexity: None,
            seconds_per_epoch: None,
        }
    }
}

fn restore(
    task: &Task<'_>,
    checkpoint: &Checkpoint,
    n_weights: usize,
) -> Result<(State, LearnerState, Option<Arc<Vec<f32>>>), CheckpointError> {
    checkpoint.check_fits(task.kind, task.params, task.fingerprint, &[])?;
    let state: State = checkpoint.state()?;
    let array = |name: &str| checkpoint.array::<f32>(name, &[n_weights]);
    let (weights, mean, square) = (array("weights")?, array("mean")?, array("square")?);
    let best = state.best_epoch.map(|_| array("best")).transpose()?;
    let is_finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
    let best_is_finite = best.as_deref().is_none_or(is_finite);
    let moments_can_be = is_finite(&mean) && is_finite(&square) && square.iter().all(|&v| v >= 0.0);
    if state.epoch > task.params.epochs
        || !is_finite(&weights)
        || !best_is_finite
        || !moments_can_be
    {
        return Err(CheckpointError::Invalid { problem: "its weights or epochs cannot be" });
    }
    let n_steps = state.n_steps;
    Ok((state, LearnerState { weights, mean, square, n_steps }, best.map(Arc::new)))
}
