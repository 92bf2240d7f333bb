//! The recursions over a batch on the device, and the expected counts that they give.

use crate::cuda::context::{LogitFormat, Sizes};
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::tables::Tables;
use latens_cuda::{BlockShape, CudaError, Device, Listed, Precision, Shape, StateTokens};

impl Tables {
    /// The forward pass of the recursion.
    pub(crate) fn forward(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
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
        self.place(device, planned, k)?;
        let out = (&mut self.alpha, &mut self.log_probs);
        let probabilities = (&self.local, &self.start, &self.blocks);
        match planned.steps(k, precision) {
            None => device.forward_pass(out, probabilities, &sequences, k),
            Some(steps) => {
                device.forward_in_steps(out, probabilities, steps, &mut self.predicted[0])
            }
        }
    }

    /// Both passes of the recursion: α/κ, γ and b ∘ β of each token, and ln p of each sentence. Those of a model with a
    /// single cluster overlap if the side stream is another one.
    pub(crate) fn smooth(
        &mut self,
        (device, side): (&Device, &Device),
        planned: &DevicePlan<'_>,
        Sizes { k, n, .. }: Sizes,
        precision: Precision,
    ) -> Result<(), CudaError> {
        let sequences = planned.sequences();
        if let Some(listed) = planned.listed() {
            self.place_listed(device, planned, &listed, n)?;
            let out = (&mut self.alpha, &mut self.nodes, &mut self.weighted);
            let probabilities = (&self.local, &self.listed_start, &self.blocks);
            let log_probs = &mut self.log_probs;
            return device.both_passes(out, log_probs, probabilities, &sequences, listed.k);
        }
        self.place(device, planned, k)?;
        let probabilities = (&self.local, &self.start, &self.blocks);
        let Some(steps) = planned.steps(k, precision) else {
            let out = (&mut self.alpha, &mut self.nodes, &mut self.weighted);
            return device.both_passes(out, &mut self.log_probs, probabilities, &sequences, k);
        };
        side.after(device)?;
        let ([forward, backward], out) =
            (&mut self.predicted, (&mut self.alpha, &mut self.log_probs));
        device.forward_in_steps(out, probabilities, steps, forward)?;
        let (out, of) = ((&mut self.nodes, &mut self.weighted), (&self.local, &self.blocks));
        side.backward_in_steps(out, of, steps, backward)?;
        device.after(side)?;
        let shape = Shape { rows: planned.plan.n_tokens(), columns: k };
        device.join_passes(&mut self.alpha, &mut self.nodes, shape)
    }

    /// p(x_t | x_1 … x_{t−1}) of each token, after [`Tables::forward`] or [`Tables::smooth`].
    pub(crate) fn masses(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        k: usize,
        precision: Precision,
    ) -> Result<Vec<f64>, CudaError> {
        let n_tokens = planned.plan.n_tokens();
        device.reserve(&mut self.masses, n_tokens.next_power_of_two())?;
        let (out, of_tokens) = (&mut self.masses, (&self.alpha, &self.local));
        let sequences = planned.sequences();
        if let Some(listed) = planned.listed() {
            let of_states = (&self.listed_start, &self.blocks);
            device.token_masses(out, of_tokens, of_states, &sequences, listed.k)?;
        } else {
            let of_states = (&self.start, &self.blocks);
            match planned.steps(k, precision) {
                None => device.token_masses(out, of_tokens, of_states, &sequences, k)?,
                Some(steps) => {
                    let predicted = &mut self.predicted[0];
                    device.masses_in_steps(out, of_tokens, of_states, steps, predicted)?;
                }
            }
        }
        device.download_first(&self.masses, n_tokens)
    }

    /// The state of each token in the most likely path of its sentence, as a place among the states of the token, and the
    /// scale of each token. The plan has the tokens of each sentence one after the other.
    pub(crate) fn trace(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        Sizes { k, n, .. }: Sizes,
    ) -> Result<(Vec<u32>, Vec<f32>), CudaError> {
        let (sequences, n_tokens) = (planned.sequences(), planned.plan.n_tokens());
        device.reserve(&mut self.path, n_tokens.next_power_of_two())?;
        device.reserve(&mut self.scales, n_tokens.next_power_of_two())?;
        let (start, k) = match planned.listed() {
            Some(listed) => {
                self.place_listed(device, planned, &listed, n)?;
                (&self.listed_start, listed.k)
            }
            None => {
                self.place(device, planned, k)?;
                (&self.start, k)
            }
        };
        let (out, best) = ((&mut self.path, &mut self.scales), &mut self.alpha);
        device.best_paths(out, best, (&self.local, start, &self.blocks), &sequences, k)?;
        let path = device.download_first(&self.path, n_tokens)?;
        Ok((path, device.download_first(&self.scales, n_tokens)?))
    }

