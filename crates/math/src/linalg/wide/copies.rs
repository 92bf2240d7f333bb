//! Copies of rows and columns in the order in which the kernel reads them.

use super::kernel::{COLUMNS, LANES, NARROW, ROWS};
use crate::Aligned;
use crate::rows::row;
use faer::MatRef;
use std::arch::x86_64::*;
use std::ops::Range;

/// Whether rows are contiguous and do not overlap.
pub(super) fn is_row_major(matrix: MatRef<'_, f32>) -> bool {
    matrix.col_stride() == 1 && matrix.row_stride() >= matrix.ncols() as isize
}

/// Rows and columns of the squares that are transposed in registers.
const SQUARE: usize = 8;

/// Copies the columns of B in [parts], each row by row. Zeros fill up the last part.
pub(super) fn copy_columns(b: MatRef<'_, f32>, to: &mut Aligned<f32>) {
    let (n_terms, n) = (b.nrows(), b.ncols());
    to.resize(parts(n).last().map_or(0, |part| part.end) * n_terms);
    let mut to = &mut to[..];
    for part in parts(n) {
        let (first, others) = to.split_at_mut(part.len() * n_terms);
        let columns = b.subcols(part.start, part.len().min(n - part.start));
        copy_transposed(columns.transpose(), first, part.len());
        to = others;
    }
}

/// Parts of n columns, each as wide as a block, or a narrow one. The last one may be too wide.
pub(super) fn parts(n: usize) -> impl Iterator<Item = Range<usize>> {
    let n_vectors = n.div_ceil(LANES).max(2);
    // A single vector is not enough for the kernel, so that two narrow blocks replace a wide one.
    let n_narrow = [0, 2, 1][n_vectors % 3];
    let n_wide = (n_vectors - 2 * n_narrow) / 3;
    let widths = [COLUMNS, NARROW].into_iter().zip([n_wide, n_narrow]);
    let widths = widths.flat_map(|(width, n)| std::iter::repeat_n(width, n));
    widths.scan(0, |end, width| {
        *end += width;
        Some(*end - width..*end)
    })
}

/// Copies rows of A in parts of [`ROWS`], each column by column. Zeros fill up the last part.
pub(super) fn copy_rows(a: MatRef<'_, f32>, to: &mut Aligned<f32>) {
    let (n, n_terms) = (a.nrows(), a.ncols());
    to.resize(n.next_multiple_of(ROWS) * n_terms);
    for (part, to) in to.chunks_mut(ROWS * n_terms).enumerate() {
        let first = part * ROWS;
        copy_transposed(a.subrows(first, ROWS.min(n - first)), to, ROWS);
    }
}

/// Copies a matrix column by column. The columns begin `width` numbers apart; those that are shorter end with zeros.
fn copy_transposed(matrix: MatRef<'_, f32>, to: &mut [f32], width: usize) {
    let n = matrix.nrows();
    if !is_row_major(matrix) {
        return crate::vectorized(
            #[inline(always)]
            || copy_lines(matrix.transpose(), to, width),
        );
    }
    to.chunks_exact_mut(width).for_each(|to| to[n..].fill(0.0));
    for first in (0..n).step_by(SQUARE) {
        let rows = matrix.subrows(first, SQUARE.min(n - first));
        let n_done =
            if rows.nrows() == SQUARE { copy_squares(rows, &mut to[first..], width) } else { 0 };
        for i in 0..rows.nrows() {
            for (j, &value) in row(rows, i).iter().enumerate().skip(n_done) {
                to[j * width + first + i] = value;
            }
        }
    }
}

/// Copies rows to every `width` numbers. Short ones end with zeros.
#[inline(always)]
fn copy_lines(rows: MatRef<'_, f32>, to: &mut [f32], width: usize) {
    match width {
        COLUMNS if rows.ncols() == COLUMNS => copy_lines_of::<COLUMNS>(rows, to),
        ROWS if rows.ncols() == ROWS => copy_lines_of::<ROWS>(rows, to),
        _ => {
            for (i, to) in to.chunks_exact_mut(width).enumerate() {
                to[..rows.ncols()].copy_from_slice(row(rows, i));
                to[rows.ncols()..].fill(0.0);
            }
        }
    }
}

/// Copies rows of known length, without calls of a function that would take longer than such short copies.
#[inline(always)]
fn copy_lines_of<const N: usize>(rows: MatRef<'_, f32>, to: &mut [f32]) {
    for (i, to) in to.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        let from: &[f32; N] = row(rows, i).try_into().expect("a row of N numbers");
        *to = *from;
    }
}

/// Copies as many whole squares as the rows have, and returns the number of columns.
#[expect(unsafe_code, reason = "the intrinsics need AVX")]
fn copy_squares(rows: MatRef<'_, f32>, to: &mut [f32], width: usize) -> usize {
    let rows: [&[f32]; SQUARE] = std::array::from_fn(|i| row(rows, i));
    let n_squares = rows[0].len() / SQUARE;
    assert!(std::arch::is_x86_feature_detected!("avx"), "the processor must have AVX");
    for square in 0..n_squares {
        let begin = square * SQUARE;
        let rows =
            rows.map(|row| row[begin..begin + SQUARE].try_into().expect("a row of the square"));
        // SAFETY: the processor has AVX.
        let columns = unsafe { transpose(rows) };
        for (j, column) in columns.iter().enumerate() {
            to[(begin + j) * width..][..SQUARE].copy_from_slice(column);
        }
    }
    n_squares * SQUARE
}

#[target_feature(enable = "avx")]
#[expect(unsafe_code, reason = "loads and stores take pointers")]
fn transpose(rows: [&[f32; SQUARE]; SQUARE]) -> [[f32; SQUARE]; SQUARE] {
    // SAFETY: a row has as many numbers as a vector.
    let rows = rows.map(|row| unsafe { _mm256_loadu_ps(row.as_ptr()) });
    let pairs: [__m256; SQUARE] = std::array::from_fn(|i| {
        let (a, b) = (rows[i / 2 * 2], rows[i / 2 * 2 + 1]);
        if i % 2 == 0 { _mm256_unpacklo_ps(a, b) } else { _mm256_unpackhi_ps(a, b) }
    });
    let fours: [__m256; SQUARE] = std::array::from_fn(|i| {
        let (a, b) = (pairs[i / 4 * 4 + i % 4 / 2], pairs[i / 4 * 4 + i % 4 / 2 + 2]);
        if i % 2 == 0 { _mm256_shuffle_ps::<0x44>(a, b) } else { _mm256_shuffle_ps::<0xEE>(a, b) }
    });
    std::array::from_fn(|i| {
        let (a, b) = (fours[i % 4], fours[i % 4 + 4]);
        let column = if i < 4 {
            _mm256_permute2f128_ps::<0x20>(a, b)
        } else {
            _mm256_permute2f128_ps::<0x31>(a, b)
        };
        let mut values = [0.0; SQUARE];
        // SAFETY: the array has as many numbers as a vector.
        unsafe { _mm256_storeu_ps(values.as_mut_ptr(), column) };
        values
    })
}

/// Prefetches one of `n_parts` parts of a matrix.
#[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
pub(super) fn prefetch(matrix: MatRef<'_, f32>, part: usize, n_parts: usize) {
    let matrix = if is_row_major(matrix) { matrix } else { matrix.transpose() };
    let n = matrix.nrows();
    for i in part * n / n_parts..(part + 1) * n / n_parts {
        for line in row(matrix, i).chunks(LANES) {
            // SAFETY: a prefetch does not read memory and cannot fault, and every x86-64 processor has it.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) }
        }
    }
}
