//! Training on a CUDA device: the same steps as `crate::learner::CpuLearner`, with all weights, gradients and recurrent
//! states on the device.
//!
//! Dropout masks differ from those of the CPU, so results agree only without dropout.

use super::layers::{Relu, Rows, Scratch, Weights, Worker};
use super::recurrent::{Elman, Lstm, LstmDropout};
use crate::learner::{Choices, DeviceLearner, LearnerState, adamw};
use crate::network::batches::{Batch, Reader};
use crate::network::definition::{Body, Network};
use crate::network::masks::{Masks, WEIGHTS, WORDS};
use crate::params::{NeuralParams, Optimizer};
use latens_corpus::WordId;
use latens_cuda::{
    AdamWStep, Array, Columns, CudaError, Device, Dropout, Precision, ProductShape, Purpose, Shape,
    StepResult, Transposed, WordGroups,
};
use latens_model::{self as model, FitError};
use std::ops::Range;

/// The learner on a CUDA device.
pub(crate) struct CudaLearner<'a> {
    pub(super) device: Device,
    precision: Precision,
    params: &'a NeuralParams,
    pub(super) network: &'a Network,
    pub(super) learned: Weights,
    /// The running average of the weights, if there is one.
    average: Option<Array<f32>>,
    mean: Array<f32>,
    square: Array<f32>,
    n_steps: u64,
    layers: Layers,
    /// Recurrent states: one array per layer, or two for an LSTM.
    pub(super) memory: Vec<Array<f32>>,
    /// Input embeddings after dropout.
    x: Array<f32>,
    pub(super) logits: Array<f32>,
    log_probs: Array<f64>,
    d_out: Array<f32>,
    d_in: Array<f32>,
    scratch: Scratch,
    result: StepResult,
    /// Integers of the last batch, taken out while in use.
    pub(super) ints: Option<Array<u32>>,
}

enum Layers {
    Ff(Vec<Relu>),
    Rnn(Box<Elman>),
    Lstm(Vec<Lstm>),
}

/// The integers of a batch, and their positions in one array.
pub(crate) struct Plan {
    numbers: Vec<u32>,
    n_streams: usize,
    pub(super) n_rows: usize,
    inputs: Range<usize>,
    targets: Range<usize>,
    fresh: Option<usize>,
    words: Range<usize>,
    starts: Range<usize>,
    places: Range<usize>,
}

pub(crate) fn device_error(error: CudaError) -> FitError {
    FitError::Device { device: model::Device::Cuda, problem: error.to_string() }
}

