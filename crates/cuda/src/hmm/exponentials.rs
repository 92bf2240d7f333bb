//! Transitions without a pass over their logits: a product of matrices whose results are exponentiated at once.

use super::transition::{BlockShape, Blocks};
use crate::device::{Array, CudaError, Device, at_least, for_each, grid, int, kernels};
use crate::shape::Shape;
use cudarc::driver::LaunchConfig;
use half::{bf16, f16};

/// Sizes in the kernels, which have the same names there.
const TILE_ROWS: usize = 192;
const TILE_COLUMNS: usize = 128;
const TILED_DIM: usize = 256;
const TILED_THREADS: usize = 512;

/// Buffers of [`Device::minus_powers`].
#[derive(Debug)]
pub struct PowerBuffers {
    tiles: Array<f16>,
    parts: Array<f32>,
}

impl PowerBuffers {
    /// Empty buffers, which grow when they are used.
    pub fn new(device: &Device) -> Result<PowerBuffers, CudaError> {
        Ok(PowerBuffers { tiles: device.zeros(1)?, parts: device.zeros(1)? })
    }
}

impl Device {
    /// Whether [`Device::minus_powers`] can compute transitions to n states with vectors of `dim` numbers. The device must
    /// have a compute capability of 9.0.
    pub fn has_powers(&self, n: usize, dim: usize) -> bool {
        self.has_tiles && dim == TILED_DIM && n.is_multiple_of(TILE_COLUMNS)
    }

    /// Minus the transition probabilities from `n_from` states to n states in bf16, times a number per row, which is written to
    /// `sums`. The logits are products of the vectors `from` and `to`.
    ///
    /// Logits that exceed the largest one of 128 columns at equal distances by more than 83 are clamped.
    ///
    /// # Panics
    /// Unless [`Device::has_powers`], and if an array is too short.
    pub fn minus_powers(
        &self,
        (powers, sums): (&mut Array<bf16>, &mut Array<f32>),
        (from, to): (&Array<f16>, &Array<f16>),
        PowerBuffers { tiles, parts }: &mut PowerBuffers,
        Shape { rows: n_from, columns: n }: Shape,
    ) -> Result<(), CudaError> {
        assert!(self.has_powers(n, TILED_DIM), "the device cannot compute powers of {n} states");
        if n_from == 0 || n == 0 {
            return Ok(());
        }
        at_least("powers", powers.len(), n_from * n);
        at_least("sums", sums.len(), n_from);
        at_least("from", from.len(), n_from * TILED_DIM);
        at_least("to", to.len(), n * TILED_DIM);
        let n_columns = n / TILE_COLUMNS;
        let n_tiles = n_from.div_ceil(TILE_ROWS) * n_columns;
        let n_own = n_tiles.div_ceil(self.n_processors);
        // All columns and a sample.
        let n_tiled = n + TILE_COLUMNS;
        self.reserve(tiles, n_tiled * TILED_DIM)?;
        // The thread blocks of a row of tiles that begin in it, and one that began before.
        self.reserve(parts, (n_columns.div_ceil(n_own) + 1) * n_from)?;
        let config = for_each(n_tiled * TILED_DIM / 8);
        kernels::tile_columns(self, config, tiles.all_mut(), to.all(), int(n))?;
        let config = LaunchConfig {
            shared_mem_bytes: kernels::TILED_MEMORY,
            ..grid((n_tiles.div_ceil(n_own), 1, 1), (TILED_THREADS, 1))
        };
        let [rows, columns, own] = [n_from, n, n_own].map(int);
        kernels::minus_powers(
            self,
            config,
            powers.all_mut(),
            parts.all_mut(),
            from.all(),
            tiles.all(),
            rows,
            columns,
            own,
        )?;
        let config = one_each(n_from);
        kernels::add_parts(self, config, sums.all_mut(), parts.all(), rows, columns, own)
    }

    /// The probabilities of blocks of k of n states, from `n_from` rows of minus powers and their sums.
    pub fn gather_powers(
        &self,
        out: &mut Array<f32>,
        (powers, sums): (&Array<bf16>, &Array<f32>),
        blocks: &Blocks<'_>,
        n_from: usize,
        shape: BlockShape,
    ) -> Result<(), CudaError> {
        let BlockShape { k, n } = shape;
        if blocks.len() == 0 {
            return Ok(());
        }
        blocks.check(shape);
        at_least("out", out.len(), blocks.len() * k * k);
        at_least("powers", powers.len(), n_from * n);
        at_least("sums", sums.len(), n_from);
        kernels::gather_powers(
            self,
            blocks.grid(k),
            out.all_mut(),
            powers.all(),
            sums.all(),
            blocks.ints.at(blocks.from.clone()),
            blocks.ints.at(blocks.to.clone()),
            int(k),
            int(n),
        )
    }

    /// Expected departures divided by the sums of rows, for the first n states.
    pub fn row_factors(
        &self,
        factors: &mut Array<f32>,
        (left, sums): (&Array<f32>, &Array<f32>),
        n: usize,
    ) -> Result<(), CudaError> {
        at_least("factors", factors.len(), n);
        at_least("left", left.len(), n);
        at_least("sums", sums.len(), n);
        kernels::row_factors(self, one_each(n), factors.all_mut(), left.all(), sums.all(), int(n))
    }
}

/// One thread per row.
fn one_each(n: usize) -> LaunchConfig {
    grid((n.div_ceil(256).max(1), 1, 1), (256, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_kernels() {
        let defined = |name: &str| {
            let begin = format!("#define {name} ");
            let mut lines = include_str!("exponentials.cu").lines();
            lines.find_map(|line| line.strip_prefix(&begin)?.parse::<usize>().ok()).unwrap()
        };
        let n_groups = defined("N_GROUPS");
        let (columns, dim) = (defined("TILE_COLUMNS"), defined("TILED_DIM"));
        let memory = defined("N_STAGES") * columns * dim * 2 + 1024;
        assert_eq!((TILE_ROWS, TILE_COLUMNS, TILED_DIM), (64 * n_groups, columns, dim));
        assert_eq!(TILED_THREADS, 128 * (n_groups + 1));
        assert_eq!(kernels::TILED_MEMORY as usize, memory);
    }
}
