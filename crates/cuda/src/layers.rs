//! Layers of networks: rows of numbers in, rows of numbers out.

use crate::device::{for_each, grid, launch};
use crate::{Array, CudaError, Device};
use cudarc::driver::PushKernelArg;
use std::ops::Range;

/// Some columns of rows of `stride` numbers each.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// The length of a row.
    pub stride: usize,
    /// The first column.
    pub first: usize,
}

impl Columns {
    /// All columns of rows of this length.
    pub fn all(stride: usize) -> Columns {
        Columns { stride, first: 0 }
    }
}

/// Rows in groups of the same size, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct RowGroups {
    /// How many groups there are.
    pub n: usize,
    /// How many rows are in each.
    pub size: usize,
}

impl Device {
    /// Copies the rows `idxs` of a table of `dim` columns, which lies at `table` of an array, to columns of `out`.
    pub fn gather_rows(
        &self,
        out: (&mut Array<f32>, Columns),
        table: (&Array<f32>, Range<usize>),
        idxs: (&Array<u32>, Range<usize>),
        (n, dim): (usize, usize),
    ) -> Result<(), CudaError> {
        let (out, Columns { stride, first }) = out;
        assert!(
            first + dim <= stride && n * stride <= out.len() && n <= idxs.1.len(),
            "whole rows"
        );
        let table = table.0.at(table.1);
        let config = for_each(n * dim);
        let (stride, first, n, dim) = (stride as i32, first as i32, n as i32, dim as i32);
        let idxs = idxs.0.at(idxs.1);
        launch!(self, "gather_rows", config, &mut out.0, &stride, &first, &table, &idxs, &n, &dim)
    }

    /// Adds columns of rows to the rows `idxs` of a table, which are all different.
    pub fn add_to_rows(
        &self,
        table: (&mut Array<f32>, Range<usize>),
        idxs: (&Array<u32>, Range<usize>),
        rows: (&Array<f32>, Columns),
        (n, dim): (usize, usize),
    ) -> Result<(), CudaError> {
        let (rows, Columns { stride, first }) = rows;
        assert!(
            first + dim <= stride && n * stride <= rows.len() && n <= idxs.1.len(),
            "whole rows"
        );
        let mut table = table.0.at_mut(table.1);
        let config = for_each(n * dim);
        let (stride, first, n, dim) = (stride as i32, first as i32, n as i32, dim as i32);
        let idxs = idxs.0.at(idxs.1);
        launch!(self, "add_to_rows", config, &mut table, &idxs, &rows.0, &stride, &first, &n, &dim)
    }

    /// Adds the sum of each group of rows to a row of a table.
    pub fn add_sums_of_groups(
        &self,
        table: (&mut Array<f32>, Range<usize>),
        rows: (&Array<f32>, Columns),
        groups: RowGroups,
        dim: usize,
    ) -> Result<(), CudaError> {
        let (rows, Columns { stride, first }) = rows;
        assert!(first + dim <= stride && groups.n * groups.size * stride <= rows.len(), "rows");
        assert!(groups.n * dim <= table.1.len(), "a row for each group");
        let mut table = table.0.at_mut(table.1);
        let config = for_each(groups.n * dim);
        let (stride, first, dim) = (stride as i32, first as i32, dim as i32);
        let (n, size) = (groups.n as i32, groups.size as i32);
        launch!(
            self,
            "add_sums_of_groups",
            config,
            &mut table,
            &rows.0,
            &stride,
            &first,
            &size,
            &n,
            &dim
        )
    }

    /// Copies some rows and columns of a table, whose rows are `stride` long, to `out`: those of the numbers `rows` and 0 to
    /// n of `idxs`.
    pub fn gather_square(
        &self,
        out: &mut Array<f32>,
        table: (&Array<f32>, Range<usize>),
        idxs: &Array<u32>,
        rows: Range<usize>,
        (n, stride): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(n <= idxs.len() && rows.len() * n <= out.len(), "whole rows");
        let (config, table) = (of_rows(rows.len(), n), table.0.at(table.1));
        let (n, stride) = (n as i32, stride as i32);
        let rows = idxs.at(rows);
        launch!(self, "gather_square", config, &mut out.0, &table, &rows, &idxs.0, &n, &stride)
    }

