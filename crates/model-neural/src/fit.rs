//! Training in epochs of mini-batches, evaluated on the validation text.

use crate::learner::{Choices, CpuLearner, DeviceLearner, LearnerState, n_moments};
use crate::network::batches::{Batch, Reader};
use crate::network::definition::Network;
use crate::network::first_weights::FirstWeights;
use crate::network::masks::Masks;
use crate::params::{Architecture, NeuralParams, Schedule};
use latens_corpus::WordId;
use latens_math::{BatchPlace, Rng};
use latens_model::{
    Checkpoint, CheckpointError, Device, EpochResult, Epochs, FitError, Learner, Outcome, Trainer,
    TrainingState, Valid, Watch,
};
use latens_nn::{Halving, Plateau, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The fixed inputs of a training run.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<NeuralParams>,
    pub(crate) network: &'a Network,
    pub(crate) train: &'a [WordId],
    pub(crate) valid: Option<&'a [WordId]>,
    pub(crate) init: Option<&'a FirstWeights<'a>>,
    pub(crate) fingerprint: u64,
    pub(crate) device: Device,
}

/// The state of the schedules, and of the optimizer apart from its moments.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Schedules {
    /// Number of optimizer steps.
    n_updates: u64,
    plateau: Plateau,
    halving: Halving,
    /// Whether the schedule expects no further improvement.
    is_over: bool,
}

type State = TrainingState<Schedules>;

/// Random streams: initial weights, order of words, dropout.
const WEIGHTS: u8 = 1;
const ORDER: u8 = 2;
const UNITS: u8 = 3;

/// Trains from scratch or from a checkpoint. Returns the best weights on the validation text, or the last weights
/// without one.
pub(crate) fn fit(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<(Vec<f32>, Map<String, Value>), FitError> {
    let reader = Reader::new(task.params, task.train);
    let n_memory = reader.n_streams() * task.network.state_len();
    let (state, learned, best) = match checkpoint {
        Some(checkpoint) => restore(task, checkpoint, n_memory)?,
        None => {
            let learned = LearnerState::new(task.params, first_weights(task), n_memory);
            (initial_state(task.params), learned, None)
        }
    };
    // The schedule had stopped before the checkpoint was written.
    let n_epochs = if state.schedule.is_over { state.epochs.epoch } else { task.params.epochs };
    match task.device {
        Device::Cpu => {
            let device = CpuLearner::new(task.params, task.network, learned);
            Trainer::new(NeuralLearner::new(task, reader, device, n_epochs), state, best).run(watch)
        }
        Device::Cuda => {
            let device = cuda_learner(task, &learned)?;
            Trainer::new(NeuralLearner::new(task, reader, device, n_epochs), state, best).run(watch)
        }
    }
}

fn first_weights(task: &Task<'_>) -> Vec<f32> {
    let mut weights = vec![0.0; task.network.layout.len()];
    task.network.init(&mut weights, &mut Rng::at(task.params.seed, WEIGHTS, BatchPlace::default()));
    // The other networks have no such vector, and their perplexity is no lower with these biases.
    if task.params.architecture == Architecture::Rnn {
        task.network.init_bias(&mut weights, task.train);
    }
    if let Some(init) = task.init {
        init.write(task.network, task.params.squash, &mut weights);
    }
    weights
}

#[cfg(feature = "cuda")]
fn cuda_learner<'a>(
    task: &Task<'a>,
    learned: &LearnerState,
) -> Result<crate::cuda::CudaLearner<'a>, FitError> {
    let precision = latens_cuda::Precision::Fast;
    crate::cuda::CudaLearner::new(task.params, task.network, learned, precision)
        .map_err(crate::cuda::device_error)
}

#[cfg(not(feature = "cuda"))]
fn cuda_learner<'a>(task: &Task<'a>, _: &LearnerState) -> Result<CpuLearner<'a>, FitError> {
    let problem = "this program was built without CUDA".to_owned();
    Err(FitError::Device { device: task.device, problem })
}

/// A network in training on the device `D`.
struct NeuralLearner<'t, D> {
    task: &'t Task<'t>,
    reader: Reader<'t>,
    device: D,
    n_epochs: usize,
    /// The order of the words of this epoch.
    order: Vec<u32>,
}

/// A mini-batch, its plan, and what it drops.
struct Prepared<P> {
    batch: Batch,
    plan: P,
    masks: Option<Masks>,
}

