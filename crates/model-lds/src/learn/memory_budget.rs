//! How learning keeps to the memory of four matrices of words by `dim` in single precision besides that of the
//! counts: 16 · dim bytes a word. What can be chosen for it is how wide strips are, and how many columns more than
//! `dim` the first model is made of.

use crate::linalg::panel::stride;
use latens_math::Strip;

const SINGLE: usize = size_of::<f32>();

/// A packed number, or the factor of a row of a strip.
const PACKED: usize = size_of::<u16>();

/// Where there is room, the first model is made of so many columns more than it has dimensions, up to whole vectors,
/// which makes it more exact.
const MOST_EXTRA: usize = 20;

/// The fewest that make a sound decomposition.
const LEAST_EXTRA: usize = 3;

/// Strips as wide as a line of the cache, but for the last: narrower ones would be slow.
const LEAST_STRIP: usize = 16;

/// Below so many dimensions four matrices are little beside a word's name, counts and sums, and not enough for the
/// first model.
const SMALL: usize = 32;

/// How many columns besides `dim` the first model is made of: as many as there is room for.
pub(crate) fn n_extra(dim: usize, n_blocks: usize) -> usize {
    if dim < SMALL {
        return MOST_EXTRA;
    }
    let least = width(dim, LEAST_EXTRA);
    let mut widths = (least..=width(dim, MOST_EXTRA)).rev().step_by(8);
    let fits = |&width: &usize| {
        let strip = first_model_strip(dim, width, n_blocks);
        first_model_bytes(dim, width, n_blocks, strip) <= room(dim)
    };
    widths.find(fits).unwrap_or(least) - dim
}

/// How many columns the first model is made of: whole vectors.
pub(crate) fn width(dim: usize, n_extra: usize) -> usize {
    (dim + n_extra).next_multiple_of(8)
}

/// How wide the strips of the first model may be.
pub(crate) fn first_model_strip(dim: usize, width: usize, n_blocks: usize) -> usize {
    widest_strip(|strip| first_model_bytes(dim, width, n_blocks, strip) <= room(dim))
}

/// How wide the strips of a step of EM may be.
pub(crate) fn em_strip(dim: usize) -> usize {
    widest_strip(|strip| em_bytes(dim, strip) <= room(dim))
}

fn widest_strip(fits: impl Fn(usize) -> bool) -> usize {
    let mut widths = (LEAST_STRIP..=Strip::<f32>::WIDEST).rev().step_by(8);
    widths.find(|&width| fits(width)).unwrap_or(LEAST_STRIP)
}

/// What four matrices take, in bytes a word.
fn room(dim: usize) -> usize {
    4 * SINGLE * dim
}

/// The most that the first model takes, in bytes a word.
fn first_model_bytes(dim: usize, width: usize, n_blocks: usize, strip: usize) -> usize {
    let block = PACKED * (width + width.div_ceil(strip));
    // A strip of one block of the factor, and those of the product before they take its place.
    let product = (1 + n_blocks) * SINGLE * strip;
    // Two blocks of the last product, a strip of one block of the factor, and one of the product.
    let image = 2 * block + 2 * SINGLE * strip;
    // One block of the last product, and C.
    let emission = block + SINGLE * stride(dim);
    n_blocks * block + product.max(image).max(emission)
}

/// The most that a step of EM takes: C, its successor, the best model so far, and a strip of C.
fn em_bytes(dim: usize, strip: usize) -> usize {
    3 * SINGLE * stride(dim) + SINGLE * strip
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many matrices of words by `dim` the first model takes.
    fn first_model(dim: usize, n_blocks: usize) -> f64 {
        let width = width(dim, n_extra(dim, n_blocks));
        let strip = first_model_strip(dim, width, n_blocks);
        first_model_bytes(dim, width, n_blocks, strip) as f64 / (SINGLE * dim) as f64
    }

    #[test]
    fn learning_takes_four_matrices() {
        for dim in 79..=400 {
            assert!(first_model(dim, 4) <= 4.0, "{dim}: {}", first_model(dim, 4));
            assert!(em_bytes(dim, em_strip(dim)) <= room(dim), "{dim}");
        }
        for dim in [79, 100, 200, 400] {
            let width = width(dim, n_extra(dim, 4));
            assert!((dim + LEAST_EXTRA..=dim + MOST_EXTRA + 7).contains(&width), "{dim}: {width}");
        }
    }

    /// Blocks are half a matrix each, and besides them there are at least two more.
    #[test]
    fn small_models_and_many_blocks_take_more() {
        for (dims, n_blocks, most) in [
            (34..79, 4, 5.0),
            (32..79, 2, 4.0),
            (46..79, 3, 4.0),
            (79..401, 5, 4.7),
            (79..401, 6, 5.3),
        ] {
            for dim in dims {
                let found = first_model(dim, n_blocks);
                assert!(found <= most, "{dim}, {n_blocks} blocks: {found}");
            }
        }
    }
}
