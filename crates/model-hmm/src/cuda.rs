//! The learner on a CUDA device: the same steps as `crate::learner::CpuLearner`, with all weights, probabilities and
//! expected counts on the device.
//!
//! A step writes the logits of all pairs of states that take part once, in half precision if the states of a cluster
//! come in eights. One pass over them finds their sums, writes the blocks that the batch uses, and puts minus the
//! probabilities in their place; to these the expected transitions are added where there are any, which gives the derivatives
//! but for a factor a row. No sentence is impossible or too unlikely
//! here, since no transition is taken for less than 10⁻³⁰ and no emission for less than 10⁻³³; the CPU goes on in
//! logarithms instead.

mod em;
mod plan;
mod residual;
mod states;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use em::CudaEstimator;

use crate::learner::{Choices, Learner, LearnerState};
use crate::neural::Neural;
use crate::parameters::Parameters;
use crate::params::HmmParams;
use crate::states::Use;
use crate::support::Support;
use crate::tables::{Batch, Kept};
use latens_cuda::{
    AdamWStep, Array, CudaError, Device, Emissions, Precision, StepResult, Transposed,
};
use latens_model::FitError;
use latens_nn::{AdamWParams, Dropout, Layout};
use plan::{Plan, Planned};
use residual::{Residual, Scratch};
use states::{KeptStates, StateVectors};
use std::ops::Range;
use tables::Tables;

/// The most numbers of blocks, and of tokens, that a score holds at once: 16 GiB.
const MAX_BLOCK_NUMBERS: usize = 1 << 32;

/// Weights and their derivatives.
#[derive(Debug)]
struct Weights {
    weights: Array<f32>,
    gradient: Array<f32>,
}

/// The learner on a CUDA device.
pub(crate) struct CudaLearner<'a> {
    device: Device,
    /// Where starts and emissions are computed while transitions are.
    side: Device,
    precision: Precision,
    support: &'a Support,
    clip: f64,
    dropout: f32,
    adamw: AdamWParams,
    n_steps: u64,
    learned: Weights,
    mean: Array<f32>,
    square: Array<f32>,
    start_out: Range<usize>,
    words: Range<usize>,
    bias: Range<usize>,
    dim: usize,
    states: StateVectors,
    start: Residual,
    transition: Residual,
    emission: Residual,
    emissions: Emissions,
    scratch: Scratch,
    tables: Tables,
    result: StepResult,
    kept: Array<u32>,
    /// Numbers of the last batch; lent out while they are used.
    ints: Option<Array<u32>>,
}

