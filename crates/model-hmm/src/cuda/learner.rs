//! The learner on a CUDA device: the same steps as `crate::train::learner::CpuLearner`, with all weights, probabilities and
//! expected counts on the device.
//!
//! A step writes the logits of all pairs of states that take part once. Those of networks are of half precision if there
//! are clusters whose states come in eights. One pass over them finds their sums, writes the blocks that the batch uses,
//! and puts minus the probabilities in their place; to these the expected transitions are added where there are any,
//! which gives the derivatives but for a factor a row. No sentence is impossible or too unlikely here, since no
//! transition is taken for less than 10⁻³⁰ and no emission for less than 10⁻³³; the CPU goes on in logarithms instead.

use crate::cuda::plan::batch_plan::Plan;
use crate::cuda::plan::device_plan::Planned;
use crate::cuda::tables::Tables;
use crate::cuda::weights::logits::Logits;
use crate::cuda::weights::networks::Networks;
use crate::cuda::weights::state_vectors::KeptStates;
use crate::params::{HmmParams, Parameterization};
use crate::space::state_space::Support;
use crate::tables::probability_tables::{Batch, Kept};
use crate::train::learner::{Choices, Learner, LearnerState};
use latens_cuda::{AdamWStep, Array, CudaError, Device, Emissions, Precision, StepResult};
use latens_model::FitError;
use latens_nn::{AdamWParams, Dropout, Layout};
use std::ops::Range;

/// Weights and their derivatives.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) weights: Array<f32>,
    pub(crate) gradient: Array<f32>,
}

/// What logits are made of.
pub(crate) enum Source {
    Networks(Box<Networks>),
    Logits(Logits),
}

/// Where a step is done, and how exactly.
pub(crate) struct Place<'a> {
    pub(crate) device: &'a Device,
    /// Where starts and emissions are computed while transitions are.
    pub(crate) side: &'a Device,
    pub(crate) emissions: &'a Emissions,
    pub(crate) precision: Precision,
}

/// The learner on a CUDA device.
pub(crate) struct CudaLearner<'a> {
    pub(crate) params: &'a HmmParams,
    pub(crate) device: Device,
    pub(crate) side: Device,
    pub(crate) precision: Precision,
    pub(crate) support: &'a Support,
    pub(crate) n_steps: u64,
    pub(crate) learned: Weights,
    pub(crate) mean: Array<f32>,
    pub(crate) square: Array<f32>,
    pub(crate) source: Source,
    pub(crate) emissions: Emissions,
    pub(crate) tables: Tables,
    pub(crate) result: StepResult,
    pub(crate) kept: Array<u32>,
    /// Numbers of the last batch; lent out while they are used.
    pub(crate) ints: Option<Array<u32>>,
}

