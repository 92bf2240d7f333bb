//! Training by gradient: mini-batches, state dropout, learning rate schedules, the best epoch on validation text.

use crate::params::{HmmParams, Schedule};
use crate::recursion::batch::Batch;
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::steps::batches::{Data, Sequences};
use crate::steps::learner::{Choices, CpuLearner, DeviceLearner, LearnerState};
use crate::train::device::cuda_learner;
use crate::train::task::Task;
use crate::train::teacher::Epoch;
use latens_math::{BatchPlace, Rng};
use latens_model::group::{Group, add_up, is_same, share};
use latens_model::{
    Checkpoint, CheckpointError, Device, EpochResult, Epochs, FitError, Learner, Outcome, Trainer,
    TrainingState, Watch, fingerprint,
};
use latens_nn::{Dropout, Plateau};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The state of the learning rate schedules.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Schedules {
    plateau: Plateau,
}

type State = TrainingState<Schedules>;

/// The random streams of training.
pub(crate) const WEIGHTS: u8 = 1;
pub(crate) const ORDER: u8 = 2;
pub(crate) const STATES: u8 = 3;
pub(crate) const UNITS: u8 = 4;

/// Trains by gradient, from scratch or from a checkpoint. Returns the best weights on the validation set, or the last
/// ones without it, and facts about the training.
pub(crate) fn fit(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<(Vec<f32>, Map<String, Value>), FitError> {
    let mapping = task.mapping();
    let n_weights = mapping.layout().len();
    let (state, learned, best) = match checkpoint {
        Some(checkpoint) => restore(task, checkpoint, n_weights)?,
        None => {
            let mut weights = vec![0.0; n_weights];
            mapping
                .init(&mut weights, &mut Rng::at(task.params.seed, WEIGHTS, BatchPlace::default()));
            (initial_state(task.params), LearnerState::new(weights), None)
        }
    };
    if let Some(group) = task.group {
        check_same(task, group, &learned.weights)?;
    }
    match task.device {
        Device::Cpu => {
            let device =
                CpuLearner::new(task.params, task.space, mapping, learned).with_group(task.group);
            Trainer::new(GradientLearner::new(task, device), state, best).run(watch)
        }
        Device::Cuda => {
            let device = cuda_learner(task, &learned)?;
            Trainer::new(GradientLearner::new(task, device), state, best).run(watch)
        }
    }
}

/// Checks that all processes have the same text, parameters and weights. Otherwise they would learn different models, or wait
/// for each other.
fn check_same(task: &Task<'_>, group: &dyn Group, weights: &[f32]) -> Result<(), FitError> {
    let params = serde_json::to_string(&**task.params).unwrap_or_default();
    let weights = fingerprint(weights.iter().map(|weight| weight.to_bits()));
    let all = [task.fingerprint, weights].map(u64::to_le_bytes).concat();
    let own = fingerprint(params.bytes().chain(all).map(u32::from));
    if is_same(group, own).map_err(FitError::step("join the other processes"))? {
        return Ok(());
    }
    let problem = "their text, parameters or versions of latens differ";
    Err(FitError::Step { action: "learn together with other processes", source: problem.into() })
}

/// A mini-batch that is ready for its step.
struct Prepared<'t, P> {
    /// The share of this process.
    batch: Batch<'t>,
    plan: P,
    choices: Choices,
}

/// A model under training by gradient on the device `D`.
struct GradientLearner<'t, D> {
    task: &'t Task<'t>,
    device: D,
    sequences: Sequences<'t>,
    /// The sequences of each mini-batch of this epoch.
    batches: Vec<Vec<u32>>,
}

impl<'t, D: DeviceLearner> GradientLearner<'t, D> {
    fn new(task: &'t Task<'t>, device: D) -> Self {
        GradientLearner { task, device, sequences: task.train.sequences(), batches: Vec::new() }
    }
}

impl<'t, D: DeviceLearner> Learner for GradientLearner<'t, D> {
    type Batch = Prepared<'t, D::Plan>;
    type Schedule = Schedules;
    type Weights = Vec<f32>;

    fn n_epochs(&self) -> usize {
        self.task.params.epochs
    }

    fn begin_epoch(&mut self, epochs: &Epochs) -> Result<usize, FitError> {
        let (task, params) = (self.task, self.task.params);
        let train = match &task.drawn {
            None => task.train,
            Some(drawn) => {
                let sentences = drawn.of(&Epoch {
                    idx: epochs.epoch,
                    n_epochs: params.epochs,
                    seed: params.seed,
                    is_new: epochs.batch == 0,
                    corpus: task.train.sentences,
                })?;
                Data { sentences, ..task.train }
            }
        };
        let mut order = Rng::at(params.seed, ORDER, BatchPlace { epoch: epochs.epoch, batch: 0 });
        self.sequences = train.drawn_sequences(&mut order);
        let batch_tokens = params.batch_tokens_of(train.sentences.n_tokens());
        self.batches = self.sequences.shuffled(batch_tokens, &mut order);
        Ok(self.batches.len())
    }

    fn prepare(&mut self, epochs: &Epochs, batch_idx: usize) -> Self::Batch {
        let idxs = &self.batches[batch_idx];
        let n_tokens = self.sequences.batch(idxs).n_tokens();
        let place = BatchPlace { epoch: epochs.epoch, batch: batch_idx };
        let choices = choices(self.task.params, self.task.space, place, n_tokens);
        let own = self.task.group.map_or(0..idxs.len(), |group| share(group, idxs.len()));
        let batch = self.sequences.batch(&idxs[own]);
        let plan = self.device.plan(&batch, &choices.kept);
        Prepared { batch, plan, choices }
    }

