//! Products of compact panels with each other and with small matrices.

use crate::linalg::compact_panel::{BLOCK_ROWS, Block, CompactPanel};
use crate::linalg::panel::{Panel, RightFactor, view, view_mut};
use crate::linalg::quantization::Quantize;
use crate::linalg::sums::{Accumulator, N_PARTS, total};
use latens_math::linalg::{Accum, Mat, MatRef, matmul};
use rayon::prelude::*;

/// Σ Xᵀ X over several panels.
pub(crate) fn gram<T: Quantize>(parts: &[CompactPanel<T>]) -> Mat<f64> {
    let n = parts[0].n_cols();
    let blocks: Vec<Block<'_, T>> =
        parts.iter().flat_map(|part| (0..part.n_blocks()).map(|i| part.block(i))).collect();
    let sums: Vec<Accumulator<T>> = blocks
        .par_chunks(blocks.len().div_ceil(N_PARTS))
        .map(|blocks| {
            let (mut sum, mut scratch) = (Accumulator::new(n, n), vec![T::zero(); BLOCK_ROWS * n]);
            for block in blocks {
                block.read(&mut scratch);
                sum.add_square(view(&scratch, block.n_rows, n, n));
            }
            sum
        })
        .collect();
    let half = total(&sums, 0..n);
    Mat::from_fn(n, n, |i, j| if i >= j { half[(i, j)] } else { half[(j, i)] })
}

/// leftᵀ · right.
pub(crate) fn cross<T: Quantize>(left: &CompactPanel<T>, right: &CompactPanel<T>) -> Mat<f64> {
    let n = right.n_cols();
    let scratch = || vec![T::zero(); BLOCK_ROWS * n];
    sum_blocks(left, n, scratch, |i, scratch, left, sum| {
        right.block(i).read(scratch);
        sum.add(left, view(scratch, left.nrows(), n, n));
    })
}

/// leftᵀ · right for a right factor that is not quantized.
pub(crate) fn cross_with_panel<T: Quantize>(left: &CompactPanel<T>, right: &Panel<T>) -> Mat<f64> {
    sum_blocks(
        left,
        right.n_cols(),
        || (),
        |i, (), left, sum| sum.add(left, right.view().subrows(i * BLOCK_ROWS, left.nrows())),
    )
}

/// The sum of what `add` adds for each block of `left`.
fn sum_blocks<T: Quantize, S>(
    left: &CompactPanel<T>,
    n_cols: usize,
    scratch: impl Fn() -> S + Sync,
    add: impl Fn(usize, &mut S, MatRef<'_, T>, &mut Accumulator<T>) + Sync,
) -> Mat<f64> {
    let (n, n_blocks) = (left.n_cols(), left.n_blocks());
    let length = n_blocks.div_ceil(N_PARTS);
    let parts: Vec<usize> = (0..n_blocks).step_by(length).collect();
    let sums: Vec<Accumulator<T>> = parts
        .into_par_iter()
        .map(|first| {
            let (mut sum, mut values) =
                (Accumulator::new(n, n_cols), vec![T::zero(); BLOCK_ROWS * n]);
            let mut scratch = scratch();
            for i in first..(first + length).min(n_blocks) {
                let block = left.block(i);
                block.read(&mut values);
                add(i, &mut scratch, view(&values, block.n_rows, n, n), &mut sum);
            }
            sum
        })
        .collect();
    total(&sums, 0..n_cols)
}

/// Σ X_i R_i of compact panels X_i and small matrices R_i.
pub(crate) fn times<T: Quantize>(left: &[CompactPanel<T>], right: &[Mat<f64>]) -> Panel<T> {
    let right: Vec<RightFactor<T>> =
        right.iter().map(|right| RightFactor::new(right.as_ref())).collect();
    let (n, n_cols) = (left[0].n_cols(), right[0].view().ncols());
    let mut out = Panel::zeros(left[0].n_rows(), n_cols);
    let stride = out.stride();
    out.par_blocks(BLOCK_ROWS).for_each(|(first, block)| {
        let (n_rows, mut scratch) = (block.len() / stride, vec![T::zero(); BLOCK_ROWS * n]);
        let mut out = view_mut(block, n_rows, n_cols, stride);
        for (i, (left, right)) in left.iter().zip(&right).enumerate() {
            left.block(first / BLOCK_ROWS).read(&mut scratch);
            let accum = if i == 0 { Accum::Replace } else { Accum::Add };
            let left = view(&scratch, n_rows, n, n);
            matmul(out.as_mut(), accum, left, right.view());
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::compact_panel::Shape;
    use crate::linalg::compact_panel::tests::dense;
    use latens_math::Rng;

    fn random<T: Quantize>(n_rows: usize, n_cols: usize, seed: u64) -> CompactPanel<T> {
        let rows = |row: usize, out: &mut [T]| {
            let mut rng = Rng::stream(seed, row as u64);
            out.iter_mut().for_each(|out| *out = T::of(rng.normal()));
        };
        CompactPanel::side_by_side(1, Shape { n_rows, n_cols }, 48, rows).remove(0)
    }

    fn assert_near(found: &Mat<f64>, expected: &Mat<f64>, tolerance: f64) {
        let error = crate::linalg::dense::frobenius(&(found - expected));
        let size = crate::linalg::dense::frobenius(expected);
        assert!(error <= tolerance * size, "{error:e} of {size:e}");
    }

    #[test]
    fn products_agree_with_those_of_the_dequantized_numbers() {
        fn check<T: Quantize>(n_rows: usize, n: usize, tolerance: f64) {
            let (x, y) = (random::<T>(n_rows, n, 1), random::<T>(n_rows, n, 2));
            let (dense_x, dense_y) = (dense(&x), dense(&y));
            let expected = dense_x.transpose() * &dense_y;
            assert_near(&cross(&x, &y), &expected, tolerance);
            let squares = dense_x.transpose() * &dense_x + dense_y.transpose() * &dense_y;
            assert_near(&gram(&[x.clone(), y.clone()]), &squares, tolerance);
            let mut rng = Rng::new(3);
            let right = [0, 1].map(|_| Mat::from_fn(n, n, |_, _| rng.normal()));
            let expected = &dense_x * &right[0] + &dense_y * &right[1];
            let product = times(&[x.clone(), y.clone()], &right);
            let found = Mat::from_fn(n_rows, n, |i, j| product.row(i)[j].wide());
            assert_near(&found, &expected, tolerance);
            assert_near(
                &cross_with_panel(&y, &product),
                &(dense_y.transpose() * &found),
                tolerance,
            );
            let mut scaled = x.clone();
            scaled.times_in_place(&right[0]);
            assert_near(&dense(&scaled), &(&dense_x * &right[0]), tolerance);
        }
        for (n_rows, n) in [(3, 2), (700, 16), (1500, 70)] {
            check::<f64>(n_rows, n, 1e-13);
            check::<f32>(n_rows, n, 3e-5);
        }
    }
}
