//! Training on a CUDA device: the same steps as `crate::learner::CpuLearner`, with all weights, gradients and recurrent
//! states on the device.
//!
//! Dropout masks differ from those of the CPU, so results agree only without dropout.

mod layers;
#[cfg(test)]
mod tests;

use crate::batches::{Batch, Reader};
use crate::learner::{Choices, DeviceLearner, LearnerState, adamw};
use crate::network::{Body, Network};
use crate::params::{NeuralParams, Optimizer};
use latens_corpus::WordId;
use latens_cuda::{
    AdamWStep, Array, Columns, CudaError, Device, Precision, StepResult, Transposed, WordGroups,
};
use latens_model::{self as model, FitError};
use layers::{Elman, Lstm, Relu, Rows, Scratch, Weights, Worker};
use std::ops::Range;

/// The learner on a CUDA device.
pub(crate) struct CudaLearner<'a> {
    device: Device,
    precision: Precision,
    params: &'a NeuralParams,
    network: &'a Network,
    learned: Weights,
    mean: Array<f32>,
    square: Array<f32>,
    n_steps: u64,
    layers: Layers,
    /// Recurrent states: one array per layer, or two for an LSTM.
    memory: Vec<Array<f32>>,
    /// Input embeddings after dropout.
    x: Array<f32>,
    logits: Array<f32>,
    log_probs: Array<f64>,
    d_out: Array<f32>,
    d_in: Array<f32>,
    scratch: Scratch,
    result: StepResult,
    /// Integers of the last batch, taken out while in use.
    ints: Option<Array<u32>>,
}

enum Layers {
    Ff(Vec<Relu>),
    Rnn(Box<Elman>),
    Lstm(Vec<Lstm>),
}