    /// Adds n × n values to the rows and columns `idxs` of a table, which are all different.
    pub fn add_to_square(
        &self,
        table: (&mut Array<f32>, Range<usize>),
        values: &Array<f32>,
        idxs: &Array<u32>,
        (n, stride): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(n <= idxs.len() && n * n <= values.len(), "whole rows");
        let (config, mut table) = (of_rows(n, n), table.0.at_mut(table.1));
        let (n, stride) = (n as i32, stride as i32);
        launch!(self, "add_to_square", config, &mut table, &values.0, &idxs.0, &n, &stride)
    }

    /// x ─▶ D(ReLU(x + bias)) of n rows; D drops numbers with probability `rate`, by the seed.
    pub fn bias_relu(
        &self,
        x: &mut Array<f32>,
        bias: (&Array<f32>, Range<usize>),
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        let dim = bias.1.len();
        assert!(n * dim <= x.len(), "whole rows");
        let bias = bias.0.at(bias.1);
        assert!(n * dim < 1 << 31, "so many that 32 bits count them");
        let config = for_each(n * dim);
        let (n, dim) = (n as i32, dim as i32);
        launch!(self, "bias_relu", config, &mut x.0, &bias, &n, &dim, &rate, &seed)
    }

    /// The derivative before a ReLU with value y, of n rows: `scale` · d_y where y > 0; and its column sums, which are
    /// added to `bias`. `partial` is scratch.
    pub fn relu_backward(
        &self,
        d_z: &mut Array<f32>,
        (y, d_y): (&Array<f32>, &Array<f32>),
        n: usize,
        scale: f32,
        (gradient, bias): (&mut Array<f32>, Range<usize>),
        partial: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let (dim, n_parts) = (bias.len(), n.div_ceil(ROWS_OF_PART));
        for array in [&*d_z, y, d_y] {
            assert!(n * dim <= array.len(), "whole rows");
        }
        if n == 0 {
            return Ok(());
        }
        self.reserve(partial, n_parts * dim)?;
        let config = grid((n_parts.max(1), 1, 1), (64, 4));
        let (n, dim) = (n as i32, dim as i32);
        launch!(
            self,
            "relu_backward",
            config,
            &mut d_z.0,
            &mut partial.0,
            &y.0,
            &d_y.0,
            &n,
            &dim,
            &scale
        )?;
        self.add_column_sums((gradient, bias.clone()), partial, n_parts, Columns::all(bias.len()))
    }

    /// The layer norm of a + b; keeps what its backward pass needs.
    pub fn norm_of_sum(
        &self,
        out: &mut Array<f32>,
        (normalised, inverse_deviation): (&mut Array<f32>, &mut Array<f32>),
        (a, b): (&Array<f32>, &Array<f32>),
        (weights, gain, offset): (&Array<f32>, Range<usize>, Range<usize>),
        n: usize,
    ) -> Result<(), CudaError> {
        let dim = gain.len();
        for array in [&*out, normalised, a, b] {
            assert!(n * dim <= array.len(), "whole rows");
        }
        assert!(n <= inverse_deviation.len() && offset.len() == dim, "a deviation for each row");
        let (gain, offset) = (weights.at(gain), weights.at(offset));
        let config = warps(n);
        let (n, dim) = (n as i32, dim as i32);
        launch!(
            self,
            "norm_of_sum",
            config,
            &mut out.0,
            &mut normalised.0,
            &mut inverse_deviation.0,
            &a.0,
            &b.0,
            &gain,
            &offset,
            &n,
            &dim
        )
    }

