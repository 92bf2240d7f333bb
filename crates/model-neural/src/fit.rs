//! Training: epochs of mini-batches, judged on held-out text.

use crate::batches::Reader;
use crate::first_weights::FirstWeights;
use crate::learner::{Choices, CpuLearner, Learner, LearnerState, n_moments};
use crate::network::Network;
use crate::params::{NeuralParams, Schedule};
use latens_corpus::WordId;
use latens_math::Rng;
use latens_model::{Checkpoint, CheckpointError, Device, Epochs, FitError, Progress, Valid, Watch};
use latens_nn::{Dropout, Halving, Plateau, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Instant;

/// All that does not change while a model is trained.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<NeuralParams>,
    pub(crate) network: &'a Network,
    pub(crate) train: &'a [WordId],
    pub(crate) valid: Option<&'a [WordId]>,
    pub(crate) init: Option<&'a FirstWeights<'a>>,
    pub(crate) fingerprint: u64,
    pub(crate) device: Device,
}

/// How far training has come, apart from weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    #[serde(flatten)]
    epochs: Epochs,
    /// Steps of the optimiser.
    n_updates: u64,
    plateau: Plateau,
    halving: Halving,
    /// Whether the schedule says that nothing more is to be gained.
    is_over: bool,
}

/// Kinds of random choices.
const WEIGHTS: u8 = 1;
const ORDER: u8 = 2;
const UNITS: u8 = 3;

/// Trains, from the beginning or from a checkpoint. Returns the best weights on held-out text, or the last ones
/// without it.
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
            (State::new(task.params), learned, None)
        }
    };
    match task.device {
        Device::Cpu => {
            let learner = CpuLearner::new(task.params, task.network, learned);
            Trainer { task, reader, learner, state, best }.run(watch)
        }
        Device::Cuda => {
            let learner = cuda_learner(task, &learned)?;
            Trainer { task, reader, learner, state, best }.run(watch)
        }
    }
}

fn first_weights(task: &Task<'_>) -> Vec<f32> {
    let mut weights = vec![0.0; task.network.layout.len()];
    task.network.init(&mut weights, &mut Rng::at(task.params.seed, WEIGHTS, (0, 0)));
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

struct Trainer<'t, L> {
    task: &'t Task<'t>,
    reader: Reader<'t>,
    learner: L,
    state: State,
    /// The best weights so far on held-out text.
    best: Option<Vec<f32>>,
}

