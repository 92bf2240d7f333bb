//! Training steps on a CUDA device: the steps of `crate::steps::learner::CpuLearner`, with all weights, probabilities and
//! expected counts on the device.
//!
//! A step computes only what its mini-batch needs: transitions from the clusters that have a token with a successor, and
//! emissions of the clusters that have tokens. Their states come first; see [`KeptPlan`].
//!
//! A step writes the logits of all pairs of these and the kept states once, those of networks in half precision if the
//! number of states per cluster is a multiple of eight. One pass over them computes the log normalizers, writes the blocks
//! that the batch uses, and replaces the logits by minus the probabilities. On devices of compute capability 9.0, with 256
//! dimensions and a multiple of 128 states, the product exponentiates the logits at once, and there is no such pass; each row
//! is then scaled by its sum. Adding the expected transitions gives the derivatives up to one factor per row.
//!
//! The device clamps transitions to at least 10⁻³⁰ and emissions to at least 10⁻³³. No sentence is impossible or underflows
//! here; the CPU switches to log space instead.

use crate::cuda::context::{Sizes, StepContext, Weights};
use crate::cuda::device_model::{CudaLearner, Source};
use crate::cuda::plan::batch_plan::BatchPlan;
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::plan::kept_plan::KeptPlan;
use crate::cuda::weights::state_vectors::KeptOnDevice;
use crate::params::HmmParams;
use crate::recursion::batch::Batch;
use crate::space::kept_states::KeptStates;
use crate::steps::learner::{Choices, DeviceLearner, LearnerState};
use latens_cuda::{AdamWStep, Array, CudaError};
use latens_model::FitError;
use latens_nn::{AdamWParams, Dropout};

/// The plan of a step: its states and its tokens.
#[derive(Debug)]
pub(crate) struct StepPlan {
    pub(crate) kept: KeptPlan,
    pub(crate) batch: BatchPlan,
}

impl CudaLearner<'_> {
    /// Starts a step.
    fn try_step(
        &mut self,
        plan: &StepPlan,
        Choices { dropout, n_tokens, .. }: &Choices,
        learning_rate: f64,
    ) -> Result<(), FitError> {
        let seed = dropout.map_or(0, Dropout::seed);
        self.try_gradient(plan, seed).map_err(FitError::step("train on the device"))?;
        self.update(plan.batch.n_sentences(), *n_tokens, learning_rate)
    }

    fn try_gradient(&mut self, plan: &StepPlan, seed: u64) -> Result<(), CudaError> {
        // A mini-batch may have fewer sentences than there are processes.
        if plan.batch.n_tokens() == 0 {
            return self.device.clear(&mut self.learned.gradient);
        }
        let mut ints = self.ints.take().expect("every step puts it back");
        let computed = self.gradient(plan, seed, &mut ints);
        // After an error, too: the next call returns the error of the device again.
        self.ints = Some(ints);
        computed
    }

    /// Computes the gradient of a batch.
    fn gradient(
        &mut self,
        StepPlan { kept, batch }: &StepPlan,
        seed: u64,
        ints: &mut Array<u32>,
    ) -> Result<(), CudaError> {
        let (k, sizes) = (kept.k, Sizes { k: kept.k, n: kept.n(), n_from: kept.n_from });
        let format = self.logit_format(k);
        // Copies to the device come first, because a copy waits for the work before it.
        let planned = DevicePlan::new(&self.device, batch, ints)?;
        self.forward(kept, Some(seed))?;
        self.tables.reserve_logits(&self.device, sizes.n, format)?;
        self.tables.reserve(&self.device, batch, k)?;
        self.transitions(&planned, sizes)?;
        self.device.after(&self.side)?;
        // The recursion leaves most of the device idle. The side stream has waited for the last step in `forward`, and
        // `backward` waits for it before it adds to the gradient.
        self.side.clear(&mut self.learned.gradient)?;
        let devices = (&self.device, &self.side);
        self.tables.expect(devices, &planned, sizes, (format, self.precision))?;
        self.backward(&planned, kept)
    }

    /// Updates the weights by AdamW with a clipped gradient, that of all processes.
    fn update(
        &mut self,
        n_sentences: usize,
        n_tokens: usize,
        learning_rate: f64,
    ) -> Result<(), FitError> {
        let failed = || FitError::step("train on the device");
        let CudaLearner { device, learned: Weights { weights, gradient }, result, .. } = self;
        let mut log_probs = (&self.tables.log_probs, n_sentences);
        if let Some(sums) = &mut self.sums {
            log_probs = (sums.add_up(device, gradient, log_probs)?, 1);
        }
        let per_token = 1.0 / n_tokens.max(1) as f64;
        device
            .step_scale(result, gradient, log_probs, (per_token, self.params.clip))
            .map_err(failed())?;
        let step = step_of(self.params, self.n_steps.saturating_add(1), learning_rate);
        let moments = (&mut self.mean, &mut self.square);
        device.adamw((weights, moments.0, moments.1), gradient, result, &step).map_err(failed())
    }

    /// Computes the gradient from the expected counts, that of starts and emissions on the side stream.
    fn backward(&mut self, planned: &DevicePlan<'_>, kept: &KeptPlan) -> Result<(), CudaError> {
        let (k, n, format) = (kept.k, kept.n(), self.logit_format(kept.k));
        let states = KeptOnDevice { ints: &self.kept, plan: kept };
        let CudaLearner { device, side, emissions, precision, tables, learned, .. } = self;
        side.after(device)?;
        side.softmax_gradient(&mut tables.start, &tables.start_counts, n)?;
        let counts = (&tables.emitted, (planned.ints, planned.plan.count_of.clone()));
        let visits = (&tables.visits, &states.order());
        emissions.logit_gradient(side, &mut tables.emission, counts, visits, k)?;
        let context = StepContext { device, side, emissions, precision: *precision };
        match &mut self.source {
            Source::Networks(networks) => {
                networks.backward(&context, learned, planned, states, format, tables)
            }
            Source::Logits(logits) => logits.backward(&context, learned, planned, states, tables),
        }
    }
}

impl DeviceLearner for CudaLearner<'_> {
    type Plan = StepPlan;

    fn plan(&self, batch: &Batch<'_>, kept: &KeptStates) -> StepPlan {
        let by_use = KeptPlan::by_use(self.space, batch, kept, self.is_factored());
        let batch = BatchPlan::to_learn(self.space, batch, Some((kept, by_use.places())));
        StepPlan { kept: by_use, batch }
    }

    fn begin_step(
        &mut self,
        _: &Batch<'_>,
        plan: &StepPlan,
        choices: &Choices,
        learning_rate: f64,
    ) -> Result<(), FitError> {
        self.try_step(plan, choices, learning_rate)
    }

    fn end_step(&mut self) -> Result<f64, FitError> {
        let log_prob =
            self.result.log_prob(&self.device).map_err(FitError::step("train on the device"))?;
        if log_prob.is_finite() {
            self.n_steps = self.n_steps.saturating_add(1);
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

/// The constants of step t of AdamW.
fn step_of(params: &HmmParams, n_steps: u64, learning_rate: f64) -> AdamWStep {
    let adamw = AdamWParams { weight_decay: params.weight_decay, ..AdamWParams::default() };
    let step = adamw.step(n_steps, learning_rate);
    AdamWStep {
        betas: step.betas,
        epsilon: step.epsilon,
        kept: step.kept,
        rate: step.rate,
        root_scale: step.root_scale,
    }
}
