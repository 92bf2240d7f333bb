//! The expected logarithm of Z over a text, or a bound of it.

use crate::coupling::WordCoupling;
use crate::shape::Shape;
use crate::statistics::{CHUNK_TOKENS, group_products};
use crate::table::Table;
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, Par, matmul};
use latens_nn::multiply;
use rayon::prelude::*;
use std::ops::Range;

/// What the M-step subtracts.
pub(crate) enum Normaliser<'a, T> {
    /// Σ_s n(s) ln Z(s).
    Joint {
        /// n, pseudo-tokens included.
        counts: Vec<f64>,
    },
    /// Σ_t weight ln Σ_s Π γ̃ Z(s), over the tokens of a batch and one that stands for all pseudo-tokens.
    Tokens {
        /// γ̃ of each token: layers × states.
        rows: Vec<&'a [T]>,
        /// How many tokens of the text each stands for.
        weights: Vec<f64>,
    },
}

impl<T: Real> Normaliser<'_, T> {
    /// Its value, if Z is known.
    pub(crate) fn value(&self, shape: Shape, z: &[T]) -> f64 {
        match self {
            Normaliser::Joint { counts } => {
                counts.iter().zip(z).map(|(count, z)| count * z.wide().ln()).sum()
            }
            Normaliser::Tokens { rows, weights } => {
                let chunks = rows.chunks(CHUNK_TOKENS).zip(weights.chunks(CHUNK_TOKENS));
                let value = |(rows, weights): (&[&[T]], &[f64])| -> f64 {
                    let means = means(shape, rows, z);
                    means.iter().zip(weights).map(|(mean, weight)| weight * mean.ln()).sum()
                };
                chunks.map(value).sum()
            }
        }
    }

    /// G(s): its derivative by Z(s).
    pub(crate) fn ratios(&self, shape: Shape, z: &[T]) -> Vec<T> {
        match self {
            Normaliser::Joint { counts } => {
                let pairs = counts.iter().zip(z);
                pairs.map(|(count, z)| T::of(count / z.wide())).collect()
            }
            Normaliser::Tokens { rows, weights } => {
                let mut sums = vec![T::zero(); shape.n_joint()];
                let chunks = rows.chunks(CHUNK_TOKENS).zip(weights.chunks(CHUNK_TOKENS));
                for (rows, weights) in chunks {
                    let means = means(shape, rows, z);
                    let factors = weights.iter().zip(&means).map(|(w, mean)| T::of(w / mean));
                    let factors: Vec<T> = factors.collect();
                    let (first, second) = group_products(shape, rows, Some(&factors));
                    let first = MatRef::from_row_major_slice(&first, rows.len(), shape.n_rows());
                    let second =
                        MatRef::from_row_major_slice(&second, rows.len(), shape.n_columns());
                    let sums = MatMut::from_row_major_slice_mut(
                        &mut sums,
                        shape.n_rows(),
                        shape.n_columns(),
                    );
                    multiply(sums, Accum::Add, first.transpose(), second, Par::rayon(0));
                }
                sums
            }
        }
    }

    /// Its value and W of some layers (words × those layers × states), by sums over all words for every token: there
    /// is no table of so many joint states.
    ///
    /// # Panics
    /// If it is a sum over joint states.
    pub(crate) fn expected_over_words(
        &self,
        shape: Shape,
        table: &Table<T>,
        layers: Range<usize>,
    ) -> (f64, Vec<T>) {
        /// Sums are made of so many parts, whatever the number of threads.
        const PARTS: usize = 8;
        let Normaliser::Tokens { rows, weights } = self else {
            panic!("joint states are counted only if there is a table of them");
        };
        let n = rows.len().div_ceil(PARTS).max(1);
        let parts = rows.par_chunks(n).zip(weights.par_chunks(n));
        let parts: Vec<(f64, Vec<T>)> = parts
            .map(|(rows, weights)| over_words(shape, table, layers.clone(), rows, weights))
            .collect();
        let value = parts.iter().map(|(value, _)| value).sum();
        let sums = crate::table::add_parts(parts.into_iter().map(|(_, sums)| sums).collect());
        (value, sums)
    }
}

/// Z̄_t = Σ_s Π γ̃ Z(s).
fn means<T: Real>(shape: Shape, rows: &[&[T]], z: &[T]) -> Vec<f64> {
    let (first, second) = group_products(shape, rows, None);
    let mut rest = vec![T::zero(); first.len()];
    let z = MatRef::from_row_major_slice(z, shape.n_rows(), shape.n_columns());
    let second = MatRef::from_row_major_slice(&second, rows.len(), shape.n_columns());
    let out = MatMut::from_row_major_slice_mut(&mut rest, rows.len(), shape.n_rows());
    multiply(out, Accum::Replace, second, z.transpose(), Par::rayon(0));
    let tokens = first.chunks_exact(shape.n_rows()).zip(rest.chunks_exact(shape.n_rows()));
    tokens.map(|(a, b)| a.iter().zip(b).map(|(&a, &b)| (a * b).wide()).sum()).collect()
}

fn over_words<T: Real>(
    shape: Shape,
    table: &Table<T>,
    layers: Range<usize>,
    rows: &[&[T]],
    weights: &[f64],
) -> (f64, Vec<T>) {
    /// Tokens that are worked on together.
    const TOKENS: usize = 32;
    let Shape { n_states: k, n_words, .. } = shape;
    let (mut value, mut sums) = (0.0, vec![T::zero(); n_words * layers.len() * k]);
    let mut coupling = WordCoupling::new(shape, &table.exps, &table.base);
    let exps = MatRef::from_row_major_slice(&table.exps, n_words, shape.row());
    for (rows, weights) in rows.chunks(TOKENS).zip(weights.chunks(TOKENS)) {
        let tilted = rows.concat();
        for layer in 0..layers.end {
            let products = coupling.products_of_others(layer, &tilted);
            if !layers.contains(&layer) {
                continue;
            }
            let products = MatRef::from_row_major_slice(products, rows.len(), n_words);
            let own = exps.subcols(layer * k, k);
            let mut means = vec![T::zero(); rows.len() * k];
            let out = MatMut::from_row_major_slice_mut(&mut means, rows.len(), k);
            matmul(out, Accum::Replace, products, own);
            let mut scaled = vec![T::zero(); rows.len() * k];
            for (t, &weight) in weights.iter().enumerate() {
                let tilted = &rows[t][shape.layer(layer)];
                let pairs = tilted.iter().zip(&means[t * k..(t + 1) * k]);
                let mean: f64 = pairs.map(|(&p, &g)| (p * g).wide()).sum();
                if layer == layers.start {
                    value += weight * mean.ln();
                }
                let factor = T::of(weight / mean);
                let out = scaled[t * k..(t + 1) * k].iter_mut();
                out.zip(tilted).for_each(|(out, &p)| *out = p * factor);
            }
            let scaled = MatRef::from_row_major_slice(&scaled, rows.len(), k);
            let n_columns = layers.len() * k;
            let out = MatMut::from_row_major_slice_mut(&mut sums, n_words, n_columns);
            let out = out.subcols_mut((layer - layers.start) * k, k);
            matmul(out, Accum::Add, products.transpose(), scaled);
        }
    }
    let row = shape.row();
    for (word, sums) in sums.chunks_exact_mut(layers.len() * k).enumerate() {
        let exps = &table.exps[word * row..(word + 1) * row][shape.layers(layers.clone())];
        sums.iter_mut().zip(exps).for_each(|(sum, &exp)| *sum *= exp);
    }
    (value, sums)
}