impl<'a> CudaLearner<'a> {
    pub(crate) fn new(
        params: &'a NeuralParams,
        network: &'a Network,
        state: &LearnerState,
        precision: Precision,
    ) -> Result<CudaLearner<'a>, CudaError> {
        let device = Device::open()?;
        let layers = match &network.body {
            Body::Ff(layers) => {
                let layers = layers.iter().map(|layer| Relu::new(&device, layer));
                Layers::Ff(layers.collect::<Result<_, _>>()?)
            }
            Body::Rnn(layer) => Layers::Rnn(Box::new(Elman::new(&device, layer, params.squash)?)),
            Body::Lstm(layers) => {
                let layers = layers.iter().map(|layer| Lstm::new(&device, layer));
                Layers::Lstm(layers.collect::<Result<_, _>>()?)
            }
        };
        let mut learner = CudaLearner {
            precision,
            params,
            network,
            learned: Weights {
                weights: device.upload(&state.weights)?,
                gradient: device.zeros(state.weights.len())?,
            },
            average: match &state.average[..] {
                [] => None,
                average => Some(device.upload(average)?),
            },
            mean: device.upload(&state.mean)?,
            square: device.upload(&state.square)?,
            n_steps: state.n_steps,
            layers,
            memory: vec![],
            x: device.zeros(1)?,
            logits: device.zeros(1)?,
            log_probs: device.zeros(1)?,
            d_out: device.zeros(1)?,
            d_in: device.zeros(1)?,
            scratch: Scratch::new(&device)?,
            result: StepResult::new(&device)?,
            ints: Some(device.zeros(1)?),
            device,
        };
        learner.memory = learner.memories(&state.memory)?;
        Ok(learner)
    }

    /// Uploads the recurrent states to the device.
    fn memories(&self, memory: &[f32]) -> Result<Vec<Array<f32>>, CudaError> {
        let n_streams = memory.len() / self.network.state_len().max(1);
        let sizes = match &self.network.body {
            Body::Ff(_) => vec![],
            Body::Rnn(layer) => vec![layer.dim()],
            Body::Lstm(layers) => layers.iter().flat_map(|layer| [layer.dim(); 2]).collect(),
        };
        let mut rest = memory;
        let upload = |dim: usize| {
            let (own, others) = rest.split_at(n_streams * dim);
            rest = others;
            self.device.upload(own)
        };
        sizes.into_iter().map(upload).collect()
    }

    /// Computes the forward pass up to the logits, without the bias.
    pub(super) fn forward(
        &mut self,
        plan: &Plan,
        ints: &Array<u32>,
        memory: &mut [Array<f32>],
        drops: Drops,
    ) -> Result<(), CudaError> {
        let (n, dim, n_context) = (plan.n_rows, self.network.dim, self.network.n_context);
        let rows = plan.rows(ints);
        let CudaLearner { device, learned: Weights { weights, .. }, layers, x, .. } = self;
        let worker = Worker { device, precision: self.precision };
        // The simple recurrent layer works in place on the embeddings.
        let vectors = match layers {
            Layers::Rnn(layer) => &mut layer.hidden,
            Layers::Ff(_) | Layers::Lstm(_) => &mut *x,
        };
        let n_numbers = n * n_context * dim;
        device.reserve(vectors, n_numbers)?;
        let (out, table) = ((&mut *vectors, Columns::all(dim)), self.network.input.table().range());
        let inputs = (ints, plan.inputs.clone());
        let shape = Shape { rows: n * n_context, columns: dim };
        device.gather_rows(out, (weights, table), inputs.clone(), shape)?;
        if drops.words().rate > 0.0 {
            device.drop_words(vectors, inputs, dim, drops.words())?;
        }
        if drops.units(0, dim).rate > 0.0 {
            device.dropout_in_place((vectors, 0..n_numbers), drops.units(0, dim))?;
        }
        match layers {
            Layers::Ff(layers) => {
                for i in 0..layers.len() {
                    let (below, layer) = layers.split_at_mut(i);
                    let below = below.last().map_or(&*x, |below| &below.out);
                    layer[0].forward(worker, weights, below, n, drops.units(i + 1, dim))?;
                }
            }
            Layers::Rnn(layer) => {
                layer.forward(worker, weights, &rows, &mut memory[0], drops.units(1, dim))?;
            }
            Layers::Lstm(layers) => {
                for (i, memory) in memory.chunks_exact_mut(2).enumerate() {
                    let (below, layer) = layers.split_at_mut(i);
                    let below = below.last().map_or(&*x, |below| &below.out);
                    let [state, cell] = memory else {
                        unreachable!("an LSTM layer has two states")
                    };
                    let dropout = LstmDropout {
                        units: drops.units(i + 1, layer[0].dim()),
                        weights: drops.weights(i),
                    };
                    layer[0].forward(worker, weights, below, &rows, state, cell, dropout)?;
                }
            }
        }
        self.predict(n)
    }

    /// Computes the logits of n rows.
    fn predict(&mut self, n: usize) -> Result<(), CudaError> {
        let (dim, n_words) = (self.network.dim, self.network.n_words());
        let CudaLearner { device, learned: Weights { weights, .. }, logits, .. } = self;
        let worker = Worker { device, precision: self.precision };
        device.reserve(logits, n * n_words)?;
        let out = (self.layers.out(), 0..n * dim, Transposed::No);
        let u = (&*weights, self.network.output.range(), Transposed::Yes);
        let shape = ProductShape { n, m: n_words, k: dim };
        worker.multiply((logits, 0..n * n_words), 0.0, out, u, shape)
    }

    /// Computes ln p of the targets from the logits. To learn, replaces the logits by their derivatives.
    fn score(&mut self, plan: &Plan, ints: &Array<u32>, purpose: Purpose) -> Result<(), CudaError> {
        let (n, targets) = (plan.n_rows, (ints, plan.targets.clone()));
        let CudaLearner { device, learned: Weights { weights, .. }, logits, log_probs, .. } = self;
        device.reserve(log_probs, n)?;
        let bias = (&*weights, self.network.bias.range());
        device.next_words(logits, log_probs, bias, targets, n, purpose)
    }

    /// Backpropagates from the logits to the gradient of Σ ln p.
    fn backward(&mut self, plan: &Plan, ints: &Array<u32>, drops: Drops) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let (n, dim, n_words) = (plan.n_rows, self.network.dim, self.network.n_words());
        let n_numbers = n * self.network.n_context * dim;
        let rows = plan.rows(ints);
        let widest = n_numbers.max(n * self.params.layer_dims().into_iter().fold(dim, usize::max));
        let CudaLearner { device, learned, layers, x, logits, d_out, d_in, scratch, .. } = self;
        let worker = Worker { device, precision: self.precision };
        device.clear(&mut learned.gradient)?;
        device.reserve(d_out, widest)?;
        device.reserve(d_in, widest)?;

        let (output, d_logits) = (self.network.output.range(), 0..n * n_words);
        let u = (&learned.weights, output.clone(), No);
        let d = (&*logits, d_logits.clone(), No);
        worker.multiply((d_out, 0..n * dim), 0.0, d, u, ProductShape { n, m: dim, k: n_words })?;
        let (d, out) = ((&*logits, d_logits, Yes), (layers.out(), 0..n * dim, No));
        let shape = ProductShape { n: n_words, m: dim, k: n };
        worker.multiply((&mut learned.gradient, output), 1.0, d, out, shape)?;
        let bias = (&mut learned.gradient, self.network.bias.range());
        device.add_column_sums(bias, logits, n, Columns::all(n_words))?;
        let penalty = self.network.activation_penalty;
        if penalty > 0.0 {
            // Derivatives on the device are those of Σ ln p.
            let factor = (-2.0 * penalty / dim as f64) as f32;
            device.add_scaled(d_out, layers.out(), n * dim, factor)?;
        }

        match layers {
            Layers::Ff(layers) => {
                for i in (0..layers.len()).rev() {
                    let (below, layer) = layers.split_at_mut(i);
                    let below = below.last().map_or(&*x, |below| &below.out);
                    let rate = drops.units(i + 1, dim).rate;
                    layer[0].backward(worker, learned, below, d_out, d_in, n, rate, scratch)?;
                    std::mem::swap(d_out, d_in);
                }
            }
            Layers::Rnn(layer) => {
                if drops.units(1, dim).rate > 0.0 {
                    device.dropout_in_place((d_out, 0..n * dim), drops.units(1, dim))?;
                }
                layer.backward(worker, learned, &rows, d_out, d_in, scratch)?;
                std::mem::swap(d_out, d_in);
            }
            Layers::Lstm(layers) => {
                for i in (0..layers.len()).rev() {
                    let (below, layer) = layers.split_at_mut(i);
                    let below = below.last().map_or(&*x, |below| &below.out);
                    let dim = layer[0].dim();
                    let units = drops.units(i + 1, dim);
                    if units.rate > 0.0 {
                        device.dropout_in_place((d_out, 0..n * dim), units)?;
                    }
                    let drop = drops.weights(i);
                    layer[0].backward(worker, learned, below, &rows, d_out, d_in, drop, scratch)?;
                    std::mem::swap(d_out, d_in);
                }
            }
        }
        if drops.units(0, dim).rate > 0.0 {
            device.dropout_in_place((d_out, 0..n_numbers), drops.units(0, dim))?;
        }
        if drops.words().rate > 0.0 {
            device.drop_words(d_out, (ints, plan.inputs.clone()), dim, drops.words())?;
        }
        let table = (&mut learned.gradient, self.network.input.table().range());
        device.add_rows_of_words(table, d_out, &plan.groups(ints), dim)
    }

    fn try_step(&mut self, plan: &Plan, choices: &Choices) -> Result<(), CudaError> {
        let ints = self.upload(plan)?;
        let n_layers = self.params.n_layers;
        let drops = Drops { masks: choices.masks, n_streams: plan.n_streams, n_layers };
        let mut memory = std::mem::take(&mut self.memory);
        let read = self.forward(plan, &ints, &mut memory, drops);
        // After an error, too: the next call returns the error of the device again.
        self.memory = memory;
        read?;
        self.score(plan, &ints, Purpose::Learn)?;
        self.backward(plan, &ints, drops)?;
        self.ints = Some(ints);

        let CudaLearner { device, learned: Weights { weights, gradient }, result, .. } = self;
        let log_probs = (&self.log_probs, plan.n_rows);
        device.step_scale(result, gradient, log_probs, (choices.scale, self.params.clip))?;
        match self.params.optimizer {
            Optimizer::Sgd => device.sgd(weights, gradient, result, choices.learning_rate)?,
            Optimizer::AdamW => {
                let step =
                    adamw_step(self.params, self.n_steps.saturating_add(1), choices.learning_rate);
                let moments = (&mut *weights, &mut self.mean, &mut self.square);
                device.adamw(moments, gradient, result, &step)?;
            }
        }
        if let Some(average) = &mut self.average {
            device.average(average, weights, self.params.average)?;
        }
        Ok(())
    }

    /// Uploads the integers of a batch to the device.
    pub(super) fn upload(&mut self, plan: &Plan) -> Result<Array<u32>, CudaError> {
        let mut ints = self.ints.take().map_or_else(|| self.device.zeros(1), Ok)?;
        // Recordings contain its address, so it should seldom grow.
        self.device.reserve(&mut ints, plan.numbers.len().next_power_of_two())?;
        self.device.write(&plan.numbers, &mut ints)?;
        Ok(ints)
    }

    /// Exchanges the weights and their average, if there is one.
    fn swap_average(&mut self) {
        if let Some(average) = &mut self.average {
            std::mem::swap(average, &mut self.learned.weights);
        }
    }

    fn try_log_prob(&mut self, text: &[WordId]) -> Result<f64, CudaError> {
        let reader = Reader::to_score(self.params, text);
        let zeros = vec![0.0; reader.n_streams() * self.network.state_len()];
        let (mut memory, mut sum) = (self.memories(&zeros)?, 0.0);
        for at in 0..reader.len() {
            let batch = reader.batch(at, &[]);
            let plan = Plan::new(&batch);
            let ints = self.upload(&plan)?;
            self.forward(&plan, &ints, &mut memory, Drops::default())?;
            self.score(&plan, &ints, Purpose::Score)?;
            self.ints = Some(ints);
            let log_probs = self.device.download(&self.log_probs)?;
            sum += log_probs[..plan.n_rows].iter().sum::<f64>();
        }
        Ok(sum)
    }
}

