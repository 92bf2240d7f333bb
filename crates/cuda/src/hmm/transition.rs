//! Transitions of a softmax, in blocks of pairs of clusters.

use crate::device::{grid, launch};
use crate::{Array, CudaError, Device};
use cudarc::driver::PushKernelArg;
use std::ops::Range;

/// Some blocks of the k × k pairs of states of two clusters; where the numbers lie in one array.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    /// The array.
    pub ints: &'a Array<u32>,
    /// The clusters that each block leads from.
    pub from: Range<usize>,
    /// The clusters that each block leads to.
    pub to: Range<usize>,
}

impl Device {
    /// ln Σ exp of each of `n_rows` rows of n logits, written from `first` on.
    pub fn row_log_sums(
        &self,
        log_sums: (&mut Array<f32>, usize),
        logits: &Array<f32>,
        (n_rows, n): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(n_rows * n <= logits.len(), "whole rows");
        let mut out = log_sums.0.at_mut(log_sums.1..log_sums.1 + n_rows);
        let (config, n) = (grid((n_rows, 1, 1), (512, 1)), n as i32);
        launch!(self, "row_log_sums", config, &mut out, &logits.0, &n)
    }

    /// The probabilities of blocks, from number `at` on of `out`, of logits whose first row is that of state
    /// `first_row`; k is the number of states of a cluster, n of all.
    pub fn gather_blocks(
        &self,
        out: (&mut Array<f32>, usize),
        logits: (&Array<f32>, usize),
        log_sums: &Array<f32>,
        blocks: &Blocks<'_>,
        sizes: (usize, usize),
    ) -> Result<(), CudaError> {
        self.gather("gather_blocks", out, logits, log_sums, blocks, sizes)
    }

    /// Logits ─▶ the derivatives (R − left) ∘ a by them, where `ratios` has R of blocks, and `block_of` the block of each
    /// pair of clusters or `u32::MAX`.
    pub fn transition_gradient(
        &self,
        (logits, log_sums): (&mut Array<f32>, &Array<f32>),
        left: &Array<f32>,
        (ratios, block_of): (&Array<f32>, (&Array<u32>, Range<usize>)),
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(n * n <= logits.len() && n.is_multiple_of(k), "all pairs of states");
        assert!(n <= log_sums.len() && n <= left.len(), "all states");
        assert!((n / k).pow(2) <= block_of.1.len(), "all pairs of clusters");
        let block_of = block_of.0.at(block_of.1);
        let config = grid((n, 1, 1), (512, 1));
        let (k, n) = (k as i32, n as i32);
        launch!(
            self,
            "transition_gradient",
            config,
            &mut logits.0,
            &log_sums.0,
            &left.0,
            &ratios.0,
            &block_of,
            &k,
            &n
        )
    }

    /// [`Device::row_log_sums`] of logits in half precision, for an n that is a multiple of 8.
    pub fn row_log_sums_half(
        &self,
        log_sums: (&mut Array<f32>, usize),
        logits: &Array<u16>,
        (n_rows, n): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(n_rows * n <= logits.len() && n.is_multiple_of(8), "whole rows, eight at a time");
        let mut out = log_sums.0.at_mut(log_sums.1..log_sums.1 + n_rows);
        let (config, n) = (grid((n_rows, 1, 1), (512, 1)), n as i32);
        launch!(self, "row_log_sums_half", config, &mut out, &logits.0, &n)
    }

    /// [`Device::gather_blocks`] of logits in half precision.
    pub fn gather_blocks_half(
        &self,
        out: (&mut Array<f32>, usize),
        logits: (&Array<u16>, usize),
        log_sums: &Array<f32>,
        blocks: &Blocks<'_>,
        sizes: (usize, usize),
    ) -> Result<(), CudaError> {
        self.gather("gather_blocks_half", out, logits, log_sums, blocks, sizes)
    }

    /// Starts the kernel of this name, which reads logits of this kind.
    fn gather<T>(
        &self,
        kernel: &'static str,
        out: (&mut Array<f32>, usize),
        (logits, first_row): (&Array<T>, usize),
        log_sums: &Array<f32>,
        blocks: &Blocks<'_>,
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        let n_blocks = blocks.from.len();
        if n_blocks == 0 {
            return Ok(());
        }
        let (out, at) = out;
        assert!((at + n_blocks) * k * k <= out.len(), "room for all blocks");
        assert_eq!(n_blocks, blocks.to.len(), "two clusters a block");
        let mut out = out.at_mut(at * k * k..(at + n_blocks) * k * k);
        let (from, to) = (blocks.ints.at(blocks.from.clone()), blocks.ints.at(blocks.to.clone()));
        let config = grid(
            (n_blocks, k.min(if n_blocks < 64 { 512 } else { 32 }), 1),
            (k.next_multiple_of(32).min(512), 1),
        );
        let (k, n, first_row) = (k as i32, n as i32, first_row as i32);
        launch!(
            self,
            kernel,
            config,
            &mut out,
            &logits.0,
            &log_sums.0,
            &from,
            &to,
            &k,
            &n,
            &first_row
        )
    }

    /// Logits in half precision ─▶ minus their probabilities in bf16, for a k that is a multiple of 8; the
    /// probabilities of the blocks of `block_of` are written to `blocks` in full.
    pub fn minus_probabilities_half(
        &self,
        logits: &mut Array<u16>,
        (blocks, n_blocks): (&mut Array<f32>, usize),
        block_of: (&Array<u32>, Range<usize>),
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(k.is_multiple_of(8), "eight numbers at a time");
        assert!(n * n <= logits.len() && n.is_multiple_of(k), "all pairs of states");
        assert!((n / k).pow(2) <= block_of.1.len(), "all pairs of clusters");
        assert!(n_blocks * k * k <= blocks.len(), "room for all blocks");
        let block_of = block_of.0.at(block_of.1);
        let config = grid((n, 1, 1), (512, 1));
        let (k, n) = (k as i32, n as i32);
        launch!(
            self,
            "minus_probabilities_half",
            config,
            &mut logits.0,
            &mut blocks.0,
            &block_of,
            &k,
            &n
        )
    }

    /// The softmax of the first n numbers.
    pub fn softmax(&self, values: &mut Array<f32>, n: usize) -> Result<(), CudaError> {
        assert!(n <= values.len(), "so many numbers");
        let (config, n) = (grid((1, 1, 1), (1024, 1)), n as i32);
        launch!(self, "softmax", config, &mut values.0, &n)
    }

    /// Probabilities ─▶ counts − (Σ counts) · probabilities, the derivatives by the logits.
    pub fn softmax_gradient(
        &self,
        values: &mut Array<f32>,
        counts: &Array<f32>,
        n: usize,
    ) -> Result<(), CudaError> {
        assert!(n <= values.len() && n <= counts.len(), "so many numbers");
        let (config, n) = (grid((1, 1, 1), (1024, 1)), n as i32);
        launch!(self, "softmax_gradient", config, &mut values.0, &counts.0, &n)
    }
}
