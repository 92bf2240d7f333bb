//! The scaled recursions over sentences.

use crate::device::{for_each, grid, launch};
use crate::{Array, Blocks, CudaError, Device};
use cudarc::driver::{LaunchConfig, PushKernelArg};
use std::ops::Range;

/// Sentences, their tokens one after the other; where the numbers lie in one array.
#[derive(Clone, Debug)]
pub struct Sequences<'a> {
    /// The array.
    pub ints: &'a Array<u32>,
    /// Where each sentence begins among the tokens, and where the last one ends.
    pub offsets: Range<usize>,
    /// The cluster of each token.
    pub clusters: Range<usize>,
    /// The slot of each token.
    pub slots: Range<usize>,
    /// The block of the pair of a token and the one before it; anything for the first of a sentence.
    pub block_of_pair: Range<usize>,
}

impl Sequences<'_> {
    fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub(crate) fn n_tokens(&self) -> usize {
        self.clusters.len()
    }

    pub(crate) fn check(&self) {
        let n = self.n_tokens();
        assert!(self.slots.len() == n && self.block_of_pair.len() == n, "numbers for each token");
    }
}

/// Tokens in groups, each with a number of its own; where the numbers lie in one array.
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    /// The array.
    pub ints: &'a Array<u32>,
    /// The number of each group.
    pub rows: Range<usize>,
    /// Where each begins among its tokens, and where the last one ends.
    pub begins: Range<usize>,
    /// The tokens.
    pub tokens: Range<usize>,
}

impl Groups<'_> {
    fn check(&self) {
        assert_eq!(
            self.begins.len(),
            self.rows.len() + 1,
            "a beginning for each group, and an end"
        );
    }
}

impl Device {
    /// b of each token's slot.
    pub fn place(
        &self,
        local: &mut Array<f32>,
        emission: &Array<f32>,
        sequences: &Sequences<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        sequences.check();
        assert!(sequences.n_tokens() * k <= local.len(), "k numbers a token");
        let config = for_each(sequences.n_tokens() * k);
        let (n_tokens, k) = (sequences.n_tokens() as i32, k as i32);
        let slots = sequences.ints.at(sequences.slots.clone());
        launch!(self, "place", config, &mut local.0, &emission.0, &slots, &n_tokens, &k)
    }

    /// α of each token, scaled to a sum of one, and ln p of each sentence.
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

    /// Of each token α/κ, γ and b ∘ β, and ln p of each sentence; forward and backward at the same time.
    pub fn both_passes(
        &self,
        (alpha, nodes, weighted): (&mut Array<f32>, &mut Array<f32>, &mut Array<f32>),
        log_probs: &mut Array<f64>,
        probabilities: (&Array<f32>, &Array<f32>, &Array<f32>),
        sequences: &Sequences<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let n_tokens = sequences.n_tokens();
        assert!(n_tokens * k <= nodes.len().min(weighted.len()), "k numbers a token");
        self.passes(2, (alpha, nodes, weighted, log_probs), probabilities, sequences, k)?;
        self.join_passes(alpha, nodes, (n_tokens, k))
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
        sequences.check();
        assert!(sequences.len() <= log_probs.len(), "a number for each sentence");
        assert!(sequences.n_tokens() * k <= alpha.len().min(local.len()), "k numbers a token");
        if sequences.len() == 0 {
            return Ok(());
        }
        assert!(k <= MAX_STATES, "as many states as there is room for");
        let mut config = grid((sequences.len(), n_passes, 1), (THREADS, 1));
        config.shared_mem_bytes = ((2 * k + THREADS) * size_of::<f32>()) as u32;
        let k = k as i32;
        let offsets = sequences.ints.at(sequences.offsets.clone());
        let clusters = sequences.ints.at(sequences.clusters.clone());
        let block_of_pair = sequences.ints.at(sequences.block_of_pair.clone());
        launch!(
            self,
            "passes",
            config,
            &mut alpha.0,
            &mut betas.0,
            &mut weighted.0,
            &mut log_probs.0,
            &local.0,
            &start.0,
            &blocks.0,
            &offsets,
            &clusters,
            &block_of_pair,
            &k
        )
    }

