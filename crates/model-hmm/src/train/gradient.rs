//! Training by gradient: mini-batches, state dropout, learning rate schedules, the best epoch on validation text.

use crate::params::{HmmParams, Schedule};
use crate::recursion::batch::Batch;
use crate::space::kept_states::KeptStates;
use crate::steps::learner::{Choices, CpuLearner, DeviceLearner, LearnerState};
use crate::train::device::cuda_learner;
use crate::train::task::Task;
use latens_math::Rng;
use latens_model::{
    Checkpoint, CheckpointError, Device, Epochs, FitError, MakeCheckpoint, Progress, Watch,
};
use latens_nn::{Dropout, Plateau};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Instant;

/// The result of training.
pub(crate) struct Fitted {
    /// The best weights on the validation set, or the last ones without it.
    pub(crate) weights: Vec<f32>,
    pub(crate) facts: Map<String, Value>,
}

/// The progress of training, without the weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    #[serde(flatten)]
    epochs: Epochs,
    plateau: Plateau,
}

/// The random streams of training.
const WEIGHTS: u8 = 1;
const ORDER: u8 = 2;
const STATES: u8 = 3;
const UNITS: u8 = 4;

/// Trains by gradient, from scratch or from a checkpoint.
pub(crate) fn fit(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Fitted, FitError> {
    let mapping = task.mapping();
    let n_weights = mapping.layout().len();
    let (state, learned, best) = match checkpoint {
        Some(checkpoint) => restore(task, checkpoint, n_weights)?,
        None => {
            let mut weights = vec![0.0; n_weights];
            mapping.init(&mut weights, &mut Rng::at(task.params.seed, WEIGHTS, (0, 0)));
            (State::new(task.params), LearnerState::new(weights), None)
        }
    };
    let best = best.map(Arc::new);
    match task.device {
        Device::Cpu => {
            let learner = CpuLearner::new(task.params, task.space, mapping, learned);
            Trainer { task, learner, state, best }.run(watch)
        }
        Device::Cuda => {
            let learner = cuda_learner(task, &learned)?;
            Trainer { task, learner, state, best }.run(watch)
        }
    }
}

struct Trainer<'t, L> {
    task: &'t Task<'t>,
    learner: L,
    state: State,
    /// The best weights so far on the validation set.
    best: Option<Arc<Vec<f32>>>,
}

impl<'t, L: DeviceLearner> Trainer<'t, L> {
    fn run(mut self, watch: &mut Watch) -> Result<Fitted, FitError> {
        while self.state.epochs.goes_on(self.task.params.epochs) {
            self.epoch(watch)?;
        }
        self.check_last()?;
        self.finish()
    }

    fn epoch(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        let params = self.task.params;
        let (epoch, first) = (self.state.epochs.epoch, self.state.epochs.batch);
        let mut order = Rng::at(params.seed, ORDER, (epoch, 0));
        let train = &self.task.train;
        let sequences = train.drawn_sequences(&mut order);
        let batch_tokens = params.batch_tokens_of(train.sentences.n_tokens());
        let batches = sequences.shuffled(batch_tokens, &mut order);
        let mut started = Instant::now();
        let mut next = batches.get(first).map(|idxs| self.prepare(sequences.batch(idxs), first));
        for at in first..batches.len() {
            let (batch, plan, choices) = next.take().expect("every batch was prepared");
            let rate = self.learning_rate(batches.len());
            self.learner.begin_step(&batch, &plan, &choices, rate)?;
            // Prepares the next batch while the device works.
            next = batches.get(at + 1).map(|idxs| self.prepare(sequences.batch(idxs), at + 1));
            let log_prob = self.learner.end_step()?;
            if !log_prob.is_finite() {
                self.state.epochs.diverged_in_epoch = Some(epoch + 1);
                return Ok(());
            }
            self.state.epochs.step(log_prob, batch.n_tokens(), started.elapsed());
            started = Instant::now();
            if at + 1 < batches.len() {
                self.report(batches.len(), &[], watch)?;
            }
        }
        self.end_epoch(batches.len(), watch)
    }

