//! Batches of sequences, and where the device has their tokens.

use crate::cuda::plan::batch_plan::BatchPlan;
use crate::recursion::batch::Batch;
use crate::steps::batches::pack;
use latens_corpus::WordId;
use latens_math::chain::SMALLEST_SCALE;

/// Some of the sequences, as indices, in batches of at most `max_tokens` tokens, but at least one sequence. The longest ones
/// come first, as in the plan of a model with a single cluster.
pub(super) fn in_batches(
    mut idxs: Vec<u32>,
    sequences: &[&[WordId]],
    max_tokens: usize,
) -> Vec<Vec<u32>> {
    idxs.sort_by_key(|&idx| std::cmp::Reverse(sequences[idx as usize].len()));
    pack(&idxs, |idx| sequences[idx].len(), max_tokens)
}

/// The batch of some sequences.
pub(super) fn batch<'t>(idxs: &[u32], sequences: &[&'t [WordId]]) -> Batch<'t> {
    let sentences = idxs.iter().map(|&idx| sequences[idx as usize]).collect();
    Batch { sentences, tags: vec![] }
}

/// The rows of the tokens of a batch that [`in_batches`] has made, whose sequences are not empty.
pub(super) struct Places {
    /// The first row of each sequence, or of each step.
    firsts: Vec<usize>,
    in_steps: bool,
}

impl Places {
    pub(super) fn new(plan: &BatchPlan, batch: &Batch<'_>) -> Places {
        let in_steps = !plan.steps.is_empty();
        let lengths: Vec<usize> = match in_steps {
            true => plan.steps.clone(),
            false => batch.sentences.iter().map(|sentence| sentence.len()).collect(),
        };
        let mut end = 0;
        let first = |len: &usize| {
            end += len;
            end - len
        };
        Places { firsts: lengths.iter().map(first).collect(), in_steps }
    }

    /// The row of a token of a sequence of the batch.
    pub(super) fn row(&self, sequence: usize, token: usize) -> usize {
        if self.in_steps { self.firsts[token] + sequence } else { self.firsts[sequence] + token }
    }
}

/// Whether the device computed a token exactly enough. It raises tiny probabilities to its lower bounds; what they may
/// matter for is left to the CPU, which continues in log space where the same sums are this small.
pub(super) fn is_sound(mass: f64) -> bool {
    mass >= SMALLEST_SCALE && mass.is_finite()
}
