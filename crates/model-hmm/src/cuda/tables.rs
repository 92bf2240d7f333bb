//! Probabilities and expected counts on the device.

use crate::cuda::context::{LogitFormat, Sizes};
use crate::cuda::plan::batch_plan::BatchPlan;
use crate::cuda::plan::device_plan::DevicePlan;
use latens_cuda::{Array, BlockShape, CudaError, Device, Listed, PowerBuffers, Shape, f16};
use std::ops::Range;

/// Probabilities, expected counts, and the buffers of the recursion.
pub(crate) struct Tables {
    pub(crate) start: Array<f32>,
    pub(crate) logits: Array<f32>,
    pub(crate) log_sums: Array<f32>,
    pub(crate) emission: Array<f32>,
    pub(crate) blocks: Array<f32>,
    /// Transition logits in half precision, then minus the probabilities times `row_sums` in bf16, which become their
    /// derivatives divided by `row_factors`.
    pub(crate) half_logits: Array<f16>,
    pub(crate) row_sums: Array<f32>,
    pub(crate) row_factors: Array<f32>,
    pub(crate) power_buffers: PowerBuffers,
    /// The vectors that transitions start from in half precision, later in bf16.
    pub(crate) half_from: Array<f16>,
    pub(crate) local: Array<f32>,
    pub(crate) alpha: Array<f32>,
    pub(crate) weighted: Array<f32>,
    pub(crate) nodes: Array<f32>,
    pub(crate) log_probs: Array<f64>,
    /// p(x_t | x_1 … x_{t−1}) of each token, if it is asked for.
    pub(crate) masses: Array<f64>,
    /// The most likely path, and the scale of each token, if they are asked for.
    pub(crate) path: Array<u32>,
    pub(crate) scales: Array<f32>,
    pub(crate) start_counts: Array<f32>,
    pub(crate) departures: Array<f32>,
    pub(crate) visits: Array<f32>,
    pub(crate) emitted: Array<f32>,
    /// For a model with a single cluster: the forward and backward predictions of a step, and α of the tokens before.
    pub(crate) predicted: [Array<f32>; 2],
    pub(crate) before: Array<f32>,
    /// The start probabilities of the states of each list, later sums over the tokens of its word.
    pub(crate) listed_start: Array<f32>,
}

impl Tables {
    pub(crate) fn new(device: &Device, n: usize) -> Result<Tables, CudaError> {
        Ok(Tables {
            start: device.zeros(n)?,
            logits: device.zeros(1)?,
            log_sums: device.zeros(n)?,
            emission: device.zeros(1)?,
            blocks: device.zeros(1)?,
            half_logits: device.zeros(1)?,
            row_sums: device.zeros(n)?,
            row_factors: device.zeros(n)?,
            power_buffers: PowerBuffers::new(device)?,
            half_from: device.zeros(1)?,
            local: device.zeros(1)?,
            alpha: device.zeros(1)?,
            weighted: device.zeros(1)?,
            nodes: device.zeros(1)?,
            log_probs: device.zeros(1)?,
            masses: device.zeros(1)?,
            path: device.zeros(1)?,
            scales: device.zeros(1)?,
            start_counts: device.zeros(n)?,
            departures: device.zeros(n)?,
            visits: device.zeros(n)?,
            emitted: device.zeros(1)?,
            predicted: [device.zeros(1)?, device.zeros(1)?],
            before: device.zeros(1)?,
            listed_start: device.zeros(1)?,
        })
    }

    /// Reserves memory to score a batch.
    pub(crate) fn reserve_to_score(
        &mut self,
        device: &Device,
        plan: &BatchPlan,
        k: usize,
    ) -> Result<(), CudaError> {
        let k = plan.states_of_token(k);
        let n_values = (plan.n_tokens() * k).next_power_of_two();
        device.reserve(&mut self.local, n_values)?;
        device.reserve(&mut self.alpha, n_values)?;
        let n_block_values = plan.n_blocks() * k * k;
        // The number of pairs of clusters is bounded; pairs of words are different in every batch.
        let is_listed = plan.listed.is_some();
        let room = if is_listed { n_block_values.next_power_of_two() } else { n_block_values };
        device.reserve(&mut self.blocks, room)?;
        device.reserve(&mut self.log_probs, plan.n_sentences().next_power_of_two())
    }

    /// Reserves what the backward pass needs besides.
    pub(crate) fn reserve_to_smooth(
        &mut self,
        device: &Device,
        plan: &BatchPlan,
        k: usize,
    ) -> Result<(), CudaError> {
        let n_values = (plan.n_tokens() * plan.states_of_token(k)).next_power_of_two();
        device.reserve(&mut self.weighted, n_values)?;
        device.reserve(&mut self.nodes, n_values)
    }

