//! How likely sentences are, with all states: logits of transitions are made of some rows at a time, and only the blocks that
//! are used are kept.

use crate::cuda::device_model::CudaLearner;
use crate::cuda::plan::batch_plan::{Plan, lists, max_listed_tokens};
use crate::cuda::plan::device_plan::Planned;
use crate::recursion::batch::Batch;
use crate::space::kept_states::KeptStates;
use latens_cuda::{CudaError, Listed, Precision};

/// The most numbers of blocks, and of tokens, that a score holds at once: 16 GiB.
const MAX_BLOCK_NUMBERS: usize = 1 << 32;

/// About how many rows of logits a score makes at a time.
const ROWS: usize = if cfg!(test) { 24 } else { 4096 };

impl CudaLearner<'_> {
    /// Σ ln p of a batch, whose blocks must have room.
    fn score(&mut self, batch: &Batch<'_>, kept: &KeptStates) -> Result<f64, CudaError> {
        let (k, n) = (kept.k, kept.states.len());
        let plan = Plan::to_score(self.space, batch, Some(kept));
        let mut ints = self.ints.take().expect("it is put back");
        let planned = Planned::new(&self.device, &plan, &mut ints)?;
        self.tables.make_room_to_score(&self.device, &plan, k)?;
        match planned.listed() {
            Some(listed) => self.gather_listed(&planned, &listed, (k, n))?,
            None => self.gather(&planned, (k, n))?,
        }
        // The recursion is the processor's: in full.
        self.tables.forward(&self.device, &planned, k, Precision::Full)?;
        self.ints = Some(ints);
        let log_probs = self.device.download(&self.tables.log_probs)?;
        Ok(log_probs[..plan.n_sentences()].iter().sum())
    }

    /// The blocks of a plan; logits are made of some rows at a time.
    fn gather(&mut self, planned: &Planned<'_>, (k, n): (usize, usize)) -> Result<(), CudaError> {
        let (is_half, m) = (self.is_half(k), self.space.n_clusters());
        for first in (0..m).step_by((ROWS / k).max(1)) {
            let clusters = first..(first + (ROWS / k).max(1)).min(m);
            let rows = clusters.start * k..clusters.end * k;
            self.logits(rows.clone(), (k, n))?;
            self.tables.sum_logits(&self.device, rows, n, is_half)?;
            let (which, sizes) = (planned.plan.blocks_from(clusters.clone()), (k, n, is_half));
            self.tables.gather(&self.device, planned, which, clusters.start * k, sizes)?;
        }
        Ok(())
    }

    /// The same where words have lists of states.
    fn gather_listed(
        &mut self,
        planned: &Planned<'_>,
        listed: &Listed<'_>,
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        for first in (0..n).step_by(ROWS) {
            let rows = first..(first + ROWS).min(n);
            self.logits(rows.clone(), (k, n))?;
            self.tables.sum_logits(&self.device, rows.clone(), n, false)?;
            self.tables.gather_listed(&self.device, planned, listed, rows, n)?;
        }
        Ok(())
    }

    /// Σ ln p of sentences with all states.
    pub(crate) fn try_log_prob(&mut self, batches: &[Batch<'_>]) -> Result<f64, CudaError> {
        let kept = KeptStates::all(self.space);
        let mut words = batches.iter().flat_map(|batch| &batch.sentences).copied().flatten();
        if words.any(|&word| self.space.slot(word).is_none()) {
            return Ok(f64::NEG_INFINITY);
        }
        self.forward(&kept, None)?;
        self.device.after(&self.side)?;
        let (mut sum, mut part) = (0.0, Batch::default());
        // One call for as many sentences as possible, since each makes all logits.
        let max_tokens = match lists(self.space, 1) {
            Some(lists) => max_listed_tokens(self.space, lists),
            None => {
                let max_blocks = (MAX_BLOCK_NUMBERS / kept.k.pow(2)).max(1);
                let m = self.space.n_clusters();
                let max_tokens = if m * m <= max_blocks { usize::MAX } else { max_blocks };
                max_tokens.min(MAX_BLOCK_NUMBERS / kept.k)
            }
        };
        for batch in batches {
            if !part.sentences.is_empty() && part.n_tokens() + batch.n_tokens() > max_tokens {
                sum += self.score(&std::mem::take(&mut part), &kept)?;
            }
            part.sentences.extend(&batch.sentences);
        }
        Ok(sum + self.score(&part, &kept)?)
    }
}