/// Σ ln p of running text with an empty history, in full precision.
pub(crate) fn log_prob(
    params: &NeuralParams,
    network: &Network,
    weights: &[f32],
    text: &[WordId],
) -> Result<f64, CudaError> {
    let state = LearnerState::to_use(weights, 0);
    CudaLearner::new(params, network, &state, Precision::Full)?.try_log_prob(text)
}

impl Layers {
    /// Output of the last layer.
    fn out(&self) -> &Array<f32> {
        match self {
            Layers::Ff(layers) => &layers.last().expect("there is at least one layer").out,
            Layers::Rnn(layer) => &layer.out,
            Layers::Lstm(layers) => &layers.last().expect("there is at least one layer").out,
        }
    }
}

impl Plan {
    /// The plan of a batch. Rows with the same input word are grouped, so that their derivatives are
    /// always added in the same order.
    pub(super) fn new(batch: &Batch) -> Plan {
        let mut numbers = Vec::new();
        let mut push = |part: &mut dyn Iterator<Item = u32>| {
            let start = numbers.len();
            numbers.extend(part);
            start..numbers.len()
        };
        let mut places: Vec<u32> = (0..batch.inputs.len() as u32).collect();
        places.sort_by_key(|&place| batch.inputs[place as usize]);
        let word = |place: &u32| batch.inputs[*place as usize];
        let groups: Vec<&[u32]> = places.chunk_by(|a, b| word(a) == word(b)).collect();
        let ends = groups.iter().scan(0, |end, group| {
            *end += group.len() as u32;
            Some(*end)
        });
        Plan {
            n_streams: batch.n_streams,
            n_rows: batch.n_rows(),
            inputs: push(&mut batch.inputs.iter().copied()),
            targets: push(&mut batch.targets.iter().copied()),
            fresh: Some(push(&mut batch.fresh.iter().map(|&fresh| u32::from(fresh))))
                .filter(|fresh| !fresh.is_empty())
                .map(|fresh| fresh.start),
            words: push(&mut groups.iter().map(|group| word(&group[0]))),
            starts: push(&mut [0].into_iter().chain(ends)),
            places: push(&mut places.iter().copied()),
            numbers,
        }
    }

