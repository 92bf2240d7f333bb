//! Transition probabilities: a softmax per row of logits, in blocks of pairs of clusters.

use crate::device::{Array, CudaError, Device, Element, at_least, exactly, grid, int, kernels};
use crate::shape::Shape;
use cudarc::driver::LaunchConfig;
use half::f16;
use std::ops::Range;

/// Blocks of k × k pairs of states, one per pair of clusters. The indices are ranges of one array.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    /// The array that contains the ranges below.
    pub ints: &'a Array<u32>,
    /// The cluster of the rows of each block.
    pub from: Range<usize>,
    /// The cluster of the columns of each block.
    pub to: Range<usize>,
}

/// Numbers of states that say which part of a matrix of transitions a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Number of states of a cluster: a block is k × k.
    pub k: usize,
    /// Number of all states: the matrix is n × n.
    pub n: usize,
}

impl Blocks<'_> {
    /// Number of blocks.
    pub(super) fn len(&self) -> usize {
        self.from.len()
    }

    /// Panics unless these are blocks of k of n states.
    #[track_caller]
    pub(super) fn check(&self, BlockShape { k, n }: BlockShape) {
        exactly("to", self.to.len(), self.from.len());
        check_clusters(k, n);
    }

    /// Threads that work on rows of all blocks, which must not be empty.
    pub(super) fn grid(&self, k: usize) -> LaunchConfig {
        let n_rows = k.min(if self.len() < 64 { 512 } else { 32 });
        grid((self.len(), n_rows, 1), (k.next_multiple_of(32).min(512), 1))
    }
}

/// Panics unless n states can be divided into clusters of k.
#[track_caller]
pub(super) fn check_clusters(k: usize, n: usize) {
    assert!(
        k > 0 && n.is_multiple_of(k),
        "the number of states must be a multiple of `k` = {k}, got {n}"
    );
}

impl Device {
    /// ln Σ exp of each row of logits, written to `log_sums` from an index on.
    pub fn row_log_sums(
        &self,
        (log_sums, first): (&mut Array<f32>, usize),
        logits: &Array<f32>,
        Shape { rows, columns: n }: Shape,
    ) -> Result<(), CudaError> {
        at_least("logits", logits.len(), rows * n);
        let (config, out) = (grid((rows, 1, 1), (512, 1)), log_sums.at_mut(first..first + rows));
        kernels::row_log_sums(self, config, out, logits.all(), int(n))
    }

    /// [`Device::row_log_sums`] for logits in half precision. n must be a multiple of 8.
    pub fn row_log_sums_half(
        &self,
        (log_sums, first): (&mut Array<f32>, usize),
        logits: &Array<f16>,
        Shape { rows, columns: n }: Shape,
    ) -> Result<(), CudaError> {
        check_eights("n", n);
        at_least("logits", logits.len(), rows * n);
        let (config, out) = (grid((rows, 1, 1), (512, 1)), log_sums.at_mut(first..first + rows));
        kernels::row_log_sums_half(self, config, out, logits.all(), int(n))
    }

    /// The transition probabilities of blocks, written to `out` from block number `at` on.
    ///
    /// The first row of `logits` is that of state `first_row`. A cluster has k of the n states.
    pub fn gather_blocks(
        &self,
        (out, at): (&mut Array<f32>, usize),
        (logits, first_row): (&Array<f32>, usize),
        log_sums: &Array<f32>,
        blocks: &Blocks<'_>,
        shape: BlockShape,
    ) -> Result<(), CudaError> {
        let BlockShape { k, n } = shape;
        if blocks.from.is_empty() {
            return Ok(());
        }
        check_gathered((out.len(), at), (logits, first_row), log_sums, blocks, shape);
        kernels::gather_blocks(
            self,
            blocks.grid(k),
            out.at_mut(at * k * k..(at + blocks.len()) * k * k),
            logits.all(),
            log_sums.all(),
            blocks.ints.at(blocks.from.clone()),
            blocks.ints.at(blocks.to.clone()),
            int(k),
            int(n),
            int(first_row),
        )
    }

    /// [`Device::gather_blocks`] for logits in half precision.
    pub fn gather_blocks_half(
        &self,
        (out, at): (&mut Array<f32>, usize),
        (logits, first_row): (&Array<f16>, usize),
        log_sums: &Array<f32>,
        blocks: &Blocks<'_>,
        shape: BlockShape,
    ) -> Result<(), CudaError> {
        let BlockShape { k, n } = shape;
        if blocks.from.is_empty() {
            return Ok(());
        }
        check_gathered((out.len(), at), (logits, first_row), log_sums, blocks, shape);
        kernels::gather_blocks_half(
            self,
            blocks.grid(k),
            out.at_mut(at * k * k..(at + blocks.len()) * k * k),
            logits.all(),
            log_sums.all(),
            blocks.ints.at(blocks.from.clone()),
            blocks.ints.at(blocks.to.clone()),
            int(k),
            int(n),
            int(first_row),
        )
    }

