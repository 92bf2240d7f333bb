//! Draws words on the device.

use super::learner::{CudaLearner, Drops, Plan, device_error};
use crate::learner::{DrawWords, LearnerState};
use crate::network::batches::Batch;
use crate::network::definition::Network;
use crate::params::NeuralParams;
use latens_cuda::{Array, CudaError, Precision};
use latens_model::FitError;

/// A network on the device that draws the next word of every text.
pub(crate) struct CudaDrawer<'a> {
    learner: CudaLearner<'a>,
    /// Recurrent states of all texts.
    memory: Vec<Array<f32>>,
    words: Array<u32>,
    seed: u64,
}

impl<'a> CudaDrawer<'a> {
    pub(crate) fn new(
        params: &'a NeuralParams,
        network: &'a Network,
        weights: &[f32],
        n_texts: usize,
        seed: u64,
    ) -> Result<CudaDrawer<'a>, CudaError> {
        let state = LearnerState::to_use(weights, n_texts * network.state_len());
        let mut learner = CudaLearner::new(params, network, &state, Precision::Fast)?;
        let memory = std::mem::take(&mut learner.memory);
        let words = learner.device.zeros(n_texts)?;
        Ok(CudaDrawer { learner, memory, words, seed })
    }

    fn try_draw(&mut self, batch: &Batch, step: usize) -> Result<Vec<u32>, CudaError> {
        let CudaDrawer { learner, memory, words, seed } = self;
        let plan = Plan::new(batch);
        let ints = learner.upload(&plan)?;
        learner.forward(&plan, &ints, memory, Drops::default())?;
        learner.ints = Some(ints);
        let bias = (&learner.learned.weights, learner.network.bias.range());
        // Seeds of steps are far apart, so that their random numbers do not overlap.
        let seed = seed.wrapping_add((step as u64) << 40);
        learner.device.draw_words(words, &learner.logits, bias, plan.n_rows, seed)?;
        learner.device.download(words)
    }
}

impl DrawWords for CudaDrawer<'_> {
    fn draw(&mut self, batch: &Batch, step: usize) -> Result<Vec<u32>, FitError> {
        self.try_draw(batch, step).map_err(device_error)
    }
}
