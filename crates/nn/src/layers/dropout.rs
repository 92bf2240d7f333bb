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

    /// Probability that a value is dropped.
    pub fn rate(self) -> f64 {
        self.rate
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
        self.apply_with_period(matrix, usize::MAX, par);
    }

    /// Applies a mask that repeats after `period` rows. With one row per stream in each step of a recurrent network, and
    /// as many rows in a period, every step of a stream has the same mask (Gal and Ghahramani 2016).
    ///
    /// # Panics
    /// If `period` is 0.
    pub fn apply_with_period<T: Real>(self, matrix: MatMut<'_, T>, period: usize, par: Par) {
        let (n_rows, size) = (matrix.nrows(), rows_per_chunk(matrix.ncols()));
        for_each_chunk((matrix, 0..n_rows), size, par, |(mut chunk, row_idxs)| {
            for (i, row_idx) in row_idxs.enumerate() {
                self.apply_to_row(row_idx % period, row_mut(&mut chunk, i));
            }
        });
    }

    /// Factor of everything that belongs to an index, such as the vector of a word: 0, or [`Dropout::scale`].
    pub fn factor<T: Real>(self, idx: u64) -> T {
        if Rng::stream(self.seed, idx).uniform() < self.rate { T::zero() } else { self.scale() }
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
    fn a_mask_with_a_period_repeats() {
        let mut matrix = Buffer::<f32>::new();
        matrix.resize(12, 50);
        matrix.values_mut().fill(1.0);
        Dropout::new(0.5, 3).apply_with_period(matrix.view_mut(), 4, Par::Seq);
        let (first, rest) = matrix.values().split_at(200);
        assert!(rest.chunks(200).all(|part| part == first));
        assert_ne!(first[..50], first[50..100]);
    }

    #[test]
    fn factors_of_indices_are_dropped_at_the_rate() {
        let dropout = Dropout::new(0.25, 9);
        let factors: Vec<f64> = (0..4000).map(|idx| dropout.factor(idx)).collect();
        let n_zeros = factors.iter().filter(|&&factor| factor == 0.0).count() as f64;
        // Four standard deviations of a binomial count.
        assert!((n_zeros - 1000.0).abs() < 4.0 * (4000.0f64 * 0.25 * 0.75).sqrt());
        assert!(factors.iter().all(|&factor| factor == 0.0 || (factor - 4.0 / 3.0).abs() < 1e-15));
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
