//! Dropout (Srivastava et al. 2014): numbers set to zero at random, while training.

use latens_math::linalg::{MatMut, Par};
use latens_math::rows::{for_each_chunk, row_mut, rows_per_chunk};
use latens_math::{Real, Rng};

/// How many random numbers are drawn at a time.
const DRAWS: usize = 64;

/// Sets each number to zero with probability `rate` and divides the others by 1 − `rate`, so that
/// the mean stays.
///
/// The seed alone decides which, for a matrix of given width: [`Dropout::apply`] with the same seed
/// is its own backward pass. Give each step of training a seed of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    rate: f64,
    seed: u64,
}

impl Dropout {
    /// Dropout of one use.
    ///
    /// # Panics
    /// If `rate` is not in [0, 1).
    pub fn new(rate: f64, seed: u64) -> Dropout {
        assert!((0.0..1.0).contains(&rate), "a rate of dropout of {rate}");
        Dropout { rate, seed }
    }

    /// What decides which numbers are dropped.
    pub fn seed(self) -> u64 {
        self.seed
    }

    /// Dropout with the same rate for one of several places in a network.
    pub fn part(self, index: u64) -> Dropout {
        let seed = (Rng::stream(self.seed, index).uniform() * 2f64.powi(53)) as u64;
        Dropout { seed, ..self }
    }

    /// What the numbers that are kept are multiplied by.
    pub fn scale<T: Real>(self) -> T {
        T::of(1.0 / (1.0 - self.rate))
    }

    /// Drops numbers of a matrix.
    pub fn apply<T: Real>(self, matrix: MatMut<'_, T>, par: Par) {
        let (n_rows, size) = (matrix.nrows(), rows_per_chunk(matrix.ncols()));
        for_each_chunk((matrix, 0..n_rows), size, par, |(mut chunk, row_idxs)| {
            for (i, row_idx) in row_idxs.enumerate() {
                self.apply_to_row(row_idx, row_mut(&mut chunk, i));
            }
        });
    }

    /// Drops numbers of one row, from a random stream of its own.
    #[inline(always)]
    pub(crate) fn apply_to_row<T: Real>(self, row_idx: usize, row: &mut [T]) {
        let scale: T = self.scale();
        let mut rng = Rng::stream(self.seed, row_idx as u64);
        // First numbers are drawn, then compared: a branch on each draw could not be predicted.
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
    use crate::Buffer;

    #[test]
    fn the_share_of_zeros_is_the_rate_and_the_mean_stays() {
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
    fn parts_differ_and_a_seed_keeps_its_mask() {
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