/// Positions of a batch's integers in one array.
struct Plan {
    n_streams: usize,
    n_rows: usize,
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
        let n = self.network.state_len() / self.network.dim;
        if n == 0 {
            return Ok(vec![]);
        }
        memory.chunks_exact(memory.len() / n).map(|part| self.device.upload(part)).collect()
    }

    /// Computes the forward pass and ln p of the targets. If it `learns`, replaces the logits by their derivatives.
    fn forward(
        &mut self,
        plan: &Plan,
        ints: &Array<u32>,
        memory: &mut [Array<f32>],
        dropout: (f32, u64),
        learns: bool,
    ) -> Result<(), CudaError> {
        let (n, dim, n_context) = (plan.n_rows, self.network.dim, self.network.n_context);
        let (rows, part) = (plan.rows(ints), |i: usize| part(dropout, i));
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
        device.gather_rows(out, (weights, table), inputs, (n * n_context, dim))?;
        if dropout.0 > 0.0 {
            device.dropout_in_place(vectors, n_numbers, part(0))?;
        }
        match layers {
            Layers::Ff(layers) => {
                for i in 0..layers.len() {
                    let (below, layer) = layers.split_at_mut(i);
                    let below = below.last().map_or(&*x, |below| &below.out);
                    layer[0].forward(worker, weights, below, n, part(i + 1))?;
                }
            }
            Layers::Rnn(layer) => {
                layer.forward(worker, weights, &rows, &mut memory[0], part(1))?;
            }
            Layers::Lstm(layers) => {
                for (i, memory) in memory.chunks_exact_mut(2).enumerate() {
                    let (below, layer) = layers.split_at_mut(i);
                    let below = below.last().map_or(&*x, |below| &below.out);
                    let [state, cell] = memory else {
                        unreachable!("an LSTM layer has two states")
                    };
                    layer[0].forward(worker, weights, below, &rows, state, cell, part(i + 1))?;
                }
            }
        }
        self.predict(plan, ints, learns)
    }

    fn predict(&mut self, plan: &Plan, ints: &Array<u32>, learns: bool) -> Result<(), CudaError> {
        let (n, dim, n_words) = (plan.n_rows, self.network.dim, self.network.n_words());
        let CudaLearner { device, learned: Weights { weights, .. }, logits, log_probs, .. } = self;
        let worker = Worker { device, precision: self.precision };
        device.reserve(logits, n * n_words)?;
        device.reserve(log_probs, n)?;
        let out = (self.layers.out(), 0..n * dim, Transposed::No);
        let u = (&*weights, self.network.output.range(), Transposed::Yes);
        worker.multiply((logits, 0..n * n_words), 0.0, out, u, (n, n_words, dim))?;
        let bias = (&*weights, self.network.bias.range());
        device.next_words(logits, log_probs, bias, (ints, plan.targets.clone()), n, learns)
    }

    /// Backpropagates from the logits to the gradient of Σ ln p.
    fn backward(
        &mut self,
        plan: &Plan,
        ints: &Array<u32>,
        dropout: (f32, u64),
    ) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let (n, dim, n_words) = (plan.n_rows, self.network.dim, self.network.n_words());
        let n_numbers = n * self.network.n_context * dim;
        let (rows, part) = (plan.rows(ints), |i: usize| part(dropout, i));
        let CudaLearner { device, learned, layers, x, logits, d_out, d_in, scratch, .. } = self;
        let worker = Worker { device, precision: self.precision };
        device.clear(&mut learned.gradient)?;
        device.reserve(d_out, n_numbers.max(n * dim))?;
        device.reserve(d_in, n_numbers.max(n * dim))?;

        let (output, d_logits) = (self.network.output.range(), 0..n * n_words);
        let u = (&learned.weights, output.clone(), No);
        let d = (&*logits, d_logits.clone(), No);
        worker.multiply((d_out, 0..n * dim), 0.0, d, u, (n, dim, n_words))?;
        let (d, out) = ((&*logits, d_logits, Yes), (layers.out(), 0..n * dim, No));
        worker.multiply((&mut learned.gradient, output), 1.0, d, out, (n_words, dim, n))?;
        let bias = (&mut learned.gradient, self.network.bias.range());
        device.add_column_sums(bias, logits, n, Columns::all(n_words))?;

        match layers {
            Layers::Ff(layers) => {
                for i in (0..layers.len()).rev() {
                    let (below, layer) = layers.split_at_mut(i);
                    let below = below.last().map_or(&*x, |below| &below.out);
                    let rate = dropout.0;
                    layer[0].backward(worker, learned, below, d_out, d_in, n, rate, scratch)?;
                    std::mem::swap(d_out, d_in);
                }
            }
            Layers::Rnn(layer) => {
                if dropout.0 > 0.0 {
                    device.dropout_in_place(d_out, n * dim, part(1))?;
                }
                layer.backward(worker, learned, &rows, d_out, d_in, scratch)?;
                std::mem::swap(d_out, d_in);
            }
            Layers::Lstm(layers) => {
                for i in (0..layers.len()).rev() {
                    if dropout.0 > 0.0 {
                        device.dropout_in_place(d_out, n * dim, part(i + 1))?;
                    }
                    let (below, layer) = layers.split_at_mut(i);
                    let below = below.last().map_or(&*x, |below| &below.out);
                    layer[0].backward(worker, learned, below, &rows, d_out, d_in, scratch)?;
                    std::mem::swap(d_out, d_in);
                }
            }
        }
        if dropout.0 > 0.0 {
            device.dropout_in_place(d_out, n_numbers, part(0))?;
        }
        let table = (&mut learned.gradient, self.network.input.table().range());
        device.add_rows_of_words(table, d_out, &plan.groups(ints), dim)
    }

    fn try_step(&mut self, batch: &Batch, choices: &Choices) -> Result<f64, CudaError> {
        let dropout = match choices.dropout {
            Some(dropout) => (self.params.dropout as f32, dropout.seed()),
            None => (0.0, 0),
        };
        let (plan, ints) = self.plan(batch)?;
        let mut memory = std::mem::take(&mut self.memory);
        let read = self.forward(&plan, &ints, &mut memory, dropout, true);
        // After an error, too: the next call returns the error of the device again.
        self.memory = memory;
        read?;
        self.backward(&plan, &ints, dropout)?;
        self.ints = Some(ints);

        let CudaLearner { device, learned: Weights { weights, gradient }, result, .. } = self;
        let log_probs = (&self.log_probs, plan.n_rows);
        device.step_scale(result, gradient, log_probs, (choices.scale, self.params.clip))?;
        match self.params.optimizer {
            Optimizer::Sgd => device.sgd(weights, gradient, result, choices.learning_rate)?,
            Optimizer::AdamW => {
                let step = adamw_step(self.params, self.n_steps + 1, choices.learning_rate);
                let moments = (&mut *weights, &mut self.mean, &mut self.square);
                device.adamw(moments, gradient, result, &step)?;
            }
        }
        let log_prob = result.log_prob(device)?;
        if log_prob.is_finite() && self.params.optimizer == Optimizer::AdamW {
            self.n_steps += 1;
        }
        Ok(log_prob)
    }

    /// Uploads the integers of a batch to the device.
    fn plan(&mut self, batch: &Batch) -> Result<(Plan, Array<u32>), CudaError> {
        let mut ints = self.ints.take().map_or_else(|| self.device.zeros(1), Ok)?;
        let (plan, numbers) = Plan::new(batch);
        self.device.reserve(&mut ints, numbers.len())?;
        self.device.write(&numbers, &mut ints)?;
        Ok((plan, ints))
    }

    fn try_log_prob(&mut self, text: &[WordId]) -> Result<f64, CudaError> {
        let reader = Reader::to_score(self.params, text);
        let zeros = vec![0.0; reader.n_streams() * self.network.state_len()];
        let (mut memory, mut sum) = (self.memories(&zeros)?, 0.0);
        for at in 0..reader.len() {
            let batch = reader.batch(at, &[]);
            let (plan, ints) = self.plan(&batch)?;
            self.forward(&plan, &ints, &mut memory, (0.0, 0), false)?;
            self.ints = Some(ints);
            let log_probs = self.device.download(&self.log_probs)?;
            sum += log_probs[..plan.n_rows].iter().sum::<f64>();
        }
        Ok(sum)
    }
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
    /// The plan of a batch and its integers. Rows with the same input word are grouped, so that their derivatives are
    /// always added in the same order.
    fn new(batch: &Batch) -> (Plan, Vec<u32>) {
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
        let plan = Plan {
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
        };
        (plan, numbers)
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

/// Dropout settings of the i-th place in a network.
fn part((rate, seed): (f32, u64), i: usize) -> (f32, u64) {
    (rate, seed.wrapping_add((i as u64) << 32))
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
    fn step(&mut self, batch: &Batch, choices: &Choices) -> Result<f64, FitError> {
        self.try_step(batch, choices).map_err(FitError::step("train on the device"))
    }

    fn log_prob(&mut self, text: &[WordId]) -> Result<f64, FitError> {
        self.try_log_prob(text).map_err(FitError::step("score on the device"))
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
            mean: download(&self.mean, n_moments)?,
            square: download(&self.square, n_moments)?,
            n_steps: self.n_steps,
            memory: memory.collect::<Result<Vec<_>, _>>()?.concat(),
        })
    }
}