impl<'t, D: DeviceLearner> NeuralLearner<'t, D> {
    fn new(task: &'t Task<'t>, reader: Reader<'t>, device: D, n_epochs: usize) -> Self {
        NeuralLearner { task, reader, device, n_epochs, order: vec![] }
    }
}

impl<D: DeviceLearner> Learner for NeuralLearner<'_, D> {
    type Batch = Prepared<D::Plan>;
    type Schedule = Schedules;
    type Weights = Vec<f32>;

    fn n_epochs(&self) -> usize {
        self.n_epochs
    }

    fn begin_epoch(&mut self, epochs: &Epochs) -> Result<usize, FitError> {
        let seed = self.task.params.seed;
        let mut rng = Rng::at(seed, ORDER, BatchPlace { epoch: epochs.epoch, batch: 0 });
        self.order = self.reader.order(&mut rng);
        self.reader.draw_first_steps(&mut rng);
        if epochs.batch == 0 {
            self.device.forget()?;
        }
        Ok(self.reader.len())
    }

    fn prepare(&mut self, epochs: &Epochs, batch_idx: usize) -> Self::Batch {
        let params = self.task.params;
        let place = BatchPlace { epoch: epochs.epoch, batch: batch_idx };
        let seed = (Rng::at(params.seed, UNITS, place).uniform() * 2f64.powi(53)) as u64;
        let batch = self.reader.batch(batch_idx, &self.order);
        Prepared { plan: self.device.plan(&batch), batch, masks: Masks::new(params, seed) }
    }

    fn learning_rate(&self, state: &State, n_batches: usize) -> Option<f64> {
        let params = self.task.params;
        Some(match params.schedule {
            Schedule::Constant => params.learning_rate,
            Schedule::Cosine => {
                let n_steps = (n_batches * params.epochs) as u64;
                let rate = params.learning_rate;
                let cosine = latens_nn::Schedule::Cosine { rate, n_steps, n_warmup: 0 };
                cosine.rate(state.epochs.n_steps)
            }
            Schedule::Linear => {
                let n_steps = (n_batches * params.epochs) as u64;
                let (rate, n_flat) = (params.learning_rate, n_steps * 2 / 5);
                latens_nn::Schedule::Linear { rate, n_steps, n_flat }.rate(state.epochs.n_steps)
            }
            Schedule::Plateau => state.schedule.plateau.rate(),
            Schedule::Halving => state.schedule.halving.rate(),
        })
    }

    fn begin_step(
        &mut self,
        Prepared { batch, plan, masks }: &Self::Batch,
        learning_rate: Option<f64>,
    ) -> Result<(), FitError> {
        let choices = Choices {
            masks: *masks,
            learning_rate: learning_rate.expect("every schedule has a learning rate"),
            // Dividing by the full batch size gives smaller batches proportionally smaller steps.
            scale: 1.0 / self.reader.full_size() as f64,
        };
        self.device.begin_step(batch, plan, &choices)
    }

    fn end_step(&mut self, prepared: &Self::Batch) -> Result<(f64, usize), FitError> {
        Ok((self.device.end_step()?, prepared.batch.n_rows()))
    }

    fn valid_loss(&mut self) -> Result<Option<f64>, FitError> {
        let Some(valid) = self.task.valid else { return Ok(None) };
        Ok(Some(-self.device.log_prob(valid)? / valid.len() as f64))
    }

    /// A model that is much worse than the uniform distribution does not recover.
    fn is_useless(&self, train_loss: f64) -> bool {
        !train_loss.is_finite() || train_loss > 2.0 * (self.task.network.n_words() as f64).ln()
    }

    fn judge(
        &mut self,
        schedule: &mut Schedules,
        result: &EpochResult<'_, Vec<f32>>,
    ) -> Result<Outcome, FitError> {
        let loss = result.valid_loss.unwrap_or(result.train_loss);
        let halves = self.task.params.schedule == Schedule::Halving;
        // Revert an epoch that made the model worse.
        let is_worse = result.valid_loss.is_some() && !result.is_best;
        if let (Some(best), true) =
            (result.best, halves && is_worse && !self.is_useless(result.train_loss))
        {
            self.device.set_weights(best)?;
        }
        schedule.plateau.observe(loss);
        schedule.is_over = schedule.halving.observe(loss) == Verdict::Stop && halves;
        Ok(if !loss.is_finite() {
            Outcome::Diverged
        } else if schedule.is_over {
            Outcome::Stop
        } else {
            Outcome::Continue
        })
    }

    fn weights(&self) -> Result<Vec<f32>, FitError> {
        self.device.model_weights()
    }

    /// The weights and the perplexity of the beginning of the training text must be finite.
    fn check_last(&mut self) -> Result<bool, FitError> {
        /// Enough text to show that the last step was too large.
        const N_TOKENS: usize = 1000;
        let text = &self.task.train[..self.task.train.len().min(N_TOKENS)];
        let loss = -self.device.log_prob(text)? / text.len().max(1) as f64;
        let is_finite = |weights: Vec<f32>| weights.iter().all(|weight| weight.is_finite());
        Ok(loss.exp().is_finite() && is_finite(self.weights()?))
    }

    fn checkpoint(
        &self,
        state: &State,
        best: Option<&Arc<Vec<f32>>>,
    ) -> Result<Checkpoint, FitError> {
        let LearnerState { weights, average, mean, square, n_steps, memory } =
            self.device.state()?;
        let mut state = state.clone();
        state.schedule.n_updates = n_steps;
        let kind = self.task.params.architecture.kind();
        let mut checkpoint = Checkpoint::new(kind, self.task.params, self.task.fingerprint, &state);
        let arrays = [
            ("weights", weights),
            ("average", average),
            ("mean", mean),
            ("square", square),
            ("memory", memory),
        ];
        // Without an average, checkpoints have no such array.
        for (name, values) in
            arrays.into_iter().filter(|(name, values)| *name != "average" || !values.is_empty())
        {
            checkpoint = checkpoint.with_shared_array(name, &[values.len()], Arc::new(values));
        }
        if let Some(best) = best {
            checkpoint = checkpoint.with_shared_array("best", &[best.len()], Arc::clone(best));
        }
        Ok(checkpoint)
    }
}

