//! Expected results and tolerances.

use std::ops::AddAssign;

/// A sum, and the sum of the absolute values of its terms, to which rounding errors are proportional.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) value: f64,
    pub(crate) size: f64,
}

impl Sum {
    pub(crate) fn of(terms: impl IntoIterator<Item = f64>) -> Sum {
        let mut sum = Sum::default();
        terms.into_iter().for_each(|term| sum += term);
        sum
    }

    pub(crate) fn times(self, factor: f64) -> Sum {
        Sum { value: self.value * factor, size: self.size * factor.abs() }
    }
}

impl AddAssign<f64> for Sum {
    fn add_assign(&mut self, term: f64) {
        self.value += term;
        self.size += term.abs();
    }
}

impl From<f64> for Sum {
    fn from(value: f64) -> Sum {
        Sum { value, size: value.abs() }
    }
}

impl From<f32> for Sum {
    fn from(value: f32) -> Sum {
        Sum::from(f64::from(value))
    }
}

/// Each number as a sum of one term.
pub(crate) fn sums<T: Copy + Into<f64>>(values: &[T]) -> Vec<Sum> {
    values.iter().map(|&value| Sum::from(value.into())).collect()
}

/// The n × m matrix Σ_{i<k} a(r, i) b(i, c) in double precision.
pub(crate) fn product(
    (n, m, k): (usize, usize, usize),
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
) -> Vec<Sum> {
    let entry = |r, c| Sum::of((0..k).map(|i| f64::from(a(r, i)) * f64::from(b(i, c))));
    (0..n * m).map(|at| entry(at / m, at % m)).collect()
}

/// ln Σ exp of each row of n logits. Their rounding errors are proportional to the logarithm, or to 1.
pub(crate) fn log_sums(logits: &[f64], n: usize) -> Vec<Sum> {
    let log_sum = |row: &[f64]| {
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let value = max + row.iter().map(|x| (x - max).exp()).sum::<f64>().ln();
        Sum { value, size: value.abs() + 1.0 }
    };
    logits.chunks(n).map(log_sum).collect()
}

/// Largest difference of a result, relative to its value (final rounding) and to the size of its terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    pub(crate) of_value: f64,
    pub(crate) of_terms: f64,
}

/// Numbers that are only copied.
pub(crate) const EXACT: Tolerance = Tolerance { of_value: 0.0, of_terms: 0.0 };

/// Functions and sums of some hundred terms in single precision, which rounds by 6e-8.
pub(crate) const SINGLE: Tolerance = Tolerance { of_value: 0.0, of_terms: 1e-5 };

/// A few operations in single precision.
pub(crate) const ROUNDED: Tolerance = Tolerance { of_value: 0.0, of_terms: 5e-7 };

/// Sums in double precision.
pub(crate) const DOUBLE: Tolerance = Tolerance { of_value: 0.0, of_terms: 1e-12 };

/// A result that is rounded to 11 significant bits, by at most 2⁻¹¹.
pub(crate) const HALF: Tolerance = Tolerance { of_value: 5e-4, of_terms: 1e-5 };

/// A result that is rounded to 8 significant bits, by at most 2⁻⁸.
pub(crate) const BF16: Tolerance = Tolerance { of_value: 4e-3, of_terms: 1e-5 };

/// Products of factors with 11 significant bits. The hardware may truncate them, which is 2⁻¹⁰ of each factor.
pub(crate) const TF32: Tolerance = Tolerance { of_value: 0.0, of_terms: 2e-3 };

/// Panics with the first index at which a result is out of tolerance.
pub(crate) fn assert_near<T: Copy + Into<f64>>(
    what: &str,
    got: &[T],
    expected: &[Sum],
    Tolerance { of_value, of_terms }: Tolerance,
) {
    assert_eq!(got.len(), expected.len(), "{what}: number of results");
    let is_far = |&(_, (got, expected)): &(usize, (f64, &Sum))| {
        // The device flushes subnormal numbers to zero.
        let allowed = of_value * expected.value.abs() + of_terms * expected.size;
        let is_near = (got - expected.value).abs() <= allowed + f64::from(f32::MIN_POSITIVE);
        !(is_near || got == expected.value)
    };
    let pairs = got.iter().map(|&got| got.into()).zip(expected).enumerate();
    let far: Vec<_> = pairs.filter(is_far).collect();
    let n = got.len();
    if let Some((at, (got, Sum { value, size }))) = far.first() {
        let n_far = far.len();
        panic!(
            "{what}: expected {value:e} at {at}, got {got:e} (terms of {size:e}); {n_far} of {n} are wrong"
        );
    }
}