    fn rows<'i>(&self, ints: &'i Array<u32>) -> Rows<'i> {
        let n_steps = self.n_rows / self.n_streams;
        Rows { n_streams: self.n_streams, n_steps, ints, fresh: self.fresh }
    }

    fn groups<'i>(&self, ints: &'i Array<u32>) -> WordGroups<'i> {
        let Plan { words, starts, places, .. } = self;
        let (words, starts, places) = (words.clone(), starts.clone(), places.clone());
        WordGroups { ints, words, starts, places }
    }
}

/// The dropout of a step. By default nothing is dropped.
#[derive(Clone, Copy, Default)]
pub(super) struct Drops {
    masks: Option<Masks>,
    n_streams: usize,
    n_layers: usize,
}

impl Drops {
    /// Dropout of the word vectors (place 0) or of the output of layer `place`, which has `dim` units.
    fn units(self, place: usize, dim: usize) -> Dropout {
        let dropout = self.part(place as u64, |masks| masks.units(place, self.n_layers));
        let period = self.masks.map_or(usize::MAX, |masks| masks.period(self.n_streams));
        Dropout { period: (period != usize::MAX).then_some(period.saturating_mul(dim)), ..dropout }
    }

    fn words(self) -> Dropout {
        self.part(WORDS, Masks::words)
    }

