//! Estimates of the memory and the work of a training run, before it allocates.

use super::error::FitError;
use super::memory::AvailableMemory;

/// Estimated memory and work of a training run.
///
/// Sizes are computed in `f64`, so that absurd parameters give a huge estimate instead of an overflow:
///
/// ```
/// use latens_model::Cost;
///
/// let n_states = (1u64 << 40) as f64;
/// let cost = Cost::new(10)
///     .part("transitions", 4.0 * n_states * n_states, Some("n_states"))
///     .part("batch", 1e6, Some("batch_tokens"))
///     .multiply_adds(n_states * n_states);
/// assert_eq!(cost.memory_bytes(), u64::MAX);
/// assert_eq!(cost.largest().unwrap().name, "transitions");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    parts: Vec<CostPart>,
    multiply_adds: f64,
    products: f64,
    n_iterations: u64,
}

/// A part of the memory of a training run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CostPart {
    /// What needs the memory: `transitions`.
    pub name: &'static str,
    /// Its size in bytes.
    pub bytes: f64,
    /// The parameter that has the largest influence on the size; `None` if only the data has.
    pub parameter: Option<&'static str>,
}

impl Cost {
    /// A run of at most `n_iterations` iterations or epochs, without memory or work so far.
    pub fn new(n_iterations: usize) -> Cost {
        Cost { n_iterations: n_iterations as u64, ..Cost::default() }
    }

    /// Adds memory. `parameter` is the one to lower if it is too much.
    #[must_use]
    pub fn part(mut self, name: &'static str, bytes: f64, parameter: Option<&'static str>) -> Cost {
        if bytes > 0.0 {
            self.parts.push(CostPart { name, bytes, parameter });
        }
        self
    }

    /// Adds work: multiplications with an addition, per iteration.
    #[must_use]
    pub fn multiply_adds(mut self, n: f64) -> Cost {
        self.multiply_adds += n;
        self
    }

    /// Adds work in matrix products, which are many times faster: multiplications with an addition, per iteration.
    #[must_use]
    pub fn products(mut self, n: f64) -> Cost {
        self.products += n;
        self
    }

    /// The cost of two runs one after the other, if the first one frees its memory. Iterations and work are those of
    /// `self`.
    #[must_use]
    pub fn after(self, first: Cost) -> Cost {
        let parts = if first.bytes() > self.bytes() { first.parts } else { self.parts };
        Cost { parts, ..self }
    }

    /// The parts of the memory.
    pub fn parts(&self) -> &[CostPart] {
        &self.parts
    }

    /// Memory in bytes that training allocates at its peak, besides the data.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes() as u64
    }

    /// Multiplications with an addition per iteration or epoch, those of matrix products included.
    pub fn multiply_adds_per_iteration(&self) -> f64 {
        self.multiply_adds + self.products
    }

    /// Multiplications with an addition in matrix products, per iteration or epoch.
    pub fn products_per_iteration(&self) -> f64 {
        self.products
    }

    /// Maximum number of iterations or epochs.
    pub fn n_iterations(&self) -> u64 {
        self.n_iterations
    }

    /// The largest part of the memory.
    pub fn largest(&self) -> Option<&CostPart> {
        self.parts.iter().max_by(|a, b| a.bytes.total_cmp(&b.bytes))
    }

    /// Returns an error if the memory is more than what is available. Unknown limits are not enforced.
    pub fn check_fits(&self, available: Option<AvailableMemory>) -> Result<(), FitError> {
        let Some(AvailableMemory { bytes: available, limit }) = available else { return Ok(()) };
        let needed = self.memory_bytes();
        match self.largest() {
            Some(largest) if needed > available => Err(FitError::TooLittleMemory {
                needed,
                available,
                limit,
                largest: largest.name,
                largest_bytes: largest.bytes as u64,
                lower: largest.parameter,
            }),
            _ => Ok(()),
        }
    }

    fn bytes(&self) -> f64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::{Bytes, MemoryLimit};
    use super::*;

    fn available(bytes: u64) -> Option<AvailableMemory> {
        Some(AvailableMemory { bytes, limit: MemoryLimit::Machine })
    }

    #[test]
    fn more_than_the_available_memory_is_refused() {
        let cost = Cost::new(3).part("small", 24.0, None).part("large", 1000.0, Some("dim"));
        assert_eq!(cost.memory_bytes(), 1024);
        assert!(cost.check_fits(available(1024)).is_ok());
        assert!(cost.check_fits(None).is_ok());
        let error = cost.check_fits(available(1023)).unwrap_err();
        let expected = "training needs about 1.0 KiB of memory, of which 1.0 KiB for large, but only 1.0 KiB are \
                        available on this machine";
        assert_eq!(error.to_string(), expected);
        assert!(matches!(error, FitError::TooLittleMemory { lower: Some("dim"), .. }));
    }

    #[test]
    fn the_larger_of_two_successive_runs_counts() {
        let small = || Cost::new(1).part("a", 10.0, None).multiply_adds(5.0);
        let large = || Cost::new(2).part("b", 20.0, None).multiply_adds(7.0);
        for (first, last, bytes, work) in [(small(), large(), 20, 7.0), (large(), small(), 20, 5.0)]
        {
            let both = last.after(first);
            assert_eq!((both.memory_bytes(), both.multiply_adds_per_iteration()), (bytes, work));
        }
    }

    #[test]
    fn bytes_are_printed_with_the_largest_unit_below_them() {
        let cases = [
            (512, "0.5 KiB"),
            (1 << 20, "1.0 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Bytes(bytes).to_string(), expected);
        }
    }
}