    /// Plans a mini-batch of this epoch and draws its random choices.
    fn prepare(&self, batch: Batch<'t>, at: usize) -> (Batch<'t>, L::Plan, Choices) {
        let (params, epoch) = (self.task.params, self.state.epochs.epoch);
        let mut states = Rng::at(params.seed, STATES, (epoch, at));
        let kept = KeptStates::draw(self.task.space, params.state_dropout, &mut states);
        let seed = (Rng::at(params.seed, UNITS, (epoch, at)).uniform() * 2f64.powi(53)) as u64;
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
                let cosine = latens_nn::Schedule::Cosine { rate, n_steps, n_warmup: 0 };
                cosine.rate(self.state.epochs.n_steps)
            }
            Schedule::Plateau => self.state.plateau.rate(),
        }
    }

    /// Evaluates the model, keeps it if it is the best so far, and begins the next epoch.
    fn end_epoch(&mut self, n_batches: usize, watch: &mut Watch) -> Result<(), FitError> {
        let train = self.state.epochs.loss().exp();
        let (mut metrics, mut measured) = (vec![("train_perplexity", train)], train);
        if let Some(valid) = &self.task.valid {
            let log_prob = self.learner.log_prob(&valid.scored_batches())?;
            let perplexity = (-log_prob / valid.sentences.n_tokens() as f64).exp();
            metrics.push(("valid_perplexity", perplexity));
            // With an impossible sentence every model has infinite perplexity, which ranks none.
            if perplexity != f64::INFINITY {
                measured = perplexity;
                if self.state.epochs.observe(perplexity) {
                    self.best = Some(Arc::new(self.learner.weights()?));
                }
            }
        }
        self.state.plateau.observe(measured);
        let epochs = &mut self.state.epochs;
        if !train.is_finite() || measured.is_nan() {
            epochs.diverged_in_epoch = Some(epochs.epoch + 1);
        }
        metrics.push(("seconds_per_epoch", epochs.seconds));
        epochs.end();
        self.report(n_batches, &metrics, watch)
    }

    fn report(
        &self,
        n_batches: usize,
        metrics: &[(&'static str, f64)],
        watch: &mut Watch,
    ) -> Result<(), FitError> {
        let progress = self.state.epochs.progress(self.task.params.epochs, n_batches);
        let checkpoint = || self.checkpoint();
        // Training cannot resume from NaN weights.
        let has_diverged = self.state.epochs.diverged_in_epoch.is_some();
        let checkpoint: Option<&MakeCheckpoint<'_>> =
            if has_diverged { None } else { Some(&checkpoint) };
        Progress { metrics, checkpoint, ..progress }.report(watch)
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

    /// Without a validated model, checks that the last one gives the training text a finite likelihood.
    fn check_last(&mut self) -> Result<(), FitError> {
        let epochs = &mut self.state.epochs;
        if self.best.is_some() || epochs.diverged_in_epoch.is_some() || epochs.epoch == 0 {
            return Ok(());
        }
        let mut batches = self.task.train.scored_batches();
        batches.truncate(1);
        if !self.learner.log_prob(&batches)?.is_finite() {
            epochs.diverged_in_epoch = Some(epochs.epoch);
        }
        Ok(())
    }

    fn finish(self) -> Result<Fitted, FitError> {
        let epochs = self.state.epochs;
        let best = self.best.map(Arc::unwrap_or_clone);
        let weights = epochs.best_or_last(best, || self.learner.weights())?;
        Ok(Fitted { weights, facts: epochs.facts() })
    }
}

impl State {
    fn new(params: &HmmParams) -> State {
        /// The learning rate is divided by this after an epoch without improvement.
        const FACTOR: f64 = 4.0;
        let plateau = Plateau::new(params.learning_rate, FACTOR, 1);
        State { epochs: Epochs::default(), plateau }
    }
}

fn restore(
    task: &Task<'_>,
    checkpoint: &Checkpoint,
    n_weights: usize,
) -> Result<(State, LearnerState, Option<Vec<f32>>), CheckpointError> {
    checkpoint.check_fits(task.kind, task.params, task.fingerprint, &[])?;
    let state: State = checkpoint.state()?;
    let array = |name: &str| checkpoint.array::<f32>(name, &[n_weights]);
    let (weights, mean, square) = (array("weights")?, array("mean")?, array("square")?);
    let best = state.epochs.best_epoch.map(|_| array("best")).transpose()?;
    let is_finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
    let best_is_finite = best.as_deref().is_none_or(is_finite);
    let moments_are_valid =
        is_finite(&mean) && is_finite(&square) && square.iter().all(|&v| v >= 0.0);
    if state.epochs.epoch > task.params.epochs
        || !is_finite(&weights)
        || !best_is_finite
        || !moments_are_valid
    {
        return Err(CheckpointError::Invalid {
            problem: "invalid weights, optimizer state or epoch",
        });
    }
    let n_steps = state.epochs.n_steps;
    Ok((state, LearnerState { weights, mean, square, n_steps }, best))
}
