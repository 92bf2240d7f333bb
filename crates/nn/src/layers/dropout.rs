//! Dropout (Srivastava et al. 2014).

use latens_math::linalg::{MatMut, Par};
use latens_math::rows::{for_each_chunk, row_mut, rows_per_chunk};
use latens_math::{Real, Rng};

/// Number of random numbers drawn at once.
const DRAWS: usize = 64;

/// Sets each value to zero with probability `rate` and divides the others by 1 − `rate`, which preserves the mean.
///
/// For a matrix of given width, the seed determines the mask, so [`Dropout::apply`] with the same seed is its own
/// backward pass. Use a different seed for each training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    rate: f64,
    seed: u64,
}

impl Dropout {
    /// Creates dropout with a mask determined by `seed`.
    ///
    /// # Panics
    /// If `rate` is not in [0, 1).
    pub fn new(rate: f64, seed: u64) -> Dropout {
        assert!((0.0..1.0).contains(&rate), "the dropout rate must be in [0, 1), got {rate}");
        Dropout { rate, seed }
    }

    /// Seed of the mask.
    pub fn seed(self) -> u64 {
        self.seed
    }

    /// Returns dropout with the same rate and another mask, for one of several places in a network.
    pub fn part(self, index: u64) -> Dropout {
        let seed = (Rng::stream(self.seed, index).uniform() * 2f64.powi(53)) as u64;
        Dropout { seed, ..self }
    }

    /// Factor of the values that are kept, 1/(1 − `rate`).
    pub fn scale<T: Real>(self) -> T {
        T::of(1.0 / (1.0 - self.rate))
    }

    /// Applies the mask to a matrix.
    pub fn apply<T: Real>(self, matrix: MatMut<'_, T>, par: Par) {
        let (n_rows, size) = (matrix.nrows(), rows_per_chunk(matrix.ncols()));
        for_each_chunk((matrix, 0..n_rows), size, par, |(mut chunk, row_idxs)| {
            for (i, row_idx) in row_idxs.enumerate() {
                self.apply_to_row(row_idx, row_mut(&mut chunk, i));
            }
        });
    }

    /// Applies the mask to one row, which has its own random stream.
    #[inline(always)]
    pub(crate) fn apply_to_row<T: Real>(self, row_idx: usize, row: &mut [T]) {
        let scale: T = self.scale();
        let mut rng = Rng::stream(self.seed, row_idx as u64);
        // Draw first and compare afterwards: a branch per draw would be unpredictable.
        let mut draws = [0.0; DRAWS];
        for values in row.chunks_mut(DRAWS) {
            draws.iter_mut().take(values.len()).for_each(|draw| *draw = rng.uniform());
            for (value, &draw) in values.iter_mut().zip(&draws) {
                *value *= if draw < self.rate { T::zero() } else { scale };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::Buffer;

    #[test]
    fn the_fraction_of_zeros_is_the_rate() {
        let mut matrix = Buffer::<f64>::new();
        matrix.resize(300, 100);
        matrix.values_mut().fill(1.0);
        Dropout::new(0.3, 1).apply(matrix.view_mut(), Par::Seq);
        let n_zeros = matrix.values().iter().filter(|&&x| x == 0.0).count() as f64;
        // Four standard deviations of a binomial count.
        assert!((n_zeros - 9000.0).abs() < 4.0 * (30_000.0f64 * 0.3 * 0.7).sqrt());
        let kept = 1.0 / 0.7;
        assert!(matrix.values().iter().all(|&x| x == 0.0 || (x - kept).abs() < 1e-15));
    }

    #[test]
    fn the_seed_determines_the_mask() {
        let masked = |dropout: Dropout| {
            let mut matrix = Buffer::<f32>::new();
            matrix.resize(40, 20);
            matrix.values_mut().fill(1.0);
            dropout.apply(matrix.view_mut(), Par::rayon(0));
            matrix.values().to_vec()
        };
        let dropout = Dropout::new(0.5, 3);
        assert_eq!(masked(dropout), masked(dropout));
        assert_ne!(masked(dropout.part(0)), masked(dropout.part(1)));
        assert_ne!(masked(dropout), masked(Dropout::new(0.5, 4)));
        assert_eq!(masked(Dropout::new(0.0, 1)), vec![1.0; 800]);
    }
}
