//! The learner on a CUDA device: the same steps as `crate::steps::learner::CpuLearner`, with all weights, probabilities and
//! expected counts on the device.
//!
//! A step writes the logits of all pairs of states that take part once. Those of networks are of half precision if there
//! are clusters whose states come in eights. One pass over them finds their sums, writes the blocks that the batch uses,
//! and puts minus the probabilities in their place; to these the expected transitions are added where there are any,
//! which gives the derivatives but for a factor a row. No sentence is impossible or too unlikely here, since no
//! transition is taken for less than 10⁻³⁰ and no emission for less than 10⁻³³; the CPU goes on in logarithms instead.

use crate::cuda::device_model::{CudaLearner, Source};
use crate::cuda::place::{Place, Weights};
use crate::cuda::plan::batch_plan::Plan;
use crate::cuda::plan::device_plan::Planned;
use crate::cuda::weights::state_vectors::KeptOnDevice;
use crate::params::HmmParams;
use crate::recursion::batch::Batch;
use crate::space::kept_states::KeptStates;
use crate::steps::learner::{Choices, Learner, LearnerState};
use latens_cuda::{AdamWStep, CudaError};
use latens_model::FitError;
use latens_nn::{AdamWParams, Dropout};

impl CudaLearner<'_> {
    fn try_step(
        &mut self,
        plan: &Plan,
        kept: &KeptStates,
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
    fn backward(&mut self, planned: &Planned<'_>, kept: &KeptStates) -> Result<(), CudaError> {
        let (k, n, is_half) = (kept.k, kept.states.len(), self.is_half(kept.k));
        let CudaLearner { device, side, emissions, precision, tables, learned, .. } = self;
        side.after(device)?;
        side.softmax_gradient(&mut tables.start, &tables.start_counts, n)?;
        let counts = (&tables.emitted, (planned.ints, planned.plan.count_of.clone()));
        emissions.logit_gradient(side, &mut tables.emission, counts, &tables.visits, k)?;
        let place = Place { device, side, emissions, precision: *precision };
        let states = KeptOnDevice { states: &self.kept, n, k };
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

    fn plan(&self, batch: &Batch<'_>, kept: &KeptStates) -> Plan {
        Plan::to_learn(self.space, batch, Some(kept))
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
