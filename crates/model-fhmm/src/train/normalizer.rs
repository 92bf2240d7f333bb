//! Expected log-normalizer of a text, or a bound on it.

use crate::emission::coupling::WordCoupling;
use crate::emission::partition::PartitionTable;
use crate::shape::Shape;
use crate::train::statistics::{CHUNK_TOKENS, group_products};
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, Par, matmul};
use latens_nn::multiply;
use rayon::prelude::*;
use std::ops::Range;

/// The term of the M-step objective that depends on Z.
pub(crate) enum Normalizer<'a, T> {
    /// Σ_s n(s) ln Z(s).
    Joint {
        /// n(s), including pseudo-tokens.
        counts: Vec<f64>,
    },
    /// Σ_t weight ln Σ_s Π γ̃ Z(s) over the tokens of a batch and one token that represents all pseudo-tokens.
    Tokens {
        /// γ̃ of each token: layers × states.
        rows: Vec<&'a [T]>,
        /// Number of tokens of the text that each represents.
        weights: Vec<f64>,
    },
}

impl<T: Real> Normalizer<'_, T> {
    /// Value for a given Z.
    pub(crate) fn value(&self, shape: Shape, z: &[T]) -> f64 {
        match self {
            Normalizer::Joint { counts } => {
                counts.iter().zip(z).map(|(count, z)| count * z.wide().ln()).sum()
            }
            Normalizer::Tokens { rows, weights } => {
                let chunks = rows.chunks(CHUNK_TOKENS).zip(weights.chunks(CHUNK_TOKENS));
                let value = |(rows, weights): (&[&[T]], &[f64])| -> f64 {
                    let means = means(shape, rows, z);
                    means.iter().zip(weights).map(|(mean, weight)| weight * mean.ln()).sum()
                };
                chunks.map(value).sum()
            }
        }
    }

    /// G(s), the derivative with respect to Z(s).
    pub(crate) fn ratios(&self, shape: Shape, z: &[T]) -> Vec<T> {
        match self {
            Normalizer::Joint { counts } => {
                let pairs = counts.iter().zip(z);
                pairs.map(|(count, z)| T::of(count / z.wide())).collect()
            }
            Normalizer::Tokens { rows, weights } => {
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

    /// Value, and W of some layers: words × those layers × states. Sums over all words for every token, where there are
    /// too many joint states for a table.
    ///
    /// # Panics
    /// For [`Normalizer::Joint`].
    pub(crate) fn expected_over_words(
        &self,
        shape: Shape,
        table: &PartitionTable<T>,
        layers: Range<usize>,
    ) -> (f64, Vec<T>) {
        /// Number of partial sums. It is fixed, so that results do not depend on the number of threads.
        const PARTS: usize = 8;
        let Normalizer::Tokens { rows, weights } = self else {
            panic!("counts of joint states need a table of Z");
        };
        let n = rows.len().div_ceil(PARTS).max(1);
        let parts = rows.par_chunks(n).zip(weights.par_chunks(n));
        let parts: Vec<(f64, Vec<T>)> = parts
            .map(|(rows, weights)| over_words(shape, table, layers.clone(), rows, weights))
            .collect();
        let value = parts.iter().map(|(value, _)| value).sum();
        let sums = crate::emission::partition::add_parts(
            parts.into_iter().map(|(_, sums)| sums).collect(),
        );
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
    table: &PartitionTable<T>,
    layers: Range<usize>,
    rows: &[&[T]],
    weights: &[f64],
) -> (f64, Vec<T>) {
    /// Number of tokens per block.
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
