//! Layers of networks: rows of numbers in, rows of numbers out.

use crate::device::{for_each, grid, launch};
use crate::{Array, CudaError, Derivative, Device};
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
        let config = warps(n);
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
        let config = warps(n);
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
    pub fn relu_backward<T: Derivative>(
        &self,
        d_z: &mut Array<T>,
        (y, d_y): (&Array<f32>, &Array<f32>),
        n: usize,
        scale: f32,
        (gradient, bias): (&mut Array<f32>, Range<usize>),
        partial: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let (dim, n_parts) = (bias.len(), n.div_ceil(ROWS_OF_PART));
        assert!(n * dim <= d_z.len().min(y.len()).min(d_y.len()), "whole rows");
        if n == 0 {
            return Ok(());
        }
        self.reserve(partial, n_parts * dim)?;
        let config = grid((n_parts, 1, 1), (64, 4));
        let (n, dim) = (n as i32, dim as i32);
        launch!(
            self,
            T::RELU_BACKWARD,
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
        let (config, n) = (for_each(n / 4), n as i64);
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
        let (config, n, dim) = (for_each(n * dim / 4), n as i32, dim as i32);
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
        let (config, n, dim) = (for_each(n * dim / 4), n as i32, dim as i32);
        launch!(self, "scale_rows", config, &mut x.0, &factors.0, &n, &dim)
    }

    /// The nearest bf16 of each number of a part of an array.
    pub fn to_bf16(
        &self,
        out: &mut Array<u16>,
        x: (&Array<f32>, Range<usize>),
    ) -> Result<(), CudaError> {
        let n = x.1.len();
        assert!(n <= out.len(), "a place for each number");
        let (config, n, x) = (for_each(n / 4), n as i64, x.0.at(x.1));
        launch!(self, "to_bf16", config, &mut out.0, &x, &n)
    }
}

/// How many rows' sums are made at a time; the kernels have the same number.
pub(crate) const ROWS_OF_PART: usize = 16;

/// A block of threads for each row of n numbers.
fn of_rows(n_rows: usize, n: usize) -> cudarc::driver::LaunchConfig {
    grid((n_rows.max(1), 1, 1), (n.next_multiple_of(32).clamp(32, 512), 1))
}

/// A warp for each row.
pub(crate) fn warps(n: usize) -> cudarc::driver::LaunchConfig {
    grid((n.div_ceil(8).max(1), 1, 1), (256, 1))
}