    /// Reserves memory for a training step.
    pub(crate) fn reserve(
        &mut self,
        device: &Device,
        plan: &BatchPlan,
        k: usize,
    ) -> Result<(), CudaError> {
        self.reserve_to_score(device, plan, k)?;
        self.reserve_to_smooth(device, plan, k)?;
        device.reserve(&mut self.emitted, (plan.n_emitted() * k).next_power_of_two())
    }

    /// Reserves memory for the transition logits of a training step. All of them, since the number of rows varies.
    pub(crate) fn reserve_logits(
        &mut self,
        device: &Device,
        n: usize,
        format: LogitFormat,
    ) -> Result<(), CudaError> {
        match format {
            LogitFormat::Single => device.reserve(&mut self.logits, n * n),
            LogitFormat::Half => device.reserve(&mut self.half_logits, n * n),
        }
    }

    /// Computes some blocks of a plan from logits that start at the row of state `first_row`.
    pub(crate) fn gather(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        which: Range<usize>,
        first_row: usize,
        (Sizes { k, n, .. }, format): (Sizes, LogitFormat),
    ) -> Result<(), CudaError> {
        let (out, blocks) = ((&mut self.blocks, which.start), planned.blocks(which));
        if format == LogitFormat::Half {
            let logits = (&self.half_logits, first_row);
            device.gather_blocks_half(out, logits, &self.log_sums, &blocks, BlockShape { k, n })
        } else {
            let logits = (&self.logits, first_row);
            device.gather_blocks(out, logits, &self.log_sums, &blocks, BlockShape { k, n })
        }
    }

    /// Computes the log normalizers of some rows of logits.
    pub(crate) fn sum_logits(
        &mut self,
        device: &Device,
        rows: Range<usize>,
        n: usize,
        format: LogitFormat,
    ) -> Result<(), CudaError> {
        let out = (&mut self.log_sums, rows.start);
        let shape = Shape { rows: rows.len(), columns: n };
        if format == LogitFormat::Half {
            device.row_log_sums_half(out, &self.half_logits, shape)
        } else {
            device.row_log_sums(out, &self.logits, shape)
        }
    }

    /// Computes the blocks of a plan from the logits of all states that transitions start from. Replaces logits in half
    /// precision by minus the probabilities.
    pub(crate) fn transitions(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        sizes @ Sizes { k, n, n_from }: Sizes,
        format: LogitFormat,
    ) -> Result<(), CudaError> {
        let n_blocks = planned.plan.n_blocks();
        if format == LogitFormat::Half {
            let block_of = (planned.ints, planned.plan.block_of.clone());
            let blocks = (&mut self.blocks, n_blocks);
            return device.minus_probabilities_half(
                (&mut self.half_logits, &mut self.row_sums),
                blocks,
                block_of,
                n_from,
                BlockShape { k, n },
            );
        }
        self.sum_logits(device, 0..n_from, n, format)?;
        if let Some(listed) = planned.listed() {
            return self.gather_listed(device, planned, &listed, 0..n, n);
        }
        self.gather(device, planned, 0..n_blocks, 0, (sizes, format))
    }

    /// Computes the blocks of a plan from minus the powers of all states that transitions start from.
    pub(crate) fn gather_powers(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        Sizes { k, n, n_from }: Sizes,
    ) -> Result<(), CudaError> {
        let (powers, blocks) = (
            (self.half_logits.as_bf16(), &self.row_sums),
            planned.blocks(0..planned.plan.n_blocks()),
        );
        device.gather_powers(&mut self.blocks, powers, &blocks, n_from, BlockShape { k, n })
    }

    /// Replaces the transition logits by their derivatives, from the ratios that `expect` has written into the blocks.
    pub(crate) fn transition_gradient(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        Sizes { k, n, n_from }: Sizes,
    ) -> Result<(), CudaError> {
        if let (Some(listed), Some(tokens)) = (planned.listed(), planned.state_tokens()) {
            let (logits, of) =
                ((&mut self.logits, &self.log_sums), (&self.departures, &self.blocks));
            let (factors, sequences) = ((&self.alpha, &self.weighted), planned.sequences());
            return device
                .listed_transition_gradient(logits, of, factors, &sequences, &listed, &tokens);
        }
        let block_of = (planned.ints, planned.plan.block_of.clone());
        let (logits, ratios) = ((&mut self.logits, &self.log_sums), (&self.blocks, block_of));
        device.transition_gradient(logits, &self.departures, ratios, n_from, BlockShape { k, n })
    }

    /// Computes the blocks of a plan for transitions from the states `rows`, whose logits and log normalizers are given.
    pub(crate) fn gather_listed(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        listed: &Listed<'_>,
        rows: Range<usize>,
        n: usize,
    ) -> Result<(), CudaError> {
        let blocks = planned.blocks(0..planned.plan.n_blocks());
        let (logits, sums) = ((&self.logits, rows), &self.log_sums);
        device.gather_listed_blocks(&mut self.blocks, logits, sums, &blocks, listed, n)
    }
}
