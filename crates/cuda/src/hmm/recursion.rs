//! The scaled forward and backward recursions over sentences.

use super::transition::{BlockShape, Blocks};
use crate::device::{
    Array, CudaError, Device, View, at_least, exactly, for_each, grid, int, kernels, warps,
};
use crate::shape::Shape;
use cudarc::driver::LaunchConfig;
use half::bf16;
use std::ops::Range;

/// Sentences with their tokens one after the other. The indices are ranges of one array.
#[derive(Clone, Debug)]
pub struct Sequences<'a> {
    /// The array that contains the ranges below.
    pub ints: &'a Array<u32>,
    /// Index of the first token of each sentence, and the number of tokens.
    pub offsets: Range<usize>,
    /// The cluster of each token.
    pub clusters: Range<usize>,
    /// The slot of each token.
    pub slots: Range<usize>,
    /// The block between each token and the one before it. Not used for the first token of a sentence.
    pub block_of_pair: Range<usize>,
}

impl Sequences<'_> {
    pub(super) fn n_sentences(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub(super) fn n_tokens(&self) -> usize {
        self.clusters.len()
    }

    /// Panics unless all ranges have one element per token.
    #[track_caller]
    pub(super) fn check(&self) {
        exactly("slots", self.slots.len(), self.n_tokens());
        exactly("block_of_pair", self.block_of_pair.len(), self.n_tokens());
    }

    /// Panics if an index or a table of k states per token is invalid.
    #[track_caller]
    pub(super) fn check_tables(
        &self,
        (local, start, blocks): (&Array<f32>, &Array<f32>, &Array<f32>),
        k: usize,
    ) {
        self.check();
        at_least("local", local.len(), self.n_tokens() * k);
        at_least("start", start.len(), self.n_tokens().min(1) * k);
        self.check_blocks(blocks, k);
    }

    /// Panics if tokens need a block of k × k transitions and there is none.
    #[track_caller]
    pub(super) fn check_blocks(&self, blocks: &Array<f32>, k: usize) {
        if self.n_tokens() > self.n_sentences() {
            at_least("blocks", blocks.len(), k * k);
        }
    }
}

/// Tokens in groups. The indices are ranges of one array.
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    /// The array that contains the ranges below.
    pub ints: &'a Array<u32>,
    /// The row of each group in the output. All are distinct.
    pub rows: Range<usize>,
    /// Where each group begins in `tokens`, and where the last one ends.
    pub begins: Range<usize>,
    /// Indices of the tokens of all groups, all below `n_tokens`.
    pub tokens: Range<usize>,
    /// Number of tokens, in groups or not.
    pub n_tokens: usize,
}

impl<'a> Groups<'a> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[track_caller]
    fn check(&self) {
        exactly("begins", self.begins.len(), self.len() + 1);
    }

    fn begins(&self) -> View<'a, u32> {
        self.ints.at(self.begins.clone())
    }

    fn tokens(&self) -> View<'a, u32> {
        self.ints.at(self.tokens.clone())
    }
}

impl Device {
    /// Writes b of each token's slot, k numbers per token, to `local`.
    pub fn place(
        &self,
        local: &mut Array<f32>,
        emission: &Array<f32>,
        sequences: &Sequences<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let n_tokens = sequences.n_tokens();
        sequences.check();
        at_least("local", local.len(), n_tokens * k);
        at_least("emission", emission.len(), n_tokens.min(1) * k);
        kernels::place(
            self,
            for_each(n_tokens * k),
            local.all_mut(),
            emission.all(),
            sequences.ints.at(sequences.slots.clone()),
            int(n_tokens),
            int(k),
        )
    }

    /// The forward recursion: α of each token, scaled to a sum of 1, and ln p of each sentence. The inputs are b of
    /// tokens, the start probabilities and the blocks of transitions.
    pub fn forward_pass(
        &self,
        (alpha, log_probs): (&mut Array<f32>, &mut Array<f64>),
        probabilities: (&Array<f32>, &Array<f32>, &Array<f32>),
        sequences: &Sequences<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let (betas, weighted) = (&mut self.zeros(1)?, &mut self.zeros(1)?);
        self.passes(1, (alpha, betas, weighted, log_probs), probabilities, sequences, k)
    }

    /// The forward and backward recursions, which run concurrently: α/κ, γ and b ∘ β of each token, and ln p of each
    /// sentence, with κ = Σ α ∘ β.
    pub fn both_passes(
        &self,
        (alpha, nodes, weighted): (&mut Array<f32>, &mut Array<f32>, &mut Array<f32>),
        log_probs: &mut Array<f64>,
        probabilities: (&Array<f32>, &Array<f32>, &Array<f32>),
        sequences: &Sequences<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let n_tokens = sequences.n_tokens();
        at_least("nodes", nodes.len(), n_tokens * k);
        at_least("weighted", weighted.len(), n_tokens * k);
        self.passes(2, (alpha, nodes, weighted, log_probs), probabilities, sequences, k)?;
        self.join_passes(alpha, nodes, Shape { rows: n_tokens, columns: k })
    }