impl<'a> CudaLearner<'a> {
    pub(crate) fn new(
        params: &HmmParams,
        support: &'a Support,
        neural: &Neural<f32>,
        state: &LearnerState,
        precision: Precision,
    ) -> Result<CudaLearner<'a>, CudaError> {
        let device = Device::open()?;
        let (n, dim, layout) = (support.n_states(), params.dim, neural.layout());
        let net = |name: &str| Residual::new(&device, layout, name, n);
        let clusters: Vec<_> = (0..support.n_clusters()).map(|c| support.slots(c)).collect();
        Ok(CudaLearner {
            precision,
            support,
            clip: params.clip,
            dropout: params.dropout as f32,
            adamw: AdamWParams { weight_decay: params.weight_decay, ..AdamWParams::default() },
            n_steps: state.n_steps,
            learned: Weights {
                weights: device.upload(&state.weights)?,
                gradient: device.zeros(state.weights.len())?,
            },
            mean: device.upload(&state.mean)?,
            square: device.upload(&state.square)?,
            start_out: range(layout, "start.out.weight"),
            words: range(layout, "words.weight"),
            bias: range(layout, "words.bias"),
            dim,
            states: StateVectors::new(&device, params, layout, n)?,
            start: net("start")?,
            transition: net("transition")?,
            emission: net("emission")?,
            emissions: Emissions::new(&device, &clusters)?,
            scratch: Scratch::new(&device, n, dim)?,
            tables: Tables::new(&device, n)?,
            result: StepResult::new(&device)?,
            kept: device.zeros(n)?,
            ints: Some(device.zeros(1)?),
            side: device.beside()?,
            device,
        })
    }

    /// Probabilities of start and emission, at the side, and the factors of transitions.
    fn forward(&mut self, kept: &Kept, (rate, seed): (f32, u64)) -> Result<(), CudaError> {
        let CudaLearner { device, side, learned: Weights { weights, .. }, tables, .. } = self;
        let (n, precision) = (kept.states.len(), self.precision);
        device.write(&kept.states, &mut self.kept)?;
        let states = KeptStates { states: &self.kept, n, k: kept.k };
        let part = |i: u64| (rate, seed.wrapping_add(i << 32));
        self.states.forward(device, weights, states, part(0), precision)?;
        side.after(device)?;
        for (i, (device, net, of)) in [
            (&*side, &mut self.start, Use::Start),
            (&*device, &mut self.transition, Use::From),
            (&*side, &mut self.emission, Use::Emit),
        ]
        .into_iter()
        .enumerate()
        {
            let x = self.states.vectors(of);
            net.forward(device, weights, x, n, part(1 + i as u64), precision)?;
        }
        side.multiply(
            (&mut tables.start, 0..n),
            0.0,
            (&self.start.out, 0..n * self.dim, Transposed::No),
            (weights, self.start_out.clone(), Transposed::Yes),
            (n, 1, self.dim),
            Precision::Full,
        )?;
        side.softmax(&mut tables.start, n)?;
        side.reserve(&mut tables.emission, self.support.n_slots() * kept.k)?;
        self.emissions.forward(
            side,
            &mut tables.emission,
            (weights, self.words.clone(), self.bias.clone()),
            &self.emission.out,
            (kept.k, self.dim),
            precision,
        )
    }

    /// Whether logits are of half precision, which eight states at a time allow.
    fn is_half(&self, k: usize) -> bool {
        // One cluster is learned in steps, which want all transitions in full.
        self.precision == Precision::Fast && k.is_multiple_of(8) && self.support.n_clusters() > 1
    }

    /// The logits of transitions from some states to all.
    fn logits(&mut self, rows: Range<usize>, (k, n): (usize, usize)) -> Result<(), CudaError> {
        let is_half = self.is_half(k);
        let CudaLearner { device, tables, dim, .. } = self;
        let sizes = (rows.len(), n, *dim);
        let (from, to) = (rows.start * *dim..rows.end * *dim, 0..n * *dim);
        if is_half {
            if rows.start == 0 {
                for (half, factor) in [
                    (&mut tables.half_from, &self.transition.out),
                    (&mut tables.half_to, self.states.vectors(Use::To)),
                ] {
                    device.reserve(half, n * *dim)?;
                    device.to_half(half, factor, n * *dim)?;
                }
            }
            device.reserve(&mut tables.half_logits, rows.len() * n)?;
            let out = (&mut tables.half_logits, 0..rows.len() * n);
            let from = (&tables.half_from, from, Transposed::No);
            let to = (&tables.half_to, to, Transposed::Yes);
            return device.multiply_half(out, from, to, sizes);
        }
        device.reserve(&mut tables.logits, rows.len() * n)?;
        let from = (&self.transition.out, from, Transposed::No);
        let to = (self.states.vectors(Use::To), to, Transposed::Yes);
        let out = (&mut tables.logits, 0..rows.len() * n);
        device.multiply(out, 0.0, from, to, sizes, self.precision)
    }

    fn try_step(
        &mut self,
        plan: &Plan,
        kept: &Kept,
        seed: u64,
        learning_rate: f64,
    ) -> Result<(), CudaError> {
        let (k, n) = (kept.k, kept.states.len());
        let is_half = self.is_half(k);
        // First what is copied to the device: a copy waits for the work before it.
        let mut ints = self.ints.take().expect("it is put back");
        let planned = Planned::new(&self.device, plan, &mut ints)?;
        self.device.clear(&mut self.learned.gradient)?;
        self.forward(kept, (self.dropout, seed))?;
        self.logits(0..n, (k, n))?;
        self.tables.make_room(&self.device, plan, k)?;
        self.tables.transitions(&self.device, &planned, (k, n), is_half)?;
        self.device.after(&self.side)?;
        let devices = (&self.device, &self.side);
        self.tables.expect(devices, &planned, (k, n), (is_half, self.precision))?;
        self.backward(&planned, kept)?;
        self.ints = Some(ints);

        let CudaLearner { device, learned: Weights { weights, gradient }, result, .. } = self;
        let per_token = 1.0 / plan.n_tokens().max(1) as f64;
        let log_probs = (&self.tables.log_probs, plan.n_sentences());
        device.step_scale(result, gradient, log_probs, (per_token, self.clip))?;
        let step = step_of(&self.adamw, self.n_steps + 1, learning_rate);
        device.adamw((weights, &mut self.mean, &mut self.square), gradient, result, &step)
    }

    /// Expected counts ─▶ the gradient; of starts and emissions at the side.
    fn backward(&mut self, planned: &Planned<'_>, kept: &Kept) -> Result<(), CudaError> {
        let (k, n, precision) = (kept.k, kept.states.len(), self.precision);
        self.side.after(&self.device)?;
        self.backward_start(n)?;
        self.backward_emission(planned, k)?;
        self.backward_transition(planned, (k, n))?;
        for (net, of) in [(&mut self.start, Use::Start), (&mut self.emission, Use::Emit)] {
            let (x, d_x) = self.states.vectors_and_gradients(of);
            net.backward(&self.side, &mut self.learned, x, d_x, n, &mut self.scratch, precision)?;
        }
        self.device.after(&self.side)?;
        let CudaLearner { device, learned, scratch, transition, .. } = self;
        let (x, d_x) = self.states.vectors_and_gradients(Use::From);
        transition.backward(device, learned, x, d_x, n, scratch, precision)?;
        let states = KeptStates { states: &self.kept, n, k };
        self.states.backward(device, learned, states, scratch, precision)
    }

    fn backward_emission(&mut self, planned: &Planned<'_>, k: usize) -> Result<(), CudaError> {
        let CudaLearner { side, tables, learned: Weights { weights, gradient }, .. } = self;
        let count_of = (planned.ints, planned.plan.count_of.clone());
        let counts = (&tables.emitted, count_of);
        self.emissions.logit_gradient(side, &mut tables.emission, counts, &tables.visits, k)?;
        self.emissions.backward(
            side,
            &tables.emission,
            (weights, &self.emission.out),
            (gradient, self.words.clone(), self.bias.clone()),
            &mut self.emission.d_out,
            (k, self.dim),
            self.precision,
        )
    }

    fn backward_start(&mut self, n: usize) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let CudaLearner { side, tables, learned: Weights { weights, gradient }, dim, .. } = self;
        side.softmax_gradient(&mut tables.start, &tables.start_counts, n)?;
        let d_logits = |transposed| (&tables.start, 0..n, transposed);
        let all = 0..n * *dim;
        let (out, f) = ((gradient, self.start_out.clone()), (&self.start.out, all.clone(), No));
        side.multiply(out, 1.0, d_logits(Yes), f, (1, *dim, n), Precision::Full)?;
        let (out, w) = ((&mut self.start.d_out, all), (&*weights, self.start_out.clone(), No));
        side.multiply(out, 0.0, d_logits(No), w, (n, *dim, 1), Precision::Full)
    }

    fn backward_transition(
        &mut self,
        planned: &Planned<'_>,
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        use Transposed::{No, Yes};
        let is_half = self.is_half(k);
        let CudaLearner { device, tables, dim, precision, .. } = self;
        let (dim, all, vectors) = (*dim, 0..n * n, 0..n * *dim);
        let from = &self.transition.out;
        let (to, d_to) = self.states.vectors_and_gradients(Use::To);
        let d_from = &mut self.transition.d_out;
        let d_to = (d_to, vectors.clone());
        if !is_half {
            let block_of = (planned.ints, planned.plan.block_of.clone());
            let (logits, ratios) =
                ((&mut tables.logits, &tables.log_sums), (&tables.blocks, block_of));
            device.transition_gradient(logits, &tables.left, ratios, (k, n))?;
            let g = |transposed| (&tables.logits, all.clone(), transposed);
            let (from, to) = ((from, vectors.clone(), No), (to, vectors.clone(), No));
            device.multiply((d_from, vectors), 0.0, g(No), to, (n, dim, n), *precision)?;
            return device.multiply(d_to, 1.0, g(Yes), from, (n, dim, n), *precision);
        }
        // What the derivatives by a row of logits are a multiple of, and how much of it: the states left.
        let g = |transposed| (&tables.half_logits, all.clone(), transposed);
        device.to_bf16(&mut tables.half_to, to, n * dim)?;
        let to = (&tables.half_to, vectors.clone(), No);
        device.multiply_bf16((d_from, vectors.clone()), 0.0, g(No), to, (n, dim, n))?;
        device.scale_rows(d_from, &tables.left, (n, dim))?;
        device.scaled_to_bf16(&mut tables.half_from, from, &tables.left, (n, dim))?;
        let from = (&tables.half_from, vectors, No);
        device.multiply_bf16(d_to, 1.0, g(Yes), from, (n, dim, n))
    }

    /// Σ ln p of a batch, whose blocks must have room.
    fn score(&mut self, batch: &Batch<'_>, kept: &Kept) -> Result<f64, CudaError> {
        /// About how many rows of logits are made at a time.
        const ROWS: usize = 4096;
        let (k, n, m) = (kept.k, kept.states.len(), self.support.n_clusters());
        let plan = Plan::to_score(self.support, batch);
        let is_half = self.is_half(k);
        let mut ints = self.ints.take().expect("it is put back");
        let planned = Planned::new(&self.device, &plan, &mut ints)?;
        self.tables.make_room_to_score(&self.device, &plan, k)?;
        for first in (0..m).step_by((ROWS / k).max(1)) {
            let clusters = first..(first + (ROWS / k).max(1)).min(m);
            let rows = clusters.start * k..clusters.end * k;
            self.logits(rows.clone(), (k, n))?;
            self.tables.sum_logits(&self.device, rows, n, is_half)?;
            let (which, sizes) = (plan.blocks_from(clusters.clone()), (k, n, is_half));
            self.tables.gather(&self.device, &planned, which, clusters.start * k, sizes)?;
        }
        // The recursion is the processor's: in full.
        self.tables.forward(&self.device, &planned, k, Precision::Full)?;
        self.ints = Some(ints);
        let log_probs = self.device.download(&self.tables.log_probs)?;
        Ok(log_probs[..plan.n_sentences()].iter().sum())
    }

    fn try_log_prob(&mut self, batches: &[Batch<'_>]) -> Result<f64, CudaError> {
        let kept = Kept::all(self.support);
        let mut words = batches.iter().flat_map(|batch| &batch.sentences).copied().flatten();
        if words.any(|&word| self.support.slot(word).is_none()) {
            return Ok(f64::NEG_INFINITY);
        }
        self.forward(&kept, (0.0, 0))?;
        self.device.after(&self.side)?;
        let (mut sum, mut part) = (0.0, Batch::default());
        // One call for as many sentences as possible, since each makes all logits.
        let max_blocks = (MAX_BLOCK_NUMBERS / kept.k.pow(2)).max(1);
        let m = self.support.n_clusters();
        let max_tokens = if m * m <= max_blocks { usize::MAX } else { max_blocks };
        let max_tokens = max_tokens.min(MAX_BLOCK_NUMBERS / kept.k);
        for batch in batches {
            if !part.sentences.is_empty() && part.n_tokens() + batch.n_tokens() > max_tokens {
                sum += self.score(&std::mem::take(&mut part), &kept)?;
            }
            part.sentences.extend(&batch.sentences);
        }
        Ok(sum + self.score(&part, &kept)?)
    }
}