    /// Computes the expected counts. Replaces the blocks by expected transitions divided by their probabilities; if the
    /// logits have been replaced by minus the probabilities, adds N/departures to them instead, and computes the factors of
    /// their rows.
    pub(crate) fn expect(
        &mut self,
        (device, side): (&Device, &Device),
        planned: &DevicePlan<'_>,
        sizes @ Sizes { k, n, n_from }: Sizes,
        (format, precision): (LogitFormat, Precision),
    ) -> Result<(), CudaError> {
        self.smooth((device, side), planned, sizes, precision)?;
        if let (Some(listed), Some(tokens)) = (planned.listed(), planned.state_tokens()) {
            return self.sum_listed(device, planned, (&listed, &tokens), n);
        }
        for (out, groups) in [
            (&mut self.start_counts, planned.starts()),
            (&mut self.departures, planned.departures()),
            (&mut self.visits, planned.visits()),
        ] {
            device.clear(out)?;
            device.sum_groups(out, &self.nodes, &groups, k)?;
        }
        device.sum_groups(&mut self.emitted, &self.nodes, &planned.emitted(), k)?;
        let factors = (&self.alpha, &self.weighted);
        if let Some(steps) = planned.steps(k, precision) {
            let (out, previous) = (&mut self.blocks, planned.previous());
            return device.ratios_in_steps(out, factors, previous, steps, &mut self.before);
        }
        if format == LogitFormat::Half {
            let (blocks, pairs) = (planned.blocks(0..planned.plan.n_blocks()), planned.pairs());
            let (left, row_sums) = (&self.departures, &self.row_sums);
            device.row_factors(&mut self.row_factors, (left, row_sums), n_from)?;
            let (out, of) = (self.half_logits.as_bf16_mut(), (&self.blocks, left, row_sums));
            let shape = BlockShape { k, n };
            return device.collect_differences(out, of, factors, (&blocks, &pairs), shape);
        }
        device.collect_ratios(&mut self.blocks, factors, &planned.pairs(), k)
    }

    /// Gathers b of each token.
    fn place(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        device.place(&mut self.local, &self.emission, &planned.sequences(), k)?;
        self.place_own(device, planned, k)
    }

    /// Replaces b of the tokens that have their own.
    fn place_own(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let mut own = planned.own_emissions.iter();
        own.try_for_each(|(token, row)| device.write_at(row, &mut self.local, token * k))
    }

    /// Gathers b and π of the states of each token.
    fn place_listed(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        listed: &Listed<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        device.reserve(&mut self.listed_start, listed.states.len().next_power_of_two())?;
        device.gather_listed(&mut self.listed_start, &self.start, listed)?;
        device.place_listed(&mut self.local, &self.emission, &planned.sequences(), listed, n)?;
        self.place_own(device, planned, listed.k)
    }

    /// Adds up the expected counts of a model with state lists. Leaves the blocks unchanged: the derivatives of transitions
    /// are computed token by token.
    fn sum_listed(
        &mut self,
        device: &Device,
        planned: &DevicePlan<'_>,
        (listed, tokens): (&Listed<'_>, &StateTokens<'_>),
        n: usize,
    ) -> Result<(), CudaError> {
        let out = (&mut self.visits, &mut self.start_counts, &mut self.departures);
        device.sum_listed(out, &self.nodes, tokens, listed.k)?;
        // Reuses the buffer of the start probabilities for the sums over the tokens of each word.
        let visits = &planned.visits();
        device.sum_groups(&mut self.listed_start, &self.nodes, visits, listed.k)?;
        device.clear(&mut self.emitted)?;
        device.scatter_listed(&mut self.emitted, &self.listed_start, listed, n)
    }
}