    /// The logits of transitions from `n_rows` of the n states ─▶ the derivatives (R − left) ∘ a, where `ratios`
    /// has R for blocks, and `block_of` the number of the block of each pair of clusters, or `u32::MAX`.
    pub fn transition_gradient(
        &self,
        (logits, log_sums): (&mut Array<f32>, &Array<f32>),
        left: &Array<f32>,
        (ratios, (block_of, block_of_range)): (&Array<f32>, (&Array<u32>, Range<usize>)),
        n_rows: usize,
        BlockShape { k, n }: BlockShape,
    ) -> Result<(), CudaError> {
        check_clusters(k, n);
        check_clusters(k, n_rows);
        at_least("logits", logits.len(), n_rows * n);
        at_least("log_sums", log_sums.len(), n_rows);
        at_least("left", left.len(), n_rows);
        at_least("block_of", block_of_range.len(), n_rows / k * (n / k));
        kernels::transition_gradient(
            self,
            grid((n_rows, 1, 1), (512, 1)),
            logits.all_mut(),
            log_sums.all(),
            left.all(),
            ratios.all(),
            block_of.at(block_of_range),
            int(k),
            int(n),
        )
    }

    /// The logits of transitions from `n_rows` of the n states in half precision ─▶ minus their probabilities in bf16. k
    /// must be a multiple of 8. `sums` gets the sums of the rows, which are 1.
    ///
    /// The probabilities of the blocks in `block_of` are also written to `blocks` in single precision.
    pub fn minus_probabilities_half(
        &self,
        (logits, sums): (&mut Array<f16>, &mut Array<f32>),
        (blocks, n_blocks): (&mut Array<f32>, usize),
        (block_of, block_of_range): (&Array<u32>, Range<usize>),
        n_rows: usize,
        BlockShape { k, n }: BlockShape,
    ) -> Result<(), CudaError> {
        check_eights("k", k);
        check_clusters(k, n);
        check_clusters(k, n_rows);
        at_least("logits", logits.len(), n_rows * n);
        at_least("block_of", block_of_range.len(), n_rows / k * (n / k));
        at_least("blocks", blocks.len(), n_blocks * k * k);
        at_least("sums", sums.len(), n_rows);
        kernels::minus_probabilities_half(
            self,
            grid((n_rows, 1, 1), (512, 1)),
            logits.all_mut(),
            sums.all_mut(),
            blocks.all_mut(),
            block_of.at(block_of_range),
            int(k),
            int(n),
        )
    }

    /// The softmax of the first n numbers.
    pub fn softmax(&self, values: &mut Array<f32>, n: usize) -> Result<(), CudaError> {
        at_least("values", values.len(), n);
        kernels::softmax(self, grid((1, 1, 1), (1024, 1)), values.all_mut(), int(n))
    }

    /// Probabilities ─▶ counts − (Σ counts) · probabilities, the derivatives with respect to the logits of a softmax.
    pub fn softmax_gradient(
        &self,
        values: &mut Array<f32>,
        counts: &Array<f32>,
        n: usize,
    ) -> Result<(), CudaError> {
        at_least("values", values.len(), n);
        at_least("counts", counts.len(), n);
        let config = grid((1, 1, 1), (1024, 1));
        kernels::softmax_gradient(self, config, values.all_mut(), counts.all(), int(n))
    }
}

/// Kernels for 16-bit numbers read eight of them at a time.
#[track_caller]
fn check_eights(name: &str, size: usize) {
    assert!(size.is_multiple_of(8), "`{name}` must be a multiple of 8, got {size}");
}

#[track_caller]
fn check_gathered<T: Element>(
    (out_len, at): (usize, usize),
    (logits, first_row): (&Array<T>, usize),
    log_sums: &Array<f32>,
    blocks: &Blocks<'_>,
    shape: BlockShape,
) {
    let BlockShape { k, n } = shape;
    blocks.check(shape);
    at_least("out", out_len, (at + blocks.len()) * k * k);
    at_least("log_sums", log_sums.len(), n);
    // A block needs the logits of all states of a cluster.
    at_least("logits", logits.len(), k * n);
    assert!(
        first_row + k <= n,
        "`first_row` must be at most {} for {n} states, got {first_row}",
        n - k
    );
}
