//! Baum–Welch training: expectation maximization in closed form.

use crate::recursion::batch::Batch;
use crate::steps::counts::initial;
use crate::steps::estimator::{CpuEstimator, Estimator};
use crate::tables::probability_tables::Tables;
use crate::train::device::cuda_estimator;
use crate::train::task::Task;
use latens_corpus::Vocab;
use latens_model::{
    Checkpoint, CheckpointError, Device, EpochResult, Epochs, FitError, Learner, Outcome, Trainer,
    TrainingState, Watch,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The progress of training as checkpoints store it, without the probabilities.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    iteration: usize,
    best_iteration: Option<usize>,
    best_perplexity: Option<f64>,
    train_perplexity: Option<f64>,
    seconds: f64,
}

/// The result of training.
pub(crate) struct Fitted {
    pub(crate) tables: Tables<f32>,
    pub(crate) facts: Map<String, Value>,
}

/// Trains by Baum–Welch, from scratch or from a checkpoint.
pub(crate) fn fit(
    task: &Task<'_>,
    vocab: &Vocab,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Fitted, FitError> {
    let mut tables = initial(task.params, task.space, vocab, task.n_tags);
    let (mut epochs, mut best) = (Epochs::default(), None);
    if let Some(checkpoint) = checkpoint {
        (epochs, best) = restore(task, checkpoint, &mut tables)?;
    }
    let state = TrainingState { epochs, schedule: () };
    let (tables, facts) = match task.device {
        Device::Cpu => {
            let estimator = CpuEstimator::new(task.space, task.n_tags, tables);
            Trainer::new(EmLearner::new(task, estimator), state, best).run(watch)?
        }
        Device::Cuda => {
            let estimator = cuda_estimator(task, &tables)?;
            Trainer::new(EmLearner::new(task, estimator), state, best).run(watch)?
        }
    };
    Ok(Fitted { tables, facts })
}

/// A model under training by expectation maximization. An epoch is an iteration: a step collects the expected counts
/// of a batch, and the end of the epoch maximizes.
struct EmLearner<'t, E> {
    task: &'t Task<'t>,
    estimator: E,
    batches: Vec<Batch<'t>>,
}

impl<'t, E: Estimator> EmLearner<'t, E> {
    fn new(task: &'t Task<'t>, estimator: E) -> Self {
        let batches = task.train.sequences().in_batches(estimator.batch_tokens());
        EmLearner { task, estimator, batches }
    }
}

impl<E: Estimator> Learner for EmLearner<'_, E> {
    /// The place of a batch.
    type Batch = usize;
    type Schedule = ();
    type Weights = Tables<f32>;

    const RESUMES_WITHIN_EPOCHS: bool = false;

    fn n_epochs(&self) -> usize {
        self.task.params.epochs
    }

    fn begin_epoch(&mut self, _: &Epochs) -> Result<usize, FitError> {
        Ok(self.batches.len())
    }

    fn prepare(&mut self, _: &Epochs, batch_idx: usize) -> usize {
        batch_idx
    }

    fn learning_rate(&self, _: &TrainingState<()>, _: usize) -> Option<f64> {
        None
    }

    fn begin_step(&mut self, &batch_idx: &usize, _: Option<f64>) -> Result<(), FitError> {
        self.estimator.expect(&self.batches[batch_idx])
    }

    /// A device sums the likelihoods of all batches; [`Learner::end_epoch`] returns them.
    fn end_step(&mut self, &batch_idx: &usize) -> Result<(f64, usize), FitError> {
        Ok((0.0, self.batches[batch_idx].n_tokens()))
    }

    fn end_epoch(&mut self) -> Result<Option<f64>, FitError> {
        let log_prob = self.estimator.log_prob()?;
        if log_prob.is_finite() {
            self.estimator.maximize(self.task.params.prior)?;
        }
        Ok(Some(log_prob))
    }

    fn valid_loss(&mut self) -> Result<Option<f64>, FitError> {
        let Some(valid) = &self.task.valid else { return Ok(None) };
        let log_prob = self.estimator.score(&valid.scored_batches())?;
        Ok(Some(-log_prob / valid.sentences.n_tokens().max(1) as f64))
    }

    fn judge(
        &mut self,
        (): &mut (),
        _: &EpochResult<'_, Tables<f32>>,
    ) -> Result<Outcome, FitError> {
        Ok(Outcome::Continue)
    }

    fn weights(&self) -> Result<Tables<f32>, FitError> {
        self.estimator.tables()
    }

    fn checkpoint(
        &self,
        state: &TrainingState<()>,
        best: Option<&Arc<Tables<f32>>>,
    ) -> Result<Checkpoint, FitError> {
        let epochs = &state.epochs;
        let stored = Stored {
            iteration: epochs.epoch,
            best_iteration: epochs.best_epoch,
            best_perplexity: epochs.best_perplexity(),
            train_perplexity: epochs.train_perplexity(),
            seconds: epochs.seconds_per_epoch().unwrap_or(0.0),
        };
        Ok(checkpoint_of(self.task, &stored, &self.estimator.tables()?, best.map(|best| &**best)))
    }

    fn advice(&self) -> &'static str {
        "raise `prior`"
    }

    fn divergence(&self, _: usize) -> FitError {
        FitError::not_enough_data("sentences with a probability above 0", "one with probability 0")
    }
}

const ARRAYS: [&str; 4] = ["start", "transition", "emission", "tags"];

fn arrays(tables: &Tables<f32>) -> [&Vec<f32>; 4] {
    [&tables.start, &tables.transition, &tables.emission, &tables.tags]
}

fn checkpoint_of(
    task: &Task<'_>,
    state: &Stored,
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
) -> Result<(Epochs, Option<Tables<f32>>), CheckpointError> {
    checkpoint.check_fits(task.kind, task.params, task.fingerprint, &[])?;
    let state: Stored = checkpoint.state()?;
    let read = |prefix: &str| -> Result<Tables<f32>, CheckpointError> {
        let mut read = Vec::new();
        for (name, like) in ARRAYS.iter().zip(arrays(tables)) {
            let values: Vec<f32> = checkpoint.array(&format!("{prefix}{name}"), &[like.len()])?;
            if !values.iter().all(|value| (0.0..=1.0).contains(value)) {
                return Err(CheckpointError::Invalid {
                    problem: "probabilities contain values outside [0, 1]",
                });
            }
            read.push(values);
        }
        let [start, transition, emission, tags] = read.try_into().expect("four arrays were read");
        Ok(Tables { k: tables.k, start, transition, emission, tags, ..Tables::default() })
    };
    let best = state.best_iteration.map(|_| read("best.")).transpose()?;
    let current = read("")?;
    *tables = current;
    let mut epochs = Epochs::after(state.iteration, Some(state.seconds), state.train_perplexity);
    if let (Some(epoch), Some(perplexity)) = (state.best_iteration, state.best_perplexity) {
        epochs.set_best(epoch, perplexity);
    }
    Ok((epochs, best))
}
