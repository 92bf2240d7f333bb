//! Expected counts of a whole text, and the probabilities that make them most likely.

use crate::device::{for_each, grid, launch};
use crate::{Array, Blocks, CudaError, Device, Emissions};
use cudarc::driver::{LaunchConfig, PushKernelArg};
use std::ops::Range;

impl Device {
    /// The blocks of an n × n matrix of probabilities, of which none is taken for less than 10⁻³⁰.
    pub fn copy_blocks(
        &self,
        out: &mut Array<f32>,
        transition: &Array<f32>,
        blocks: &Blocks<'_>,
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        let Some(config) = of_blocks(blocks, out.len(), transition.len(), (k, n)) else {
            return Ok(());
        };
        let (from, to) = (blocks.ints.at(blocks.from.clone()), blocks.ints.at(blocks.to.clone()));
        let (k, n) = (k as i32, n as i32);
        launch!(self, "copy_blocks", config, &mut out.0, &transition.0, &from, &to, &k, &n)
    }

    /// Adds R ∘ a to an n × n matrix of counts, where `ratios` has R of blocks, all of different clusters.
    pub fn add_transitions(
        &self,
        counts: &mut Array<f64>,
        (ratios, transition): (&Array<f32>, &Array<f32>),
        blocks: &Blocks<'_>,
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        let len = counts.len().min(transition.len());
        let Some(config) = of_blocks(blocks, ratios.len(), len, (k, n)) else {
            return Ok(());
        };
        let (from, to) = (blocks.ints.at(blocks.from.clone()), blocks.ints.at(blocks.to.clone()));
        let (k, n) = (k as i32, n as i32);
        let values = (&ratios.0, &transition.0);
        let out = &mut counts.0;
        launch!(self, "add_transitions", config, out, values.0, values.1, &from, &to, &k, &n)
    }

    /// Adds rows of k numbers to those of slots: `count_of` has the row of each slot, or `u32::MAX`.
    pub fn add_emissions(
        &self,
        counts: &mut Array<f64>,
        rows: &Array<f32>,
        count_of: (&Array<u32>, Range<usize>),
        k: usize,
    ) -> Result<(), CudaError> {
        let n_slots = count_of.1.len();
        assert!(n_slots * k <= counts.len(), "k numbers a slot");
        let config = grid((n_slots.max(1), 1, 1), (k.next_multiple_of(32).min(512), 1));
        let (count_of, k) = (count_of.0.at(count_of.1), k as i32);
        launch!(self, "add_emissions", config, &mut counts.0, &rows.0, &count_of, &k)
    }

    /// Adds n numbers to as many counts.
    pub fn add_values(
        &self,
        counts: &mut Array<f64>,
        values: &Array<f32>,
        n: usize,
    ) -> Result<(), CudaError> {
        assert!(n <= counts.len().min(values.len()), "so many numbers");
        let (config, n) = (for_each(n), n as i32);
        launch!(self, "add_values", config, &mut counts.0, &values.0, &n)
    }

    /// Adds the sum of n numbers to the first of `total`.
    pub fn add_sum(
        &self,
        total: &mut Array<f64>,
        values: &Array<f64>,
        n: usize,
    ) -> Result<(), CudaError> {
        assert!(n <= values.len(), "so many numbers");
        let (config, n) = (grid((1, 1, 1), (512, 1)), n as i32);
        launch!(self, "add_sum", config, &mut total.0, &values.0, &n)
    }

    /// Rows of shares of n counts, each with `prior` more; a row without any stays as it is.
    pub fn share_rows(
        &self,
        out: &mut Array<f32>,
        counts: &Array<f64>,
        prior: f64,
        (n_rows, n): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(n_rows * n <= out.len().min(counts.len()), "whole rows");
        let (config, n) = (grid((n_rows, 1, 1), (512, 1)), n as i32);
        launch!(self, "share_rows", config, &mut out.0, &counts.0, &prior, &n)
    }
}

impl Emissions {
    /// For each state of a cluster the shares of the counts of its words, as [`Device::share_rows`].
    pub fn share(
        &self,
        device: &Device,
        out: &mut Array<f32>,
        counts: &Array<f64>,
        prior: f64,
        k: usize,
    ) -> Result<(), CudaError> {
        assert!(self.n_slots * k <= out.len().min(counts.len()), "k numbers a slot");
        let config = grid((self.n_clusters, k.div_ceil(32), 1), (32, 32));
        let (k, stride) = (k as i32, self.stride as i32);
        let (begins, allowed) = (&self.begins.0, &self.allowed.0);
        launch!(
            device,
            "share_columns",
            config,
            &mut out.0,
            &counts.0,
            begins,
            allowed,
            &stride,
            &prior,
            &k
        )
    }
}

/// Threads for blocks in an array of `n_numbers`, of a matrix in one of `n_pairs`; none if there are no blocks.
fn of_blocks(
    blocks: &Blocks<'_>,
    n_numbers: usize,
    n_pairs: usize,
    (k, n): (usize, usize),
) -> Option<LaunchConfig> {
    let n_blocks = blocks.from.len();
    assert!(n_blocks == blocks.to.len() && n_blocks * k * k <= n_numbers, "all blocks");
    assert!(n * n <= n_pairs, "all pairs of states");
    let rows = k.min(if n_blocks < 64 { 512 } else { 32 });
    let threads = (k.next_multiple_of(32).min(512), 1);
    (n_blocks > 0).then(|| grid((n_blocks, rows, 1), threads))
}
