//! Expected counts of a whole text, and the probabilities that maximize their likelihood.

use super::emission::Emissions;
use super::transition::{BlockShape, Blocks};
use crate::device::{Array, CudaError, Device, at_least, for_each, grid, int, kernels};
use crate::shape::Shape;
use std::ops::Range;

impl Device {
    /// Copies blocks of an n × n matrix of transition probabilities to `out`, with a lower bound of 10⁻³⁰.
    pub fn copy_blocks(
        &self,
        out: &mut Array<f32>,
        transition: &Array<f32>,
        blocks: &Blocks<'_>,
        shape: BlockShape,
    ) -> Result<(), CudaError> {
        let BlockShape { k, n } = shape;
        blocks.check(shape);
        at_least("out", out.len(), blocks.len() * k * k);
        at_least("transition", transition.len(), n * n);
        if blocks.len() == 0 {
            return Ok(());
        }
        kernels::copy_blocks(
            self,
            blocks.grid(k),
            out.all_mut(),
            transition.all(),
            blocks.ints.at(blocks.from.clone()),
            blocks.ints.at(blocks.to.clone()),
            int(k),
            int(n),
        )
    }

    /// Adds R ∘ a to an n × n matrix of counts, where `ratios` has R for blocks. All blocks are distinct.
    pub fn add_transitions(
        &self,
        counts: &mut Array<f64>,
        (ratios, transition): (&Array<f32>, &Array<f32>),
        blocks: &Blocks<'_>,
        shape: BlockShape,
    ) -> Result<(), CudaError> {
        let BlockShape { k, n } = shape;
        blocks.check(shape);
        at_least("counts", counts.len(), n * n);
        at_least("ratios", ratios.len(), blocks.len() * k * k);
        at_least("transition", transition.len(), n * n);
        if blocks.len() == 0 {
            return Ok(());
        }
        kernels::add_transitions(
            self,
            blocks.grid(k),
            counts.all_mut(),
            ratios.all(),
            transition.all(),
            blocks.ints.at(blocks.from.clone()),
            blocks.ints.at(blocks.to.clone()),
            int(k),
            int(n),
        )
    }

    /// Adds rows of k numbers to the counts of slots. `count_of` has the row of each slot, or `u32::MAX`.
    pub fn add_emissions(
        &self,
        counts: &mut Array<f64>,
        rows: &Array<f32>,
        (count_of, range): (&Array<u32>, Range<usize>),
        k: usize,
    ) -> Result<(), CudaError> {
        let n_slots = range.len();
        at_least("counts", counts.len(), n_slots * k);
        if n_slots == 0 {
            return Ok(());
        }
        kernels::add_emissions(
            self,
            grid((n_slots, 1, 1), (k.next_multiple_of(32).min(512), 1)),
            counts.all_mut(),
            rows.all(),
            count_of.at(range),
            int(k),
        )
    }

    /// Adds the first n values to the first n counts.
    pub fn add_values(
        &self,
        counts: &mut Array<f64>,
        values: &Array<f32>,
        n: usize,
    ) -> Result<(), CudaError> {
        at_least("counts", counts.len(), n);
        at_least("values", values.len(), n);
        kernels::add_values(self, for_each(n), counts.all_mut(), values.all(), int(n))
    }

    /// Adds the sum of the first n values to the first element of `total`.
    pub fn add_sum(
        &self,
        total: &mut Array<f64>,
        values: &Array<f64>,
        n: usize,
    ) -> Result<(), CudaError> {
        at_least("total", total.len(), 1);
        at_least("values", values.len(), n);
        kernels::add_sum(self, grid((1, 1, 1), (512, 1)), total.all_mut(), values.all(), int(n))
    }

    /// Normalizes each row of n counts plus `prior` to a sum of 1. Rows of `out` without any counts stay as they are.
    pub fn share_rows(
        &self,
        out: &mut Array<f32>,
        counts: &Array<f64>,
        prior: f64,
        Shape { rows, columns: n }: Shape,
    ) -> Result<(), CudaError> {
        at_least("out", out.len(), rows * n);
        at_least("counts", counts.len(), rows * n);
        let config = grid((rows, 1, 1), (512, 1));
        kernels::share_rows(self, config, out.all_mut(), counts.all(), prior, int(n))
    }
}

impl Emissions {
    /// Normalizes the counts of the words of a cluster, plus `prior`, to a sum of 1 for each of its k states. States of
    /// `out` without any counts stay as they are.
    pub fn share(
        &self,
        device: &Device,
        out: &mut Array<f32>,
        counts: &Array<f64>,
        prior: f64,
        k: usize,
    ) -> Result<(), CudaError> {
        at_least("out", out.len(), self.n_slots * k);
        at_least("counts", counts.len(), self.n_slots * k);
        if self.stride > 0 {
            at_least("the bits of a slot", 32 * self.stride, self.n_clusters * k);
        }
        kernels::share_columns(
            device,
            grid((self.n_clusters, k.div_ceil(32), 1), (32, 32)),
            out.all_mut(),
            counts.all(),
            self.begins.all(),
            self.allowed.all(),
            int(self.stride),
            prior,
            int(k),
        )
    }
}
