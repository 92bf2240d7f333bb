//! Rows of numbers: gathering, scattering and summing them, biases and the ReLU.

use super::formats::Derivative;
use crate::device::{Array, CudaError, Device, at_least, for_each, grid, int, kernels, warps};
use crate::shape::Shape;
use cudarc::driver::LaunchConfig;
use half::{bf16, f16};
use std::ops::Range;

/// Consecutive columns of a matrix.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Length of a row of the matrix.
    pub stride: usize,
    /// Index of the first column.
    pub first: usize,
}

impl Columns {
    /// All columns of a matrix with rows of this length.
    pub fn all(stride: usize) -> Columns {
        Columns { stride, first: 0 }
    }

    /// Panics unless these are `dim` columns of `n` rows of an array of `len` elements.
    #[track_caller]
    fn check(self, name: &str, len: usize, Shape { rows: n, columns: dim }: Shape) {
        let Columns { stride, first } = self;
        at_least(name, len, n * stride);
        assert!(
            first + dim <= stride,
            "columns {first}..{} of `{name}` are out of bounds of rows of {stride} elements",
            first + dim
        );
    }
}

/// Some columns of a matrix, in any order.
#[derive(Clone, Copy, Debug)]
pub struct PickedColumns {
    /// Number of columns.
    pub n: usize,
    /// Length of a row of the matrix.
    pub stride: usize,
}

/// Consecutive groups of rows, all of the same size.
#[derive(Clone, Copy, Debug)]
pub struct RowGroups {
    /// Number of groups.
    pub n: usize,
    /// Number of rows per group.
    pub size: usize,
}

impl Device {
    /// Copies the rows `idxs` of a table with `dim` columns to columns of `out`.
    pub fn gather_rows(
        &self,
        (out, columns): (&mut Array<f32>, Columns),
        (table, table_range): (&Array<f32>, Range<usize>),
        (idxs, idx_range): (&Array<u32>, Range<usize>),
        shape: Shape,
    ) -> Result<(), CudaError> {
        let Shape { rows: n, columns: dim } = shape;
        columns.check("out", out.len(), shape);
        at_least("idxs", idx_range.len(), n);
        kernels::gather_rows(
            self,
            warps(n),
            out.all_mut(),
            int(columns.stride),
            int(columns.first),
            table.at(table_range),
            idxs.at(idx_range),
            int(n),
            int(dim),
        )
    }

    /// Adds columns of `rows` to the rows `idxs` of a table with `dim` columns. The indices are distinct.
    pub fn add_to_rows(
        &self,
        (table, table_range): (&mut Array<f32>, Range<usize>),
        (idxs, idx_range): (&Array<u32>, Range<usize>),
        (rows, columns): (&Array<f32>, Columns),
        shape: Shape,
    ) -> Result<(), CudaError> {
        let Shape { rows: n, columns: dim } = shape;
        columns.check("rows", rows.len(), shape);
        at_least("idxs", idx_range.len(), n);
        kernels::add_to_rows(
            self,
            warps(n),
            table.at_mut(table_range),
            idxs.at(idx_range),
            rows.all(),
            int(columns.stride),
            int(columns.first),
            int(n),
            int(dim),
        )
    }

    /// Adds the sum of the rows of each group to the row of a table with `dim` columns that `idxs` has for the group.
    /// The indices are distinct.
    pub fn add_sums_of_groups(
        &self,
        (table, table_range): (&mut Array<f32>, Range<usize>),
        (idxs, idx_range): (&Array<u32>, Range<usize>),
        (rows, columns): (&Array<f32>, Columns),
        groups: RowGroups,
        dim: usize,
    ) -> Result<(), CudaError> {
        let shape = Shape { rows: groups.n * groups.size, columns: dim };
        columns.check("rows", rows.len(), shape);
        at_least("table", table_range.len(), groups.n * dim);
        at_least("idxs", idx_range.len(), groups.n);
        check_n_elements(groups.n * dim);
        kernels::add_sums_of_groups(
            self,
            for_each(groups.n * dim),
            table.at_mut(table_range),
            idxs.at(idx_range),
            rows.all(),
            int(columns.stride),
            int(columns.first),
            int(groups.size),
            int(groups.n),
            int(dim),
        )
    }

    /// Copies the rows `idxs[rows]` and the columns `idxs[..n]` of a table to `out`. The rows of the table have
    /// `stride` elements.
    pub fn gather_square(
        &self,
        out: &mut Array<f32>,
        (table, table_range): (&Array<f32>, Range<usize>),
        idxs: &Array<u32>,
        rows: Range<usize>,
        PickedColumns { n, stride }: PickedColumns,
    ) -> Result<(), CudaError> {
        at_least("idxs", idxs.len(), n);
        at_least("out", out.len(), rows.len() * n);
        if rows.is_empty() {
            return Ok(());
        }
        kernels::gather_square(
            self,
            one_block_per_row(rows.len(), n),
            out.all_mut(),
            table.at(table_range),
            idxs.at(rows),
            idxs.all(),
            int(n),
            int(stride),
        )
    }