    /// The derivative by what was normalised, of n rows; those of gain and offset are added. `partial` is scratch.
    pub fn norm_backward(
        &self,
        d_x: &mut Array<f32>,
        d_y: &Array<f32>,
        (normalised, inverse_deviation): (&Array<f32>, &Array<f32>),
        (weights, gradient, gain, offset): (
            &Array<f32>,
            &mut Array<f32>,
            Range<usize>,
            Range<usize>,
        ),
        n: usize,
        partial: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        /// Warps of a part, of which each has sums of its own; few for long rows, for which there is less room.
        const WARPS: usize = 8;
        const ROOM: usize = 48 << 10;
        let (dim, n_parts) = (gain.len(), n.div_ceil(ROWS_OF_PART));
        for array in [&*d_x, d_y, normalised] {
            assert!(n * dim <= array.len(), "whole rows");
        }
        assert!(n <= inverse_deviation.len(), "a deviation for each row");
        let room_of_warp = 2 * dim * size_of::<f32>();
        let n_warps = WARPS.min(ROOM / room_of_warp);
        assert!(dim <= MAX_DIM, "rows of at most so many numbers");
        if n == 0 {
            return Ok(());
        }
        self.reserve(partial, n_parts * 2 * dim)?;
        let gains = weights.at(gain.clone());
        let mut config = grid((n_parts.max(1), 1, 1), (32 * n_warps, 1));
        config.shared_mem_bytes = (n_warps * room_of_warp) as u32;
        let (n, dim_of) = (n as i32, dim as i32);
        launch!(
            self,
            "norm_backward",
            config,
            &mut d_x.0,
            &mut partial.0,
            &d_y.0,
            &normalised.0,
            &inverse_deviation.0,
            &gains,
            &n,
            &dim_of
        )?;
        for (out, first) in [(gain, 0), (offset, dim)] {
            let columns = Columns { stride: 2 * dim, first };
            self.add_column_sums((gradient, out), partial, n_parts, columns)?;
        }
        Ok(())
    }

    /// Adds the sums of some columns of n rows.
    ///
    /// # Panics
    /// If there are not so many rows or columns.
    pub fn add_column_sums(
        &self,
        out: (&mut Array<f32>, Range<usize>),
        x: &Array<f32>,
        n: usize,
        columns: Columns,
    ) -> Result<(), CudaError> {
        let dim = out.1.len();
        assert!(n * columns.stride <= x.len() && columns.first + dim <= columns.stride, "rows");
        let mut out = out.0.at_mut(out.1);
        let config = grid((dim.div_ceil(32), 1, 1), (32, 32));
        let (n, dim) = (n as i32, dim as i32);
        let (stride, first) = (columns.stride as i32, columns.first as i32);
        launch!(self, "add_column_sums", config, &mut out, &x.0, &n, &stride, &first, &dim)
    }

    /// The nearest number of half precision of each.
    pub fn to_half(&self, out: &mut Array<u16>, x: &Array<f32>, n: usize) -> Result<(), CudaError> {
        assert!(n <= out.len() && n <= x.len(), "a place for each number");
        let (config, n) = (for_each(n), n as i64);
        launch!(self, "to_half", config, &mut out.0, &x.0, &n)
    }

    /// The nearest bf16 of each of n rows times a factor of its own.
    pub fn scaled_to_bf16(
        &self,
        out: &mut Array<u16>,
        x: &Array<f32>,
        factors: &Array<f32>,
        (n, dim): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(n * dim <= out.len().min(x.len()) && n <= factors.len(), "whole rows");
        let (config, n, dim) = (for_each(n * dim), n as i32, dim as i32);
        launch!(self, "scaled_to_bf16", config, &mut out.0, &x.0, &factors.0, &n, &dim)
    }

    /// Multiplies each of n rows by a factor of its own.
    pub fn scale_rows(
        &self,
        x: &mut Array<f32>,
        factors: &Array<f32>,
        (n, dim): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(n * dim <= x.len() && n <= factors.len(), "whole rows");
        let (config, n, dim) = (for_each(n * dim), n as i32, dim as i32);
        launch!(self, "scale_rows", config, &mut x.0, &factors.0, &n, &dim)
    }

    /// The nearest bf16 of each number.
    pub fn to_bf16(&self, out: &mut Array<u16>, x: &Array<f32>, n: usize) -> Result<(), CudaError> {
        assert!(n <= out.len() && n <= x.len(), "a place for each number");
        let (config, n) = (for_each(n), n as i64);
        launch!(self, "to_bf16", config, &mut out.0, &x.0, &n)
    }
}

/// The longest row of a norm: two rows of sums lie in the 48 KiB that a part has.
pub const MAX_DIM: usize = 6_144;

/// How many rows' sums are made at a time; the kernels have the same number.
const ROWS_OF_PART: usize = 16;

/// A block of threads for each row of n numbers.
fn of_rows(n_rows: usize, n: usize) -> cudarc::driver::LaunchConfig {
    grid((n_rows.max(1), 1, 1), (n.next_multiple_of(32).clamp(32, 512), 1))
}

/// A warp for each row.
pub(crate) fn warps(n: usize) -> cudarc::driver::LaunchConfig {
    grid((n.div_ceil(8).max(1), 1, 1), (256, 1))
}