impl<L: Learner> Trainer<'_, L> {
    fn run(mut self, watch: &mut Watch) -> Result<(Vec<f32>, Map<String, Value>), FitError> {
        while self.state.epochs.goes_on(self.task.params.epochs) && !self.state.is_over {
            self.epoch(watch)?;
        }
        self.finish()
    }

    fn epoch(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        let (epoch, n_batches) = (self.state.epochs.epoch, self.reader.len());
        let order = self.reader.order(&mut Rng::at(self.task.params.seed, ORDER, (epoch, 0)));
        let mut started = Instant::now();
        if self.state.epochs.batch == 0 {
            self.learner.forget()?;
        }
        for at in self.state.epochs.batch..n_batches {
            let batch = self.reader.batch(at, &order);
            let log_prob = self.learner.step(&batch, &self.choices(at))?;
            if !log_prob.is_finite() {
                self.state.epochs.diverged_in_epoch = Some(epoch + 1);
                return Ok(());
            }
            self.state.epochs.step(log_prob, batch.n_rows(), started.elapsed());
            started = Instant::now();
            if at + 1 < n_batches {
                self.report(&[], watch)?;
            }
        }
        self.end_epoch(watch)
    }

    /// What is chosen for a mini-batch. Smaller mini-batches make smaller steps.
    fn choices(&self, at: usize) -> Choices {
        let params = self.task.params;
        let place = (self.state.epochs.epoch, at);
        let seed = (Rng::at(params.seed, UNITS, place).uniform() * 2f64.powi(53)) as u64;
        Choices {
            dropout: (params.dropout > 0.0).then(|| Dropout::new(params.dropout, seed)),
            learning_rate: self.learning_rate(),
            scale: 1.0 / self.reader.full_size() as f64,
        }
    }

    fn learning_rate(&self) -> f64 {
        let params = self.task.params;
        match params.schedule {
            Schedule::Constant => params.learning_rate,
            Schedule::Cosine => {
                let n_steps = (self.reader.len() * params.epochs) as u64;
                let rate = params.learning_rate;
                let cosine = latens_nn::Schedule::Cosine { rate, n_steps, n_warmup: 0 };
                cosine.rate(self.state.epochs.n_steps)
            }
            Schedule::Plateau => self.state.plateau.rate(),
            Schedule::Halving => self.state.halving.rate(),
        }
    }

    /// Measures the model, keeps it if it is the best so far, and begins the next epoch.
    fn end_epoch(&mut self, watch: &mut Watch) -> Result<(), FitError> {
        let learning_rate = self.learning_rate();
        let train = self.state.epochs.loss();
        // A model that is so much worse than one that knows nothing will not come back.
        let hopeless = 2.0 * (self.task.network.n_words() as f64).ln();
        let is_lost = !train.is_finite() || train > hopeless;
        let (mut metrics, mut measured) = (vec![("train_perplexity", train.exp())], train);
        if let Some(valid) = self.task.valid {
            measured = -self.learner.log_prob(valid)? / valid.len() as f64;
            metrics.push(("valid_perplexity", measured.exp()));
            if !is_lost {
                self.judge(measured)?;
            }
        }
        self.state.plateau.observe(measured);
        self.state.is_over = self.state.halving.observe(measured) == Verdict::Stop
            && self.task.params.schedule == Schedule::Halving;
        let epochs = &mut self.state.epochs;
        if is_lost || !measured.is_finite() {
            epochs.diverged_in_epoch = Some(epochs.epoch + 1);
        }
        metrics.extend([("learning_rate", learning_rate), ("seconds_per_epoch", epochs.seconds)]);
        epochs.end();
        if epochs.diverged_in_epoch.is_some() {
            return Ok(());
        }
        self.report(&metrics, watch)
    }

    /// Keeps the weights if they are the best on held-out text; a schedule may take back what made them worse.
    fn judge(&mut self, measured: f64) -> Result<(), FitError> {
        if self.state.epochs.observe(measured.exp()) {
            self.best = Some(self.learner.state()?.weights);
            return Ok(());
        }
        match (&self.best, self.task.params.schedule) {
            (Some(best), Schedule::Halving) => self.learner.set_weights(best),
            _ => Ok(()),
        }
    }

    fn report(&self, metrics: &[(&'static str, f64)], watch: &mut Watch) -> Result<(), FitError> {
        let progress = self.state.epochs.progress(self.task.params.epochs, self.reader.len());
        Progress { metrics, checkpoint: Some(&|| self.checkpoint()), ..progress }.report(watch)
    }

    fn checkpoint(&self) -> Result<Checkpoint, FitError> {
        let learned = self.learner.state()?;
        let state = State { n_updates: learned.n_steps, ..self.state.clone() };
        let kind = self.task.params.architecture.kind();
        let mut checkpoint = Checkpoint::new(kind, self.task.params, self.task.fingerprint, &state);
        for (name, values) in [
            ("weights", &learned.weights),
            ("mean", &learned.mean),
            ("square", &learned.square),
            ("memory", &learned.memory),
        ] {
            checkpoint = checkpoint.with_array(name, &[values.len()], values);
        }
        if let Some(best) = &self.best {
            checkpoint = checkpoint.with_array("best", &[best.len()], best);
        }
        Ok(checkpoint)
    }

    fn finish(self) -> Result<(Vec<f32>, Map<String, Value>), FitError> {
        let epochs = self.state.epochs;
        let weights = epochs.best_or_last(self.best, || Ok(self.learner.state()?.weights))?;
        Ok((weights, epochs.facts()))
    }
}

impl State {
    fn new(params: &NeuralParams) -> State {
        /// The factor by which the learning rate falls after an epoch without gain.
        const FACTOR: f64 = 4.0;
        /// What counts as a gain when the rate is halved (RNNLM).
        const MIN_IMPROVEMENT: f64 = 1.003;
        State {
            epochs: Epochs::default(),
            n_updates: 0,
            plateau: Plateau::new(params.learning_rate, FACTOR, 1),
            halving: Halving::new(params.learning_rate, MIN_IMPROVEMENT),
            is_over: false,
        }
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
        mean: array("mean", n_moments)?,
        square: array("square", n_moments)?,
        n_steps: state.n_updates,
        memory: array("memory", n_memory)?,
    };
    let best = state.epochs.best_epoch.map(|_| array("best", n_weights)).transpose()?;
    let arrays = [&learned.weights, &learned.mean, &learned.square, &learned.memory];
    let is_finite = |numbers: &Vec<f32>| numbers.iter().all(|x| x.is_finite());
    let is_sound =
        arrays.into_iter().chain(&best).all(is_finite) && learned.square.iter().all(|&v| v >= 0.0);
    if !is_sound || state.epochs.epoch > task.params.epochs {
        return Err(CheckpointError::Invalid { problem: "its weights or epochs cannot be" });
    }
    Ok((state, learned, best))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::Batch;
    use latens_model::{Params, unwatched};

    /// Learns nothing; what it says of a token after some steps is told beforehand.
    struct Told {
        n_steps: usize,
        /// From this step on it says the second, before it the first.
        turn: usize,
        log_probs: (f64, f64),
        n_weights: usize,
    }

    impl Learner for Told {
        fn step(&mut self, batch: &Batch, _: &Choices) -> Result<f64, FitError> {
            self.n_steps += 1;
            let (before, after) = self.log_probs;
            let log_prob = if self.n_steps < self.turn { before } else { after };
            Ok(log_prob * batch.n_rows() as f64)
        }

        fn log_prob(&mut self, text: &[WordId]) -> Result<f64, FitError> {
            Ok(-(self.n_steps as f64) * text.len() as f64)
        }

        fn forget(&mut self) -> Result<(), FitError> {
            Ok(())
        }

        fn set_weights(&mut self, _: &[f32]) -> Result<(), FitError> {
            Ok(())
        }

        /// Weights that tell after how many steps they were asked for.
        fn state(&self) -> Result<LearnerState, FitError> {
            let weights = vec![self.n_steps as f32; self.n_weights];
            Ok(LearnerState { weights, mean: vec![], square: vec![], n_steps: 0, memory: vec![] })
        }
    }

    /// Trains for three epochs of five steps each.
    fn train(turn: usize, log_probs: (f64, f64), has_valid: bool) -> Result<Vec<f32>, FitError> {
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
        let learner = Told { n_steps: 0, turn, log_probs, n_weights: network.layout.len() };
        let (reader, state) = (Reader::new(&params, &text), State::new(&params));
        let trainer = Trainer { task: &task, reader, learner, state, best: None };
        trainer.run(&mut unwatched).map(|(weights, facts)| {
            assert_eq!(facts.get("diverged_in_epoch").is_some(), turn <= 15);
            weights
        })
    }

    #[test]
    fn the_best_weights_are_kept_when_the_loss_is_lost() {
        // Nothing is lost: the first epoch is the best on held-out text, the last one is kept without it.
        assert_eq!(train(100, (-1.0, 0.0), true).unwrap()[0], 5.0);
        assert_eq!(train(100, (-1.0, 0.0), false).unwrap()[0], 15.0);
        // No number, or far worse than the ln 4 of a model that knows nothing.
        for lost in [f64::NAN, f64::NEG_INFINITY, -100.0] {
            assert_eq!(train(8, (-1.0, lost), true).unwrap()[0], 5.0);
            let error = train(8, (-1.0, lost), false).unwrap_err();
            assert!(matches!(error, FitError::Diverged { epoch: 2, .. }), "{error}");
        }
    }
}