    /// Adds values to the rows `idxs[..n_rows]` and the columns `idxs[..n]` of a table. The indices are distinct, and the
    /// rows of the table have `stride` elements.
    pub fn add_to_square(
        &self,
        (table, table_range): (&mut Array<f32>, Range<usize>),
        values: &Array<f32>,
        idxs: &Array<u32>,
        n_rows: usize,
        PickedColumns { n, stride }: PickedColumns,
    ) -> Result<(), CudaError> {
        at_least("idxs", idxs.len(), n.max(n_rows));
        at_least("values", values.len(), n_rows * n);
        if n_rows == 0 {
            return Ok(());
        }
        kernels::add_to_square(
            self,
            one_block_per_row(n_rows, n),
            table.at_mut(table_range),
            values.all(),
            idxs.all(),
            int(n),
            int(stride),
        )
    }

    /// x ─▶ D(ReLU(x + bias)) for n rows, where D is dropout with this rate and seed.
    pub fn bias_relu(
        &self,
        x: &mut Array<f32>,
        (bias, bias_range): (&Array<f32>, Range<usize>),
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        let dim = bias_range.len();
        at_least("x", x.len(), n * dim);
        check_n_elements(n * dim);
        let (config, bias) = (for_each(n * dim), bias.at(bias_range));
        kernels::bias_relu(self, config, x.all_mut(), bias, int(n), int(dim), rate, seed)
    }

    /// The same as [`Device::bias_relu`] in half precision. `rounded` becomes the result in bf16.
    pub fn bias_relu_half(
        &self,
        (x, rounded): (&mut Array<f16>, &mut Array<bf16>),
        (bias, bias_range): (&Array<f32>, Range<usize>),
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        let dim = bias_range.len();
        at_least("x", x.len(), n * dim);
        at_least("rounded", rounded.len(), n * dim);
        check_n_elements(n * dim);
        let (config, bias) = (for_each(n * dim / 4), bias.at(bias_range));
        let (x, rounded) = (x.all_mut(), rounded.all_mut());
        kernels::bias_relu_half(self, config, x, rounded, bias, int(n), int(dim), rate, seed)
    }

    /// Derivatives with respect to the input of a ReLU with output y, for n rows: `scale` · `d_y` where y > 0, else 0.
    /// Their column sums are added to the gradient of the bias. `partial` is scratch.
    pub fn relu_backward<T: Derivative>(
        &self,
        d_z: &mut Array<T>,
        (y, d_y): (&Array<T>, &Array<f32>),
        n: usize,
        scale: f32,
        (gradient, bias): (&mut Array<f32>, Range<usize>),
        partial: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let (dim, n_parts) = (bias.len(), n.div_ceil(ROWS_OF_PART));
        at_least("d_z", d_z.len(), n * dim);
        at_least("y", y.len(), n * dim);
        at_least("d_y", d_y.len(), n * dim);
        if n == 0 {
            return Ok(());
        }
        self.reserve(partial, n_parts * dim)?;
        T::RELU_BACKWARD(
            self,
            grid((n_parts, 1, 1), (64, 4)),
            d_z.all_mut(),
            partial.all_mut(),
            y.all(),
            d_y.all(),
            int(n),
            int(dim),
            scale,
        )?;
        self.add_column_sums((gradient, bias), partial, n_parts, Columns::all(dim))
    }

    /// Adds the sums over n rows of some columns of x to `out`. There are as many columns as elements of `out`.
    pub fn add_column_sums(
        &self,
        (out, out_range): (&mut Array<f32>, Range<usize>),
        x: &Array<f32>,
        n: usize,
        columns: Columns,
    ) -> Result<(), CudaError> {
        let dim = out_range.len();
        columns.check("x", x.len(), Shape { rows: n, columns: dim });
        kernels::add_column_sums(
            self,
            grid((dim.div_ceil(32), 1, 1), (32, 32)),
            out.at_mut(out_range),
            x.all(),
            int(n),
            int(columns.stride),
            int(columns.first),
            int(dim),
        )
    }

    /// Multiplies each of n rows by its factor.
    pub fn scale_rows(
        &self,
        x: &mut Array<f32>,
        factors: &Array<f32>,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        at_least("x", x.len(), n * dim);
        at_least("factors", factors.len(), n);
        check_n_elements(n * dim);
        let config = for_each(n * dim / 4);
        kernels::scale_rows(self, config, x.all_mut(), factors.all(), int(n), int(dim))
    }

    /// Multiplies each of n rows by its factor and rounds the products to bf16.
    pub fn scaled_to_bf16(
        &self,
        out: &mut Array<bf16>,
        x: &Array<f32>,
        factors: &Array<f32>,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        at_least("out", out.len(), n * dim);
        at_least("x", x.len(), n * dim);
        at_least("factors", factors.len(), n);
        check_n_elements(n * dim);
        let (config, out, factors) = (for_each(n * dim / 4), out.all_mut(), factors.all());
        kernels::scaled_to_bf16(self, config, out, x.all(), factors, int(n), int(dim))
    }
}

/// Number of rows whose column sums a block of threads computes. The kernels define the same constant.
pub(super) const ROWS_OF_PART: usize = 16;

/// Panics if a kernel that numbers the elements of its arrays in 32 bits cannot take this many.
#[track_caller]
pub(super) fn check_n_elements(n: usize) {
    assert!(n < 1 << 31, "the number of elements must be below 2^31, got {n}");
}

fn one_block_per_row(n_rows: usize, n: usize) -> LaunchConfig {
    grid((n_rows, 1, 1), (n.next_multiple_of(32).clamp(32, 512), 1))
}
