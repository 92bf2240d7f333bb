//! AdamW with a gradient that is cut to a norm.

use crate::device::{for_each, grid, launch};
use crate::{Array, CudaError, Device};
use cudarc::driver::PushKernelArg;

/// The constants of one step; see `latens_nn::AdamW`.
#[derive(Clone, Copy, Debug)]
pub struct AdamWStep {
    /// β₁ and β₂.
    pub betas: (f64, f64),
    /// ε.
    pub epsilon: f64,
    /// 1 − η λ.
    pub kept: f64,
    /// η/(1 − β₁ᵗ).
    pub rate: f64,
    /// 1/√(1 − β₂ᵗ).
    pub root_scale: f64,
}

/// Σ ln p of a mini-batch, and what its gradient is multiplied by, on the device.
#[derive(Debug)]
pub struct StepResult {
    partial: Array<f64>,
    result: Array<f64>,
}

/// How many partial sums of squares there are.
const N_PARTIAL: usize = 512;

impl StepResult {
    /// Room for the result of a step.
    pub fn new(device: &Device) -> Result<StepResult, CudaError> {
        Ok(StepResult { partial: device.zeros(N_PARTIAL)?, result: device.zeros(2)? })
    }

    pub(crate) fn array(&self) -> &Array<f64> {
        &self.result
    }

    /// Σ ln p of the last step, when it is done; NaN if it was lost, and then the step was not taken.
    pub fn log_prob(&self, device: &Device) -> Result<f64, CudaError> {
        Ok(device.download(&self.result)?[0])
    }
}

impl Device {
    /// Sums ln p of sentences, and finds what to multiply the gradient by: the share of one token, and such that the
    /// norm is at most `clip`.
    pub fn step_scale(
        &self,
        result: &mut StepResult,
        gradient: &Array<f32>,
        (log_probs, n_sentences): (&Array<f64>, usize),
        (per_token, clip): (f64, f64),
    ) -> Result<(), CudaError> {
        assert!(n_sentences <= log_probs.len(), "a number for each sentence");
        let StepResult { partial, result } = result;
        let (config, n) = (grid((N_PARTIAL, 1, 1), (256, 1)), gradient.len() as i64);
        launch!(self, "square_sums", config, &mut partial.0, &gradient.0, &n)?;
        let (n_partial, n_sentences) = (N_PARTIAL as i32, n_sentences as i32);
        let config = grid((1, 1, 1), (512, 1));
        launch!(
            self,
            "step_scale",
            config,
            &mut result.0,
            &partial.0,
            &n_partial,
            &log_probs.0,
            &n_sentences,
            &per_token,
            &clip
        )
    }

    /// One step, unless its result is lost.
    pub fn adamw(
        &self,
        (weights, mean, square): (&mut Array<f32>, &mut Array<f32>, &mut Array<f32>),
        gradient: &Array<f32>,
        result: &StepResult,
        step: &AdamWStep,
    ) -> Result<(), CudaError> {
        let n = weights.len();
        assert!(n == mean.len() && n == square.len() && n == gradient.len(), "one for each weight");
        let config = for_each(n);
        let (beta_1, beta_2) = step.betas;
        let n = n as i64;
        let constants = [
            beta_1,
            beta_2,
            1.0 - beta_1,
            1.0 - beta_2,
            step.epsilon,
            step.kept,
            step.rate,
            step.root_scale,
        ]
        .map(|constant| constant as f32);
        let [beta_1, beta_2, rest_1, rest_2, epsilon, kept, rate, root_scale] = constants;
        launch!(
            self,
            "adamw",
            config,
            &mut weights.0,
            &mut mean.0,
            &mut square.0,
            &gradient.0,
            &n,
            &result.result.0,
            &beta_1,
            &beta_2,
            &rest_1,
            &rest_2,
            &epsilon,
            &kept,
            &rate,
            &root_scale
        )
    }
}