    fn weights(self, layer: usize) -> Dropout {
        self.part(WEIGHTS + layer as u64, |masks| masks.weights(layer))
    }

    fn part(self, index: u64, of: impl Fn(&Masks) -> Option<latens_nn::Dropout>) -> Dropout {
        let Some(masks) = self.masks else { return Dropout::NONE };
        let Some(dropout) = of(&masks) else { return Dropout::NONE };
        let seed = masks.seed().wrapping_add(index << 32);
        Dropout { rate: dropout.rate() as f32, seed, period: None }
    }
}

/// The constants of one AdamW step.
fn adamw_step(params: &NeuralParams, n_steps: u64, learning_rate: f64) -> AdamWStep {
    let step = adamw(params).step(n_steps, learning_rate);
    AdamWStep {
        betas: step.betas,
        epsilon: step.epsilon,
        kept: step.kept,
        rate: step.rate,
        root_scale: step.root_scale,
    }
}

impl DeviceLearner for CudaLearner<'_> {
    type Plan = Plan;

    fn plan(&self, batch: &Batch) -> Plan {
        Plan::new(batch)
    }

    fn begin_step(&mut self, _: &Batch, plan: &Plan, choices: &Choices) -> Result<(), FitError> {
        self.try_step(plan, choices).map_err(FitError::step("train on the device"))
    }

    fn end_step(&mut self) -> Result<f64, FitError> {
        let log_prob = self.result.log_prob(&self.device);
        let log_prob = log_prob.map_err(FitError::step("train on the device"))?;
        if log_prob.is_finite() && self.params.optimizer == Optimizer::AdamW {
            self.n_steps = self.n_steps.saturating_add(1);
        }
        Ok(log_prob)
    }

    fn log_prob(&mut self, text: &[WordId]) -> Result<f64, FitError> {
        self.swap_average();
        let log_prob = self.try_log_prob(text);
        self.swap_average();
        log_prob.map_err(FitError::step("score on the device"))
    }

    fn forget(&mut self) -> Result<(), FitError> {
        let clear = |memory: &mut Array<f32>| self.device.clear(memory);
        self.memory.iter_mut().try_for_each(clear).map_err(FitError::step("clear the device"))
    }

    fn set_weights(&mut self, weights: &[f32]) -> Result<(), FitError> {
        let written = self.device.write(weights, &mut self.learned.weights);
        written.map_err(FitError::step("write to the device"))
    }

    fn state(&self) -> Result<LearnerState, FitError> {
        let download = |array: &Array<f32>, n: usize| {
            let numbers =
                self.device.download(array).map_err(FitError::step("read from the device"));
            numbers.map(|numbers| numbers[..n].to_vec())
        };
        let n_moments = crate::learner::n_moments(self.params, self.network.layout.len());
        let memory = self.memory.iter().map(|memory| download(memory, memory.len()));
        Ok(LearnerState {
            weights: download(&self.learned.weights, self.network.layout.len())?,
            average: match &self.average {
                Some(average) => download(average, self.network.layout.len())?,
                None => vec![],
            },
            mean: download(&self.mean, n_moments)?,
            square: download(&self.square, n_moments)?,
            n_steps: self.n_steps,
            memory: memory.collect::<Result<Vec<_>, _>>()?.concat(),
        })
    }
}

#[cfg(test)]
mod tests;