fn initial_state(params: &NeuralParams) -> State {
    /// Factor by which the learning rate falls after an epoch without improvement.
    const FACTOR: f64 = 4.0;
    /// Relative improvement below which the learning rate is halved (RNNLM).
    const MIN_IMPROVEMENT: f64 = 1.003;
    State {
        epochs: Epochs::default(),
        schedule: Schedules {
            n_updates: 0,
            plateau: Plateau::new(params.learning_rate, FACTOR, 1),
            halving: Halving::new(params.learning_rate, MIN_IMPROVEMENT),
            is_over: false,
        },
    }
}

fn restore(
    task: &Task<'_>,
    checkpoint: &Checkpoint,
    n_memory: usize,
) -> Result<(State, LearnerState, Option<Vec<f32>>), CheckpointError> {
    let kind = task.params.architecture.kind();
    checkpoint.check_fits(kind, task.params, task.fingerprint, &[])?;
    let state: State = checkpoint.state()?;
    let n_weights = task.network.layout.len();
    let n_moments = n_moments(task.params, n_weights);
    let array = |name: &str, n: usize| checkpoint.array::<f32>(name, &[n]);
    let learned = LearnerState {
        weights: array("weights", n_weights)?,
        average: if task.params.average > 0.0 { array("average", n_weights)? } else { vec![] },
        mean: array("mean", n_moments)?,
        square: array("square", n_moments)?,
        n_steps: state.schedule.n_updates,
        memory: array("memory", n_memory)?,
    };
    let best = state.epochs.best_epoch.map(|_| array("best", n_weights)).transpose()?;
    let LearnerState { weights, average, mean, square, memory, .. } = &learned;
    let arrays = [weights, average, mean, square, memory];
    let is_finite = |numbers: &Vec<f32>| numbers.iter().all(|x| x.is_finite());
    let is_sound =
        arrays.into_iter().chain(&best).all(is_finite) && learned.square.iter().all(|&v| v >= 0.0);
    let first = initial_state(task.params).schedule;
    let follows = state.schedule.plateau.follows(&first.plateau)
        && state.schedule.halving.follows(&first.halving);
    if !follows {
        let problem = "its learning-rate schedule does not belong to these parameters";
        return Err(CheckpointError::Invalid { problem });
    }
    if !is_sound || state.epochs.epoch > task.params.epochs {
        return Err(CheckpointError::Invalid {
            problem: "weights are not finite, or more epochs are completed than `epochs`",
        });
    }
    Ok((state, learned, best))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_model::{Params, unwatched};

    /// A mock learner with prescribed log-probabilities per token.
    struct Told {
        n_steps: usize,
        /// Number of tokens of the last step.
        n_rows: usize,
        /// First step with the second log-probability.
        turn: usize,
        log_probs: (f64, f64),
        n_weights: usize,
        /// −ln p per token of any text, per step so far.
        valid_loss: f64,
    }

    impl DeviceLearner for Told {
        type Plan = ();

        fn plan(&self, _: &Batch) {}

        fn begin_step(&mut self, batch: &Batch, (): &(), _: &Choices) -> Result<(), FitError> {
            self.n_steps += 1;
            self.n_rows = batch.n_rows();
            Ok(())
        }

        fn end_step(&mut self) -> Result<f64, FitError> {
            let (before, after) = self.log_probs;
            let log_prob = if self.n_steps < self.turn { before } else { after };
            Ok(log_prob * self.n_rows as f64)
        }

        fn log_prob(&mut self, text: &[WordId]) -> Result<f64, FitError> {
            Ok(-self.valid_loss * self.n_steps as f64 * text.len() as f64)
        }

        fn forget(&mut self) -> Result<(), FitError> {
            Ok(())
        }

        fn set_weights(&mut self, _: &[f32]) -> Result<(), FitError> {
            Ok(())
        }

        /// Weights that encode the number of steps so far.
        fn state(&self) -> Result<LearnerState, FitError> {
            let weights = vec![self.n_steps as f32; self.n_weights];
            Ok(LearnerState {
                weights,
                average: vec![],
                mean: vec![],
                square: vec![],
                n_steps: 0,
                memory: vec![],
            })
        }
    }

    /// Trains for three epochs of five steps each.
    fn train(turn: usize, log_probs: (f64, f64), has_valid: bool) -> Result<Vec<f32>, FitError> {
        train_scoring(1.0, turn, log_probs, has_valid)
    }

    fn train_scoring(
        valid_loss: f64,
        turn: usize,
        log_probs: (f64, f64),
        has_valid: bool,
    ) -> Result<Vec<f32>, FitError> {
        let text: Vec<WordId> = (0..10).map(|i| WordId(i % 4)).collect();
        let params = NeuralParams {
            dim: 2,
            epochs: 3,
            batch_size: 1,
            bptt: 2,
            schedule: Schedule::Constant,
            ..NeuralParams::rnn()
        };
        let (params, network) = (params.clone().validate().unwrap(), Network::new(&params, 4));
        let task = Task {
            params: &params,
            network: &network,
            train: &text,
            valid: has_valid.then_some(&text[..]),
            init: None,
            fingerprint: 0,
            device: Device::Cpu,
        };
        let n_weights = network.layout.len();
        let learner = Told { n_steps: 0, n_rows: 0, turn, log_probs, n_weights, valid_loss };
        let reader = Reader::new(&params, &text);
        let learner = NeuralLearner::new(&task, reader, learner, params.epochs);
        let trainer = Trainer::new(learner, initial_state(&params), None);
        trainer.run(&mut unwatched).map(|(weights, facts)| {
            assert_eq!(facts.get("diverged_in_epoch").is_some(), turn <= 15);
            weights
        })
    }

    #[test]
    fn the_best_weights_are_kept_when_the_loss_diverges() {
        // Without divergence, the first epoch is the best on the validation text; the last is kept without one.
        assert_eq!(train(100, (-1.0, 0.0), true).unwrap()[0], 5.0);
        assert_eq!(train(100, (-1.0, 0.0), false).unwrap()[0], 15.0);
        // NaN, or far worse than the ln 4 of the uniform distribution.
        for lost in [f64::NAN, f64::NEG_INFINITY, -100.0] {
            assert_eq!(train(8, (-1.0, lost), true).unwrap()[0], 5.0);
            let error = train(8, (-1.0, lost), false).unwrap_err();
            assert!(matches!(error, FitError::Diverged { epoch: 2, .. }), "{error}");
        }
    }

    #[test]
    fn a_model_that_cannot_score_the_validation_text_is_an_error() {
        // The loss is finite, but e to its power is not.
        for loss in [1e6, f64::INFINITY, f64::NAN] {
            let error = train_scoring(loss, 100, (-1.0, 0.0), true).unwrap_err();
            let expected = "the model cannot score the validation text: its perplexity is not finite after epoch 1; \
                            lower `learning_rate`";
            assert_eq!(error.to_string(), expected);
            let error = train_scoring(loss, 100, (-1.0, 0.0), false).unwrap_err();
            assert!(matches!(error, FitError::Diverged { epoch: 3, .. }), "{error}");
        }
    }
}
