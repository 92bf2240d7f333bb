//! AdamW and plain SGD with gradient clipping.

use crate::device::{Array, CudaError, Device, at_least, exactly, for_each, grid, int, kernels};

/// Constants of one step of AdamW; see `latens_nn::AdamW`.
#[derive(Clone, Copy, Debug)]
pub struct AdamWStep {
    /// β₁ and β₂.
    pub betas: (f64, f64),
    /// ε.
    pub epsilon: f64,
    /// 1 − η λ, where η is the learning rate and λ the weight decay.
    pub kept: f64,
    /// η/(1 − β₁ᵗ).
    pub rate: f64,
    /// 1/√(1 − β₂ᵗ).
    pub root_scale: f64,
}

/// Σ ln p of a mini-batch and the factor of its gradient, on the device.
#[derive(Debug)]
pub struct StepResult {
    partial: Array<f64>,
    /// Σ ln p, then the factor.
    result: Array<f64>,
}

/// Number of partial sums of squares.
const N_PARTIAL: usize = 512;

impl StepResult {
    /// Memory for the result of a step.
    pub fn new(device: &Device) -> Result<StepResult, CudaError> {
        Ok(StepResult { partial: device.zeros(N_PARTIAL)?, result: device.zeros(2)? })
    }

    /// Waits for the last step and returns its Σ ln p. NaN if that or the gradient is not finite; then the optimizer has
    /// not changed the weights.
    pub fn log_prob(&self, device: &Device) -> Result<f64, CudaError> {
        Ok(device.download(&self.result)?[0])
    }
}

impl Device {
    /// Computes Σ ln p over sentences and the factor of the gradient: −`per_token`, scaled further if the norm would
    /// exceed `clip`.
    pub fn step_scale(
        &self,
        result: &mut StepResult,
        gradient: &Array<f32>,
        (log_probs, n_sentences): (&Array<f64>, usize),
        (per_token, clip): (f64, f64),
    ) -> Result<(), CudaError> {
        at_least("log_probs", log_probs.len(), n_sentences);
        let StepResult { partial, result } = result;
        let config = grid((N_PARTIAL, 1, 1), (256, 1));
        let n = gradient.len() as i64;
        kernels::square_sums(self, config, partial.all_mut(), gradient.all(), n)?;
        kernels::step_scale(
            self,
            grid((1, 1, 1), (512, 1)),
            result.all_mut(),
            partial.all(),
            int(N_PARTIAL),
            log_probs.all(),
            int(n_sentences),
            per_token,
            clip,
        )
    }

    /// One step of AdamW. It changes nothing if the result is NaN.
    pub fn adamw(
        &self,
        (weights, mean, square): (&mut Array<f32>, &mut Array<f32>, &mut Array<f32>),
        gradient: &Array<f32>,
        result: &StepResult,
        step: &AdamWStep,
    ) -> Result<(), CudaError> {
        let n = weights.len();
        exactly("mean", mean.len(), n);
        exactly("square", square.len(), n);
        exactly("gradient", gradient.len(), n);
        let (beta_1, beta_2) = step.betas;
        kernels::adamw(
            self,
            for_each(n),
            weights.all_mut(),
            mean.all_mut(),
            square.all_mut(),
            gradient.all(),
            n as i64,
            result.result.all(),
            beta_1 as f32,
            beta_2 as f32,
            (1.0 - beta_1) as f32,
            (1.0 - beta_2) as f32,
            step.epsilon as f32,
            step.kept as f32,
            step.rate as f32,
            step.root_scale as f32,
        )
    }

    /// Moves a running average of the weights towards them: mean += `rate` (weights − mean).
    pub fn average(
        &self,
        mean: &mut Array<f32>,
        weights: &Array<f32>,
        rate: f64,
    ) -> Result<(), CudaError> {
        let n = weights.len();
        exactly("mean", mean.len(), n);
        kernels::average(self, for_each(n), mean.all_mut(), weights.all(), n as i64, rate as f32)
    }

    /// One step of plain SGD with learning rate `rate`. It changes nothing if the result is NaN.
    pub fn sgd(
        &self,
        weights: &mut Array<f32>,
        gradient: &Array<f32>,
        result: &StepResult,
        rate: f64,
    ) -> Result<(), CudaError> {
        let n = weights.len();
        exactly("gradient", gradient.len(), n);
        kernels::sgd(
            self,
            for_each(n),
            weights.all_mut(),
            gradient.all(),
            n as i64,
            result.result.all(),
            rate as f32,
        )
    }
}
