//! The vectors of words, one row for each slot.

use crate::params::HmmParams;
use faer::Par;
use latens_math::{Real, Rng};
use latens_nn::{Buffer, Layout, Linear};

/// Where vectors of words come from.
pub(crate) struct Words {
    /// A vector and a bias for each slot.
    table: Linear,
}

/// Vectors that are made anew for each mini-batch, and their derivatives.
#[derive(Default)]
pub(crate) struct WordScratch<T> {
    pub(crate) d_vectors: Buffer<T>,
}

impl Words {
    pub(crate) fn new(layout: &mut Layout, params: &HmmParams, spellings: &[&str]) -> Words {
        Words { table: Linear::new(layout, "words", params.dim, spellings.len()) }
    }

    pub(crate) fn init<T: Real>(&self, weights: &mut [T], rng: &mut Rng) {
        self.table.init(weights, rng);
    }

    pub(crate) fn forward<T: Real>(&self, _: &[T], _: &mut WordScratch<T>, _: Par) {}

    pub(crate) fn vectors<'a, T>(&self, weights: &'a [T], _: &'a WordScratch<T>) -> &'a [T] {
        self.table.weight().of(weights)
    }

    pub(crate) fn bias<'a, T>(&self, weights: &'a [T]) -> &'a [T] {
        self.table.bias().expect("it was made with one").of(weights)
    }

    /// Where the derivatives of vectors and biases are added.
    pub(crate) fn gradients<'a, T>(
        &self,
        gradient: &'a mut [T],
        _: &'a mut Buffer<T>,
    ) -> (&'a mut [T], &'a mut [T]) {
        let (table, bias) = (self.table.weight(), self.table.bias().expect("it was made with one"));
        assert_eq!(table.range().end, bias.range().start, "the bias comes after the vectors");
        gradient[table.range().start..bias.range().end].split_at_mut(table.len())
    }

    pub(crate) fn backward<T: Real>(&self, _: &[T], _: &mut WordScratch<T>, _: &mut [T], _: Par) {}
}