    /// Σ α_{t−1}/κ ⊗ v_t over the tokens t of each group: a block of transitions.
    pub fn collect_ratios(
        &self,
        ratios: &mut Array<f32>,
        (alpha, weighted): (&Array<f32>, &Array<f32>),
        pairs: &Groups<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        if pairs.rows.is_empty() {
            return Ok(());
        }
        pairs.check();
        assert!(pairs.rows.len() * k * k <= ratios.len(), "a block for each group");
        let config = of_blocks(pairs.rows.len(), k);
        let k = k as i32;
        let begins = pairs.ints.at(pairs.begins.clone());
        let tokens = pairs.ints.at(pairs.tokens.clone());
        launch!(
            self,
            "collect_ratios",
            config,
            &mut ratios.0,
            &alpha.0,
            &weighted.0,
            &begins,
            &tokens,
            &k
        )
    }

    /// Minus the probabilities of transitions, in bf16 ─▶ N/left − a where `blocks` were used, of which `probabilities`
    /// has a, and N is the expected number of transitions.
    pub fn collect_differences(
        &self,
        differences: &mut Array<u16>,
        (probabilities, left): (&Array<f32>, &Array<f32>),
        (alpha, weighted): (&Array<f32>, &Array<f32>),
        (blocks, pairs): (&Blocks<'_>, &Groups<'_>),
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        if pairs.rows.is_empty() {
            return Ok(());
        }
        pairs.check();
        let n_blocks = pairs.rows.len();
        assert!(n_blocks == blocks.from.len() && n_blocks == blocks.to.len(), "clusters of blocks");
        assert!(n_blocks * k * k <= probabilities.len(), "a block for each group");
        assert!(n * n <= differences.len() && n <= left.len(), "all states");
        let config = of_blocks(n_blocks, k);
        let (k, n) = (k as i32, n as i32);
        let (from, to) = (blocks.ints.at(blocks.from.clone()), blocks.ints.at(blocks.to.clone()));
        let begins = pairs.ints.at(pairs.begins.clone());
        let tokens = pairs.ints.at(pairs.tokens.clone());
        launch!(
            self,
            "collect_differences",
            config,
            &mut differences.0,
            &probabilities.0,
            &left.0,
            &alpha.0,
            &weighted.0,
            &from,
            &to,
            &begins,
            &tokens,
            &k,
            &n
        )
    }

    /// Writes Σ γ_t over the tokens of each group, k numbers, to the row of its number.
    pub fn sum_groups(
        &self,
        out: &mut Array<f32>,
        nodes: &Array<f32>,
        groups: &Groups<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        if groups.rows.is_empty() {
            return Ok(());
        }
        groups.check();
        let config = grid((groups.rows.len(), k.div_ceil(32), 1), (32, 8));
        let k = k as i32;
        let rows = groups.ints.at(groups.rows.clone());
        let begins = groups.ints.at(groups.begins.clone());
        let tokens = groups.ints.at(groups.tokens.clone());
        launch!(self, "sum_groups", config, &mut out.0, &nodes.0, &rows, &begins, &tokens, &k)
    }
}

/// Threads for blocks of k × k numbers, each of which has some rows of a column at a time.
fn of_blocks(n_blocks: usize, k: usize) -> LaunchConfig {
    const ROWS_AT_A_TIME: usize = 8;
    let n_parts = k.div_ceil(ROWS_AT_A_TIME).min(64);
    grid((n_blocks, n_parts, 1), (k.next_multiple_of(32).min(512), 1))
}

/// Threads of a sentence; the kernels have the same number.
const THREADS: usize = 512;

/// The most states of a token: two rows of them lie in the 48 KiB that a sentence has.
pub const MAX_STATES: usize = 5_824;
