//! Probabilities and expected counts on the device.

use crate::cuda::plan::batch_plan::Plan;
use crate::cuda::plan::device_plan::Planned;
use latens_cuda::{Array, CudaError, Device, Listed, Precision, StateTokens, f16};
use std::ops::Range;

/// Probabilities, expected counts, and what the recursion writes.
pub(crate) struct Tables {
    pub(crate) start: Array<f32>,
    pub(crate) logits: Array<f32>,
    pub(crate) log_sums: Array<f32>,
    pub(crate) emission: Array<f32>,
    pub(crate) blocks: Array<f32>,
    /// Logits in half precision, later their derivatives in bf16.
    pub(crate) half_logits: Array<f16>,
    /// The factors of transitions in half precision; later the first in bf16.
    pub(crate) half_from: Array<f16>,
    pub(crate) half_to: Array<f16>,
    pub(crate) local: Array<f32>,
    pub(crate) alpha: Array<f32>,
    pub(crate) weighted: Array<f32>,
    pub(crate) nodes: Array<f32>,
    pub(crate) log_probs: Array<f64>,
    pub(crate) start_counts: Array<f32>,
    pub(crate) left: Array<f32>,
    pub(crate) visits: Array<f32>,
    pub(crate) emitted: Array<f32>,
    /// What is predicted forward and backward, and the tokens before others, where tokens come in steps.
    pub(crate) predicted: [Array<f32>; 2],
    pub(crate) before: Array<f32>,
    /// The first probabilities of the states of each list, and later sums over its tokens.
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
            half_from: device.zeros(1)?,
            half_to: device.zeros(1)?,
            local: device.zeros(1)?,
            alpha: device.zeros(1)?,
            weighted: device.zeros(1)?,
            nodes: device.zeros(1)?,
            log_probs: device.zeros(1)?,
            start_counts: device.zeros(n)?,
            left: device.zeros(n)?,
            visits: device.zeros(n)?,
            emitted: device.zeros(1)?,
            predicted: [device.zeros(1)?, device.zeros(1)?],
            before: device.zeros(1)?,
            listed_start: device.zeros(1)?,
        })
    }

    pub(crate) fn make_room_to_score(
        &mut self,
        device: &Device,
        plan: &Plan,
        k: usize,
    ) -> Result<(), CudaError> {
        let k = plan.states_of_token(k);
        let n_values = (plan.n_tokens() * k).next_power_of_two();
        device.reserve(&mut self.local, n_values)?;
        device.reserve(&mut self.alpha, n_values)?;
        let n_block_numbers = plan.n_blocks() * k * k;
        // Of clusters there are only so many pairs; of words always new ones.
        let is_listed = plan.listed.is_some();
        let room = if is_listed { n_block_numbers.next_power_of_two() } else { n_block_numbers };
        device.reserve(&mut self.blocks, room)?;
        device.reserve(&mut self.log_probs, plan.n_sentences().next_power_of_two())
    }

    pub(crate) fn make_room(
        &mut self,
        device: &Device,
        plan: &Plan,
        k: usize,
    ) -> Result<(), CudaError> {
        self.make_room_to_score(device, plan, k)?;
        let n_values = (plan.n_tokens() * plan.states_of_token(k)).next_power_of_two();
        device.reserve(&mut self.weighted, n_values)?;
        device.reserve(&mut self.nodes, n_values)?;
        device.reserve(&mut self.emitted, (plan.n_emitted() * k).next_power_of_two())
    }

    pub(crate) fn forward(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        k: usize,
        precision: Precision,
    ) -> Result<(), CudaError> {
        let sequences = planned.sequences();
        if let Some(listed) = planned.listed() {
            self.place_listed(device, planned, &listed, k)?;
            let out = (&mut self.alpha, &mut self.log_probs);
            let probabilities = (&self.local, &self.listed_start, &self.blocks);
            return device.forward_pass(out, probabilities, &sequences, listed.k);
        }
        device.place(&mut self.local, &self.emission, &sequences, k)?;
        let out = (&mut self.alpha, &mut self.log_probs);
        let probabilities = (&self.local, &self.start, &self.blocks);
        match planned.steps(k, precision) {
            None => device.forward_pass(out, probabilities, &sequences, k),
            Some(steps) => {
                device.forward_in_steps(out, probabilities, steps, &mut self.predicted[0])
            }
        }
    }

    /// Some of the blocks of a plan, of logits whose first row is that of state `first_row`.
    pub(crate) fn gather(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        which: Range<usize>,
        first_row: usize,
        (k, n, is_half): (usize, usize, bool),
    ) -> Result<(), CudaError> {
        let (out, blocks) = ((&mut self.blocks, which.start), planned.blocks(which));
        if is_half {
            let logits = (&self.half_logits, first_row);
            device.gather_blocks_half(out, logits, &self.log_sums, &blocks, (k, n))
        } else {
            let logits = (&self.logits, first_row);
            device.gather_blocks(out, logits, &self.log_sums, &blocks, (k, n))
        }
    }

    /// ln Σ exp of the rows of logits of some states.
    pub(crate) fn sum_logits(
        &mut self,
        device: &Device,
        rows: Range<usize>,
        n: usize,
        is_half: bool,
    ) -> Result<(), CudaError> {
        let (out, sizes) = ((&mut self.log_sums, rows.start), (rows.len(), n));
        if is_half {
            device.row_log_sums_half(out, &self.half_logits, sizes)
        } else {
            device.row_log_sums(out, &self.logits, sizes)
        }
    }

    /// Logits of all states ─▶ the blocks of a plan. Logits of half precision become minus the probabilities.
    pub(crate) fn transitions(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        (k, n): (usize, usize),
        is_half: bool,
    ) -> Result<(), CudaError> {
        let n_blocks = planned.plan.n_blocks();
        if is_half {
            let block_of = (planned.ints, planned.plan.block_of.clone());
            let blocks = (&mut self.blocks, n_blocks);
            return device.minus_probabilities_half(
                &mut self.half_logits,
                blocks,
                block_of,
                (k, n),
            );
        }
        self.sum_logits(device, 0..n, n, is_half)?;
        if let Some(listed) = planned.listed() {
            return self.gather_listed(device, planned, &listed, 0..n, n);
        }
        self.gather(device, planned, 0..n_blocks, 0, (k, n, is_half))
    }

    /// What `expect` left in blocks ─▶ derivatives by the logits of transitions, in the place of these.
    pub(crate) fn transition_gradient(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        sizes: (usize, usize),
    ) -> Result<(), CudaError> {
        if let (Some(listed), Some(tokens)) = (planned.listed(), planned.state_tokens()) {
            let (logits, of) = ((&mut self.logits, &self.log_sums), (&self.left, &self.blocks));
            let (factors, sequences) = ((&self.alpha, &self.weighted), planned.sequences());
            return device
                .listed_transition_gradient(logits, of, factors, &sequences, &listed, &tokens);
        }
        let block_of = (planned.ints, planned.plan.block_of.clone());
        let (logits, ratios) = ((&mut self.logits, &self.log_sums), (&self.blocks, block_of));
        device.transition_gradient(logits, &self.left, ratios, sizes)
    }

    /// Probabilities ─▶ expected counts; transitions divided by their probabilities take the place of those. Where
    /// there are minus the probabilities of transitions, N/left is added to them instead.
    pub(crate) fn expect(
        &mut self,
        (device, side): (&Device, &Device),
        planned: &Planned<'_>,
        (k, n): (usize, usize),
        (is_half, precision): (bool, Precision),
    ) -> Result<(), CudaError> {
        if let (Some(listed), Some(tokens)) = (planned.listed(), planned.state_tokens()) {
            return self.expect_listed(device, planned, (&listed, &tokens), n);
        }
        let sequences = planned.sequences();
        device.place(&mut self.local, &self.emission, &sequences, k)?;
        let probabilities = (&self.local, &self.start, &self.blocks);
        let steps = planned.steps(k, precision);
        if let Some(steps) = steps {
            side.after(device)?;
            let ([forward, backward], out) =
                (&mut self.predicted, (&mut self.alpha, &mut self.log_probs));
            device.forward_in_steps(out, probabilities, steps, forward)?;
            let (out, of) = ((&mut self.nodes, &mut self.weighted), (&self.local, &self.blocks));
            side.backward_in_steps(out, of, steps, backward)?;
            device.after(side)?;
            let sizes = (planned.plan.n_tokens(), k);
            device.join_passes(&mut self.alpha, &mut self.nodes, sizes)?;
        } else {
            let out = (&mut self.alpha, &mut self.nodes, &mut self.weighted);
            device.both_passes(out, &mut self.log_probs, probabilities, &sequences, k)?;
        }
        for (out, groups) in [
            (&mut self.start_counts, planned.starts()),
            (&mut self.left, planned.left()),
            (&mut self.visits, planned.visits()),
        ] {
            device.clear(out)?;
            device.sum_groups(out, &self.nodes, &groups, k)?;
        }
        device.sum_groups(&mut self.emitted, &self.nodes, &planned.emitted(), k)?;
        let factors = (&self.alpha, &self.weighted);
        if let Some(steps) = steps {
            let (out, previous) = (&mut self.blocks, planned.previous());
            return device.ratios_in_steps(out, factors, previous, steps, &mut self.before);
        }
        if is_half {
            let (blocks, pairs) = (planned.blocks(0..planned.plan.n_blocks()), planned.pairs());
            let (out, of) = (self.half_logits.as_bf16_mut(), (&self.blocks, &self.left));
            return device.collect_differences(out, of, factors, (&blocks, &pairs), (k, n));
        }
        device.collect_ratios(&mut self.blocks, factors, &planned.pairs(), k)
    }

    /// b and the first probabilities of the states of each token.
    pub(crate) fn place_listed(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        listed: &Listed<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        device.reserve(&mut self.listed_start, listed.states.len().next_power_of_two())?;
        device.gather_listed(&mut self.listed_start, &self.start, listed)?;
        device.place_listed(&mut self.local, &self.emission, &planned.sequences(), listed, n)
    }

    /// The blocks of a plan, as far as they lead from the states `rows`, of which there are logits and their sums.
    pub(crate) fn gather_listed(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        listed: &Listed<'_>,
        rows: Range<usize>,
        n: usize,
    ) -> Result<(), CudaError> {
        let blocks = planned.blocks(0..planned.plan.n_blocks());
        let (logits, sums) = ((&self.logits, rows), &self.log_sums);
        device.gather_listed_blocks(&mut self.blocks, logits, sums, &blocks, listed, n)
    }

    /// Probabilities ─▶ expected counts. Transitions stay as they are: their derivatives are made token by token.
    pub(crate) fn expect_listed(
        &mut self,
        device: &Device,
        planned: &Planned<'_>,
        (listed, tokens): (&Listed<'_>, &StateTokens<'_>),
        n: usize,
    ) -> Result<(), CudaError> {
        self.place_listed(device, planned, listed, n)?;
        let out = (&mut self.alpha, &mut self.nodes, &mut self.weighted);
        let probabilities = (&self.local, &self.listed_start, &self.blocks);
        let (sequences, k) = (planned.sequences(), listed.k);
        device.both_passes(out, &mut self.log_probs, probabilities, &sequences, k)?;
        let out = (&mut self.visits, &mut self.start_counts, &mut self.left);
        device.sum_listed(out, &self.nodes, tokens, k)?;
        // The sums of words' tokens, in the place of what is no longer needed.
        device.sum_groups(&mut self.listed_start, &self.nodes, &planned.visits(), k)?;
        device.clear(&mut self.emitted)?;
        device.scatter_listed(&mut self.emitted, &self.listed_start, listed, n)
    }
}