    fn passes(
        &self,
        n_passes: usize,
        (alpha, betas, weighted, log_probs): (
            &mut Array<f32>,
            &mut Array<f32>,
            &mut Array<f32>,
            &mut Array<f64>,
        ),
        (local, start, blocks): (&Array<f32>, &Array<f32>, &Array<f32>),
        sequences: &Sequences<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let Sequences { ints, offsets, clusters, block_of_pair, .. } = sequences;
        let (n_sentences, n_tokens) = (sequences.n_sentences(), sequences.n_tokens());
        sequences.check_tables((local, start, blocks), k);
        at_least("log_probs", log_probs.len(), n_sentences);
        at_least("alpha", alpha.len(), n_tokens * k);
        if n_sentences == 0 {
            return Ok(());
        }
        assert!(k <= MAX_STATES, "a token can have at most {MAX_STATES} states, got {k}");
        let mut config = grid((n_sentences, n_passes, 1), (THREADS, 1));
        config.shared_mem_bytes = ((2 * k + THREADS) * size_of::<f32>()) as u32;
        kernels::passes(
            self,
            config,
            alpha.all_mut(),
            betas.all_mut(),
            weighted.all_mut(),
            log_probs.all_mut(),
            local.all(),
            start.all(),
            blocks.all(),
            ints.at(offsets.clone()),
            ints.at(clusters.clone()),
            ints.at(block_of_pair.clone()),
            int(k),
        )
    }

    /// β of n tokens ─▶ γ, and α ─▶ α/κ with κ = Σ α ∘ β.
    pub fn join_passes(
        &self,
        alpha: &mut Array<f32>,
        nodes: &mut Array<f32>,
        Shape { rows: n, columns: k }: Shape,
    ) -> Result<(), CudaError> {
        at_least("alpha", alpha.len(), n * k);
        at_least("nodes", nodes.len(), n * k);
        kernels::join_passes(self, warps(n), alpha.all_mut(), nodes.all_mut(), int(n), int(k))
    }

    /// Σ α_{t−1}/κ ⊗ v_t over the tokens t of each group, a block of transitions.
    pub fn collect_ratios(
        &self,
        ratios: &mut Array<f32>,
        (alpha, weighted): (&Array<f32>, &Array<f32>),
        pairs: &Groups<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        if pairs.len() == 0 {
            return Ok(());
        }
        pairs.check();
        at_least("ratios", ratios.len(), pairs.len() * k * k);
        at_least("alpha", alpha.len(), pairs.n_tokens * k);
        at_least("weighted", weighted.len(), pairs.n_tokens * k);
        kernels::collect_ratios(
            self,
            of_blocks(pairs.len(), k),
            ratios.all_mut(),
            alpha.all(),
            weighted.all(),
            pairs.begins(),
            pairs.tokens(),
            int(k),
        )
    }

    /// Minus the transition probabilities in bf16 ─▶ N/left − a in the blocks that are used, where N is the expected
    /// number of transitions, and `probabilities` has a for these blocks. All rows are multiplied by `row_sums`.
    pub fn collect_differences(
        &self,
        differences: &mut Array<bf16>,
        (probabilities, left, row_sums): (&Array<f32>, &Array<f32>, &Array<f32>),
        (alpha, weighted): (&Array<f32>, &Array<f32>),
        (blocks, pairs): (&Blocks<'_>, &Groups<'_>),
        shape: BlockShape,
    ) -> Result<(), CudaError> {
        let BlockShape { k, n } = shape;
        if pairs.len() == 0 {
            return Ok(());
        }
        pairs.check();
        blocks.check(shape);
        exactly("blocks", blocks.len(), pairs.len());
        at_least("differences", differences.len(), n * n);
        at_least("probabilities", probabilities.len(), blocks.len() * k * k);
        at_least("left", left.len(), n);
        at_least("row_sums", row_sums.len(), n);
        at_least("alpha", alpha.len(), pairs.n_tokens * k);
        at_least("weighted", weighted.len(), pairs.n_tokens * k);
        kernels::collect_differences(
            self,
            of_blocks(blocks.len(), k),
            differences.all_mut(),
            probabilities.all(),
            left.all(),
            row_sums.all(),
            alpha.all(),
            weighted.all(),
            blocks.ints.at(blocks.from.clone()),
            blocks.ints.at(blocks.to.clone()),
            pairs.begins(),
            pairs.tokens(),
            int(k),
            int(n),
        )
    }

    /// Writes Σ γ_t over the tokens of each group, k numbers, to the row of the group.
    pub fn sum_groups(
        &self,
        out: &mut Array<f32>,
        nodes: &Array<f32>,
        groups: &Groups<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        if groups.len() == 0 {
            return Ok(());
        }
        groups.check();
        at_least("out", out.len(), groups.len() * k);
        at_least("nodes", nodes.len(), groups.n_tokens * k);
        kernels::sum_groups(
            self,
            grid((groups.len(), k.div_ceil(32), 1), (32, 8)),
            out.all_mut(),
            nodes.all(),
            groups.ints.at(groups.rows.clone()),
            groups.begins(),
            groups.tokens(),
            int(k),
        )
    }
}

/// Threads for blocks of k × k numbers, where a thread computes several rows of a column at a time.
fn of_blocks(n_blocks: usize, k: usize) -> LaunchConfig {
    const ROWS_AT_A_TIME: usize = 8;
    let n_parts = k.div_ceil(ROWS_AT_A_TIME).min(64);
    grid((n_blocks, n_parts, 1), (k.next_multiple_of(32).min(512), 1))
}

/// Threads per sentence. The kernels have the same constant.
pub(super) const THREADS: usize = 512;

/// Largest number of states of a token: two rows of them must fit into 48 KiB of shared memory.
pub const MAX_STATES: usize = 5_824;
