//! Sizes that keep learning within the memory of four matrices of words by `dim` in single precision, that is
//! 16 · `dim` bytes per word, besides the counts.
//!
//! The free choices are the width of strips, and the number of oversampled columns for the initial model.

use crate::linalg::panel::stride;
use latens_math::Strip;

/// Bytes of a number in single precision.
const SINGLE: usize = size_of::<f32>();

/// Bytes of a quantized number, and of the scale of a row of a strip.
const QUANTIZED: usize = size_of::<u16>();

/// Largest number of oversampled columns, before rounding up to whole vectors. More columns make the decomposition
/// more accurate.
const MAX_OVERSAMPLES: usize = 20;

/// Smallest number of oversampled columns for an acceptable decomposition.
const MIN_OVERSAMPLES: usize = 3;

/// Smallest width of a strip, except for the last: one cache line. Narrower strips would be slow.
const MIN_STRIP: usize = 16;

/// Below this many dimensions the oversampled columns are not limited: four matrices are small next to a word's name,
/// counts and sums, and too small for the initial model.
const SMALL_DIM: usize = 32;

/// The number of oversampled columns for the initial model: as many as the budget allows.
pub(crate) fn n_oversamples(dim: usize, n_blocks: usize) -> usize {
    if dim < SMALL_DIM {
        return MAX_OVERSAMPLES;
    }
    let min_width = sketch_width(dim, MIN_OVERSAMPLES);
    let mut widths = (min_width..=sketch_width(dim, MAX_OVERSAMPLES)).rev().step_by(8);
    let fits = |&width: &usize| {
        let strip = initial_model_strip(dim, width, n_blocks);
        initial_model_bytes(dim, width, n_blocks, strip) <= budget(dim)
    };
    widths.find(fits).unwrap_or(min_width) - dim
}

/// The number of columns of the randomized decomposition, rounded up to whole vectors.
pub(crate) fn sketch_width(dim: usize, n_oversamples: usize) -> usize {
    (dim + n_oversamples).next_multiple_of(8)
}

/// The width of the strips for the initial model.
pub(crate) fn initial_model_strip(dim: usize, width: usize, n_blocks: usize) -> usize {
    widest_strip(|strip| initial_model_bytes(dim, width, n_blocks, strip) <= budget(dim))
}

/// The width of the strips for an iteration of EM.
pub(crate) fn em_strip(dim: usize) -> usize {
    widest_strip(|strip| em_bytes(dim, strip) <= budget(dim))
}

fn widest_strip(fits: impl Fn(usize) -> bool) -> usize {
    let mut widths = (MIN_STRIP..=Strip::<f32>::WIDEST).rev().step_by(8);
    widths.find(|&width| fits(width)).unwrap_or(MIN_STRIP)
}

/// The size of four matrices in bytes per word.
fn budget(dim: usize) -> usize {
    4 * SINGLE * dim
}

/// Peak memory of the initial model in bytes per word.
fn initial_model_bytes(dim: usize, width: usize, n_blocks: usize, strip: usize) -> usize {
    let block = QUANTIZED * (width + width.div_ceil(strip));
    // A strip of one block of the factor, and a strip of each block of the product before it overwrites the factor.
    let product = (1 + n_blocks) * SINGLE * strip;
    // Two blocks of the last product, and a strip of one block of the factor and of the product.
    let image = 2 * block + 2 * SINGLE * strip;
    // One block of the last product, and C.
    let observation = block + SINGLE * stride(dim);
    n_blocks * block + product.max(image).max(observation)
}

/// Peak memory of an iteration of EM in bytes per word: C, its successor, the best model so far, and a strip of C.
fn em_bytes(dim: usize, strip: usize) -> usize {
    3 * SINGLE * stride(dim) + SINGLE * strip
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peak memory of the initial model, in matrices of words by `dim`.
    fn initial_model(dim: usize, n_blocks: usize) -> f64 {
        let width = sketch_width(dim, n_oversamples(dim, n_blocks));
        let strip = initial_model_strip(dim, width, n_blocks);
        initial_model_bytes(dim, width, n_blocks, strip) as f64 / (SINGLE * dim) as f64
    }

    #[test]
    fn learning_needs_at_most_four_matrices() {
        for dim in 79..=400 {
            assert!(initial_model(dim, 4) <= 4.0, "{dim}: {}", initial_model(dim, 4));
            assert!(em_bytes(dim, em_strip(dim)) <= budget(dim), "{dim}");
        }
        for dim in [79, 100, 200, 400] {
            let width = sketch_width(dim, n_oversamples(dim, 4));
            let expected = dim + MIN_OVERSAMPLES..=dim + MAX_OVERSAMPLES + 7;
            assert!(expected.contains(&width), "{dim}: {width}");
        }
    }

    /// A block is half a matrix, and at least two more blocks are needed.
    #[test]
    fn small_models_and_many_blocks_exceed_the_budget_by_a_bounded_amount() {
        for (dims, n_blocks, most) in [
            (34..79, 4, 5.0),
            (32..79, 2, 4.0),
            (46..79, 3, 4.0),
            (79..401, 5, 4.7),
            (79..401, 6, 5.3),
        ] {
            for dim in dims {
                let found = initial_model(dim, n_blocks);
                assert!(found <= most, "{dim}, {n_blocks} blocks: {found}");
            }
        }
    }
}