    fn learning_rate(&self, state: &State, n_batches: usize) -> Option<f64> {
        let TrainingState { epochs, schedule } = state;
        Some(learning_rate(self.task.params, epochs.n_steps, n_batches, &schedule.plateau))
    }

    fn begin_step(
        &mut self,
        Prepared { batch, plan, choices }: &Self::Batch,
        learning_rate: Option<f64>,
    ) -> Result<(), FitError> {
        let learning_rate = learning_rate.expect("every schedule has a learning rate");
        self.device.begin_step(batch, plan, choices, learning_rate)
    }

    fn end_step(&mut self, batch: &Self::Batch) -> Result<(f64, usize), FitError> {
        Ok((self.device.end_step()?, batch.choices.n_tokens))
    }

    fn valid_loss(&mut self) -> Result<Option<f64>, FitError> {
        let Some(valid) = &self.task.valid else { return Ok(None) };
        let batches = valid.scored_batches();
        let log_prob = match self.task.group {
            None => self.device.log_prob(&batches)?,
            Some(group) => {
                let own = self.device.log_prob(&batches[share(group, batches.len())])?;
                let summed = add_up(group, &mut vec![], own);
                summed.map_err(FitError::step("add up validation scores"))?
            }
        };
        Ok(Some(-log_prob / valid.sentences.n_tokens() as f64))
    }

    fn judge(
        &mut self,
        schedule: &mut Schedules,
        result: &EpochResult<'_, Vec<f32>>,
    ) -> Result<Outcome, FitError> {
        let perplexity = result.valid_loss.unwrap_or(result.train_loss).exp();
        schedule.plateau.observe(perplexity);
        Ok(if perplexity.is_nan() { Outcome::Diverged } else { Outcome::Continue })
    }

    fn weights(&self) -> Result<Vec<f32>, FitError> {
        self.device.weights()
    }

    /// A process must not leave a group while others still use what it has sent.
    fn finish(&mut self) -> Result<(), FitError> {
        let wait = |group: &dyn Group| group.sum(&mut [0.0]);
        self.task.group.map_or(Ok(()), wait).map_err(FitError::step("wait for the other processes"))
    }

    /// The weights and the likelihood of the training text must be finite.
    fn check_last(&mut self) -> Result<bool, FitError> {
        let mut batches = self.task.train.scored_batches();
        batches.truncate(1);
        let is_finite = |weights: Vec<f32>| weights.iter().all(|weight| weight.is_finite());
        Ok(self.device.log_prob(&batches)?.is_finite() && is_finite(self.weights()?))
    }

    fn checkpoint(
        &self,
        state: &State,
        best: Option<&Arc<Vec<f32>>>,
    ) -> Result<Checkpoint, FitError> {
        let LearnerState { weights, mean, square, .. } = self.device.state()?;
        let n = [weights.len()];
        let mut checkpoint =
            Checkpoint::new(self.task.kind, self.task.params, self.task.fingerprint, state)
                .with_shared_array("weights", &n, weights.into())
                .with_shared_array("mean", &n, mean.into())
                .with_shared_array("square", &n, square.into());
        if let Some(best) = best {
            checkpoint = checkpoint.with_shared_array("best", &n, Arc::clone(best));
        }
        Ok(checkpoint)
    }
}

/// The random choices of the mini-batch at a place.
pub(crate) fn choices(
    params: &HmmParams,
    space: &StateSpace,
    place: BatchPlace,
    n_tokens: usize,
) -> Choices {
    let mut states = Rng::at(params.seed, STATES, place);
    let rate = params.state_dropout.expect("a run has a state dropout rate");
    let kept = KeptStates::draw(space, rate, &mut states);
    let seed = (Rng::at(params.seed, UNITS, place).uniform() * 2f64.powi(53)) as u64;
    let dropout = (params.dropout > 0.0).then(|| Dropout::new(params.dropout, seed));
    Choices { kept, dropout, n_tokens }
}

/// The learning rate after `n_steps` steps.
pub(crate) fn learning_rate(
    params: &HmmParams,
    n_steps: u64,
    n_batches: usize,
    plateau: &Plateau,
) -> f64 {
    match params.schedule {
        Schedule::Constant => params.learning_rate,
        Schedule::Cosine => {
            let (rate, all) =
                (params.learning_rate, n_batches.saturating_mul(params.epochs) as u64);
            latens_nn::Schedule::Cosine { rate, n_steps: all, n_warmup: 0 }.rate(n_steps)
        }
        Schedule::Plateau => plateau.rate(),
    }
}

/// The schedule that lowers the learning rate after an epoch without improvement.
pub(crate) fn first_plateau(params: &HmmParams) -> Plateau {
    /// The learning rate is divided by this after an epoch without improvement.
    const FACTOR: f64 = 4.0;
    Plateau::new(params.learning_rate, FACTOR, 1)
}

fn initial_state(params: &HmmParams) -> State {
    let plateau = first_plateau(params);
    State { epochs: Epochs::default(), schedule: Schedules { plateau } }
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
    if !state.schedule.plateau.follows(&initial_state(task.params).schedule.plateau) {
        let problem = "its learning-rate schedule does not belong to these parameters";
        return Err(CheckpointError::Invalid { problem });
    }
    let n_steps = state.epochs.n_steps;
    Ok((state, LearnerState { weights, mean, square, n_steps }, best))
}