impl Learner for CudaLearner<'_> {
    type Plan = Plan;

    fn plan(&self, batch: &Batch<'_>) -> Plan {
        Plan::to_learn(self.support, batch)
    }

    fn begin_step(
        &mut self,
        _: &Batch<'_>,
        plan: &Plan,
        choices: &Choices,
        learning_rate: f64,
    ) -> Result<(), FitError> {
        let seed = choices.dropout.map_or(0, Dropout::seed);
        self.try_step(plan, &choices.kept, seed, learning_rate)
            .map_err(FitError::step("learn on the device"))
    }

    fn end_step(&mut self) -> Result<f64, FitError> {
        let log_prob =
            self.result.log_prob(&self.device).map_err(FitError::step("learn on the device"))?;
        if log_prob.is_finite() {
            self.n_steps += 1;
        }
        Ok(log_prob)
    }

    fn log_prob(&mut self, batches: &[Batch<'_>]) -> Result<f64, FitError> {
        self.try_log_prob(batches).map_err(FitError::step("score on the device"))
    }

    /// # Panics
    /// If the device stopped answering since the last step.
    fn state(&self) -> LearnerState {
        let download = |array| self.device.download(array).expect("it did the last step");
        LearnerState {
            weights: download(&self.learned.weights),
            mean: download(&self.mean),
            square: download(&self.square),
            n_steps: self.n_steps,
        }
    }
}

/// Where weights lie.
fn range(layout: &Layout, name: &str) -> Range<usize> {
    let mut entries = layout.entries();
    entries.find(|entry| entry.0 == name).expect("weights of this name").2
}

/// The constants of step t.
fn step_of(params: &AdamWParams, n_steps: u64, learning_rate: f64) -> AdamWStep {
    let ((beta_1, beta_2), t) = (params.betas, n_steps as f64);
    AdamWStep {
        betas: params.betas,
        epsilon: params.epsilon,
        kept: 1.0 - learning_rate * params.weight_decay,
        rate: learning_rate / (1.0 - beta_1.powf(t)),
        root_scale: 1.0 / (1.0 - beta_2.powf(t)).sqrt(),
    }
}