impl<'a> CudaLearner<'a> {
    /// The learner of weights that lie as in `layout`.
    pub(crate) fn new(
        params: &'a HmmParams,
        support: &'a Support,
        layout: &Layout,
        state: &LearnerState,
        precision: Precision,
    ) -> Result<CudaLearner<'a>, CudaError> {
        let device = Device::open()?;
        let n = support.n_states();
        let source = match params.parameterization {
            Parameterization::Scalar => Source::Logits(Logits::new(layout, (n, support.k))),
            Parameterization::Neural | Parameterization::Factored => {
                Source::Networks(Box::new(Networks::new(&device, params, layout, n, precision)?))
            }
        };
        Ok(CudaLearner {
            params,
            precision,
            support,
            n_steps: state.n_steps,
            learned: Weights {
                weights: device.upload(&state.weights)?,
                gradient: device.zeros(state.weights.len())?,
            },
            mean: device.upload(&state.mean)?,
            square: device.upload(&state.square)?,
            source,
            emissions: emissions(&device, support)?,
            tables: Tables::new(&device, n)?,
            result: StepResult::new(&device)?,
            kept: device.zeros(n)?,
            ints: Some(device.zeros(1)?),
            side: device.beside()?,
            device,
        })
    }

    /// Probabilities of start and emission, at the side, and what transitions are made of; units are dropped by a seed,
    /// none without one.
    pub(crate) fn forward(&mut self, kept: &Kept, seed: Option<u64>) -> Result<(), CudaError> {
        let (n, k) = (kept.states.len(), kept.k);
        self.device.write(&kept.states, &mut self.kept)?;
        // Nothing uses the old array any more: the end of the last step was waited for.
        self.side.reserve(&mut self.tables.emission, self.support.n_slots() * k)?;
        let CudaLearner { device, side, emissions, precision, tables, .. } = self;
        let place = Place { device, side, emissions, precision: *precision };
        let weights = &self.learned.weights;
        let states = KeptStates { states: &self.kept, n, k };
        match &mut self.source {
            Source::Networks(networks) => {
                networks.forward(&place, weights, states, seed, tables)?;
            }
            Source::Logits(logits) => logits.forward(&place, weights, states, tables)?,
        }
        side.softmax(&mut tables.start, n)?;
        emissions.normalise(side, &mut tables.emission, &self.kept, k)
    }

    /// The logits of transitions from some states to all.
    pub(crate) fn logits(
        &mut self,
        rows: Range<usize>,
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        let is_half = self.is_half(k);
        let CudaLearner { device, side, emissions, precision, tables, .. } = self;
        let place = Place { device, side, emissions, precision: *precision };
        match &mut self.source {
            Source::Networks(networks) => networks.logits(&place, rows, n, is_half, tables),
            Source::Logits(logits) => {
                let weights = &self.learned.weights;
                let states = KeptStates { states: &self.kept, n, k };
                logits.logits(&place, weights, rows, states, tables)
            }
        }
    }

    /// Whether logits are of half precision, which eight states at a time allow.
    pub(crate) fn is_half(&self, k: usize) -> bool {
        // One cluster is learned in steps, which want all transitions in full.
        self.precision == Precision::Fast
            && matches!(self.source, Source::Networks(_))
            && k.is_multiple_of(8)
            && self.support.n_clusters() > 1
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
        self.forward(kept, Some(seed))?;
        self.logits(0..n, (k, n))?;
        self.tables.make_room(&self.device, plan, k)?;
        self.tables.transitions(&self.device, &planned, (k, n), is_half)?;
        self.device.after(&self.side)?;
        // The recursion leaves most of the device idle. The side has waited for the last step in `forward`, and is waited
        // for in `backward` before anything else is added.
        self.side.clear(&mut self.learned.gradient)?;
        let devices = (&self.device, &self.side);
        self.tables.expect(devices, &planned, (k, n), (is_half, self.precision))?;
        self.backward(&planned, kept)?;
        self.ints = Some(ints);

        self.update(plan, learning_rate)
    }

    /// A step up the gradient.
    fn update(&mut self, plan: &Plan, learning_rate: f64) -> Result<(), CudaError> {
        let CudaLearner { device, learned: Weights { weights, gradient }, result, .. } = self;
        let per_token = 1.0 / plan.n_tokens().max(1) as f64;
        let log_probs = (&self.tables.log_probs, plan.n_sentences());
        device.step_scale(result, gradient, log_probs, (per_token, self.params.clip))?;
        let step = step_of(self.params, self.n_steps + 1, learning_rate);
        device.adamw((weights, &mut self.mean, &mut self.square), gradient, result, &step)
    }

    /// Expected counts ─▶ the gradient; of starts and emissions at the side.
    fn backward(&mut self, planned: &Planned<'_>, kept: &Kept) -> Result<(), CudaError> {
        let (k, n, is_half) = (kept.k, kept.states.len(), self.is_half(kept.k));
        let CudaLearner { device, side, emissions, precision, tables, learned, .. } = self;
        side.after(device)?;
        side.softmax_gradient(&mut tables.start, &tables.start_counts, n)?;
        let counts = (&tables.emitted, (planned.ints, planned.plan.count_of.clone()));
        emissions.logit_gradient(side, &mut tables.emission, counts, &tables.visits, k)?;
        let place = Place { device, side, emissions, precision: *precision };
        let states = KeptStates { states: &self.kept, n, k };
        match &mut self.source {
            Source::Networks(networks) => {
                networks.backward(&place, learned, planned, states, is_half, tables)
            }
            Source::Logits(logits) => logits.backward(&place, learned, planned, states, tables),
        }
    }
}

impl Learner for CudaLearner<'_> {
    type Plan = Plan;

    fn plan(&self, batch: &Batch<'_>, kept: &Kept) -> Plan {
        Plan::to_learn(self.support, batch, Some(kept))
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

    fn weights(&self) -> Result<Vec<f32>, FitError> {
        self.device.download(&self.learned.weights).map_err(FitError::step("read the device"))
    }

    fn state(&self) -> Result<LearnerState, FitError> {
        let download =
            |array| self.device.download(array).map_err(FitError::step("read the device"));
        Ok(LearnerState {
            weights: download(&self.learned.weights)?,
            mean: download(&self.mean)?,
            square: download(&self.square)?,
            n_steps: self.n_steps,
        })
    }
}

/// Which states emit which words.
pub(crate) fn emissions(device: &Device, support: &Support) -> Result<Emissions, CudaError> {
    let clusters: Vec<_> = (0..support.n_clusters()).map(|c| support.slots(c)).collect();
    let mut emissions = Emissions::new(device, &clusters)?;
    if let Some(lists) = &support.lists {
        emissions.limit(device, support.n_states(), |slot| lists.of(slot))?;
    }
    Ok(emissions)
}

/// Where weights lie.
pub(crate) fn range(layout: &Layout, name: &str) -> Range<usize> {
    let mut entries = layout.entries();
    entries.find(|entry| entry.0 == name).expect("weights of this name").2
}

/// The constants of step t.
fn step_of(params: &HmmParams, n_steps: u64, learning_rate: f64) -> AdamWStep {
    let AdamWParams { betas, epsilon, .. } = AdamWParams::default();
    let ((beta_1, beta_2), t) = (betas, n_steps as f64);
    AdamWStep {
        betas,
        epsilon,
        kept: 1.0 - learning_rate * params.weight_decay,
        rate: learning_rate / (1.0 - beta_1.powf(t)),
        root_scale: 1.0 / (1.0 - beta_2.powf(t)).sqrt(),
    }
}
