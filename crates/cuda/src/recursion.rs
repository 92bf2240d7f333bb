//! The scaled recursions over sentences.

use crate::device::{for_each, grid, launch};
use crate::{Array, CudaError, Device};
use cudarc::driver::PushKernelArg;
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

    fn n_tokens(&self) -> usize {
        self.clusters.len()
    }

    fn check(&self) {
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
        let mut config = grid((sequences.len(), 1, 1), (THREADS, 1));
        config.shared_mem_bytes = ((2 * k + THREADS) * size_of::<f32>()) as u32;
        let k = k as i32;
        let offsets = sequences.ints.at(sequences.offsets.clone());
        let clusters = sequences.ints.at(sequences.clusters.clone());
        let block_of_pair = sequences.ints.at(sequences.block_of_pair.clone());
        launch!(
            self,
            "forward_pass",
            config,
            &mut alpha.0,
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

    /// γ and b ∘ β of each token; α ─▶ α/κ.
    pub fn backward_pass(
        &self,
        (alpha, weighted, nodes): (&mut Array<f32>, &mut Array<f32>, &mut Array<f32>),
        (local, blocks): (&Array<f32>, &Array<f32>),
        sequences: &Sequences<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        sequences.check();
        for array in [&*alpha, weighted, nodes, local] {
            assert!(sequences.n_tokens() * k <= array.len(), "k numbers a token");
        }
        if sequences.len() == 0 {
            return Ok(());
        }
        let mut config = grid((sequences.len(), 1, 1), (THREADS, 1));
        config.shared_mem_bytes = (2 * k * size_of::<f32>()) as u32;
        let k = k as i32;
        let offsets = sequences.ints.at(sequences.offsets.clone());
        let block_of_pair = sequences.ints.at(sequences.block_of_pair.clone());
        launch!(
            self,
            "backward_pass",
            config,
            &mut alpha.0,
            &mut weighted.0,
            &mut nodes.0,
            &local.0,
            &blocks.0,
            &offsets,
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
        let config = grid((pairs.rows.len(), k.min(16), 1), (k.next_multiple_of(32).min(512), 1));
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
        let config = grid((groups.rows.len(), 1, 1), (k.next_multiple_of(32).min(512), 1));
        let k = k as i32;
        let rows = groups.ints.at(groups.rows.clone());
        let begins = groups.ints.at(groups.begins.clone());
        let tokens = groups.ints.at(groups.tokens.clone());
        launch!(self, "sum_groups", config, &mut out.0, &nodes.0, &rows, &begins, &tokens, &k)
    }
}

/// Threads of a sentence; the kernels have the same number.
const THREADS: usize = 512;

/// The most states of a token: two rows of them lie in the 48 KiB that a sentence has.
pub const MAX_STATES: usize = 5_824;
