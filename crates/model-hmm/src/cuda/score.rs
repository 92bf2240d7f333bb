//! Log-likelihoods on the device, with all states, of a model under training.
//!
//! Computes the logits of transitions for some rows at a time, and keeps only the blocks that the text uses.

use crate::cuda::context::{LogitFormat, Sizes};
use crate::cuda::device_model::CudaLearner;
use crate::cuda::plan::batch_plan::{BatchPlan, lists, max_listed_tokens};
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::plan::kept_plan::KeptPlan;
use crate::recursion::batch::Batch;
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use latens_cuda::{Array, CudaError, Listed, Precision};

/// The largest number of values in blocks, and in tokens, at a time: 16 GiB.
const MAX_BLOCK_VALUES: usize = 1 << 32;

/// Approximate number of rows of logits to compute at a time.
pub(crate) const ROWS: usize = if cfg!(test) { 24 } else { 4096 };

impl CudaLearner<'_> {
    /// Σ ln p of a batch whose blocks fit in memory.
    fn score(&mut self, batch: &Batch<'_>, kept: &KeptStates) -> Result<f64, CudaError> {
        let plan = BatchPlan::to_score(self.space, batch, Some(kept));
        let mut ints = self.ints.take().expect("every step puts it back");
        let scored = self.log_probs(&plan, kept, &mut ints);
        // After an error, too: the next call returns the error of the device again.
        self.ints = Some(ints);
        scored?;
        let log_probs = self.device.download(&self.tables.log_probs)?;
        Ok(log_probs[..plan.n_sentences()].iter().sum())
    }

    /// Computes ln p of every sentence of a plan.
    fn log_probs(
        &mut self,
        plan: &BatchPlan,
        kept: &KeptStates,
        ints: &mut Array<u32>,
    ) -> Result<(), CudaError> {
        let n = kept.states.len();
        let sizes @ Sizes { k, .. } = Sizes { k: kept.k, n, n_from: n };
        let planned = DevicePlan::new(&self.device, plan, ints)?;
        self.tables.reserve_to_score(&self.device, plan, k)?;
        match planned.listed() {
            Some(listed) => self.gather_listed(&planned, &listed, sizes)?,
            None => self.gather(&planned, sizes)?,
        }
        // Scores are in full precision, like those of the CPU.
        self.tables.forward(&self.device, &planned, k, Precision::Full)
    }

    /// Computes the blocks of a plan, with some rows of logits at a time.
    fn gather(&mut self, planned: &DevicePlan<'_>, sizes: Sizes) -> Result<(), CudaError> {
        let Sizes { k, n, .. } = sizes;
        let (format, m) = (self.logit_format(k), self.space.n_clusters());
        for first in (0..m).step_by((ROWS / k).max(1)) {
            let clusters = first..(first + (ROWS / k).max(1)).min(m);
            let rows = clusters.start * k..clusters.end * k;
            self.logits(rows.clone(), sizes)?;
            self.tables.sum_logits(&self.device, rows, n, format)?;
            let blocks = planned.plan.blocks_from(clusters.clone());
            let first_row = clusters.start * k;
            self.tables.gather(&self.device, planned, blocks, first_row, (sizes, format))?;
        }
        Ok(())
    }

    /// Computes the blocks of a plan for a model with state lists.
    fn gather_listed(
        &mut self,
        planned: &DevicePlan<'_>,
        listed: &Listed<'_>,
        sizes: Sizes,
    ) -> Result<(), CudaError> {
        let n = sizes.n;
        for first in (0..n).step_by(ROWS) {
            let rows = first..(first + ROWS).min(n);
            self.logits(rows.clone(), sizes)?;
            self.tables.sum_logits(&self.device, rows.clone(), n, LogitFormat::Single)?;
            self.tables.gather_listed(&self.device, planned, listed, rows, n)?;
        }
        Ok(())
    }

    /// Σ ln p of sentences with all states.
    pub(crate) fn try_log_prob(&mut self, batches: &[Batch<'_>]) -> Result<f64, CudaError> {
        let kept = KeptStates::all(self.space);
        self.forward(&KeptPlan::all(self.space, self.is_factored()), None)?;
        self.device.after(&self.side)?;
        self.score_all(batches, &kept)
    }

    /// Σ ln p of sentences, after the tables of starts and emissions are computed.
    fn score_all(&mut self, batches: &[Batch<'_>], kept: &KeptStates) -> Result<f64, CudaError> {
        let mut words = batches.iter().flat_map(|batch| &batch.sentences).copied().flatten();
        if words.any(|&word| self.space.slot(word).is_none()) {
            return Ok(f64::NEG_INFINITY);
        }
        let (mut sum, mut part) = (0.0, Batch::default());
        // Scores as many sentences as possible together, because every call computes all logits.
        let max_tokens = max_tokens(self.space);
        for batch in batches {
            if !part.sentences.is_empty() && part.n_tokens() + batch.n_tokens() > max_tokens {
                sum += self.score(&std::mem::take(&mut part), kept)?;
            }
            part.sentences.extend(&batch.sentences);
        }
        Ok(sum + self.score(&part, kept)?)
    }
}

/// The largest number of tokens whose values and blocks, with all states, fit in memory.
pub(crate) fn max_tokens(space: &StateSpace) -> usize {
    if let Some(lists) = lists(space, 1) {
        return max_listed_tokens(space, lists);
    }
    let (k, m) = (space.k, space.n_clusters());
    let max_blocks = (MAX_BLOCK_VALUES / k.pow(2)).max(1);
    let max_tokens = if m * m <= max_blocks { usize::MAX } else { max_blocks };
    max_tokens.min(MAX_BLOCK_VALUES / k)
}
