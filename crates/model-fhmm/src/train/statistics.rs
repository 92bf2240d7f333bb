//! Expected counts per token: the sufficient statistics of the M-step.

use crate::inference::smoother::Expected;
use crate::params::Inference;
use crate::shape::Shape;
use crate::tensor::kronecker;
use crate::word_rows::MISSING;
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, Par};
use latens_nn::multiply;
use rayon::prelude::*;

/// Expected counts per token. Their size does not depend on the length of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statistics {
    pub(crate) shape: Shape,
    /// Start states: layers × states.
    pub(crate) start: Vec<f64>,
    /// Transitions: layers × states × states.
    pub(crate) pairs: Vec<f64>,
    /// Words and states: words × layers × states.
    pub(crate) words: Vec<f64>,
    /// Emissions of joint states; empty where the log-normalizer is bounded token by token.
    pub(crate) emitting: Vec<f64>,
}

/// Number of tokens per matrix product over joint states.
pub(crate) const CHUNK_TOKENS: usize = 1024;

impl Statistics {
    /// Statistics of no text.
    pub(crate) fn new(shape: Shape, inference: Inference) -> Statistics {
        let n_emitting = if inference.counts_joint_states() { shape.n_joint() } else { 0 };
        Statistics {
            shape,
            start: vec![0.0; shape.row()],
            pairs: vec![0.0; shape.row() * shape.n_states],
            words: vec![0.0; shape.n_words * shape.row()],
            emitting: vec![0.0; n_emitting],
        }
    }

    /// Interpolates with the counts per token of a batch of sentences, with weight η for the batch and 1 − η for the
    /// previous statistics (stepwise EM, Liang and Klein 2009).
    pub(crate) fn blend<T: Real>(
        &mut self,
        eta: f64,
        sentences: &[&[u32]],
        expected: &Expected<T>,
    ) {
        let Statistics { start, pairs, words, emitting, .. } = self;
        for sums in [&mut *start, &mut *pairs, &mut *words, &mut *emitting] {
            scale(sums, 1.0 - eta);
        }
        let n_tokens: usize = sentences.iter().map(|sentence| sentence.len()).sum();
        let share = eta / n_tokens as f64;
        add_scaled(&mut self.pairs, &expected.pairs, share);
        if expected.emitting.is_empty() && !self.emitting.is_empty() {
            let emitting = emitting_states(self.shape, sentences, &expected.gamma);
            add_scaled(&mut self.emitting, &emitting, share);
        } else {
            add_scaled(&mut self.emitting, &expected.emitting, share);
        }
        let row = self.shape.row();
        let mut gamma = expected.gamma.chunks_exact(row);
        for sentence in sentences {
            for (t, &word) in sentence.iter().enumerate() {
                let gamma = gamma.next().expect("one row per token");
                if t == 0 {
                    add_scaled(&mut self.start, gamma, share);
                }
                if word != MISSING {
                    let word = word as usize * row..(word as usize + 1) * row;
                    add_scaled(&mut self.words[word], gamma, share);
                }
            }
        }
    }

    /// Share of tokens in each state: layers × states.
    pub(crate) fn occupancy(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.shape.row()];
        self.words.chunks_exact(self.shape.row()).for_each(|word| add_scaled(&mut sums, word, 1.0));
        for layer in sums.chunks_exact_mut(self.shape.n_states) {
            let total: f64 = layer.iter().sum();
            layer.iter_mut().for_each(|sum| *sum /= total);
        }
        sums
    }

    /// Estimates π and A, with pseudo-counts of `prior` added to the counts of a text of `n_tokens`.
    pub(crate) fn chains(&self, n_tokens: f64, prior: f64) -> (Vec<f64>, Vec<f64>) {
        let shares = |counts: &[f64]| -> Vec<f64> {
            let rows = counts.chunks_exact(self.shape.n_states);
            let share = |row: &[f64]| {
                let total: f64 = row.iter().map(|count| count * n_tokens + prior).sum();
                let shares = row.iter().map(|count| (count * n_tokens + prior) / total);
                shares.collect::<Vec<_>>()
            };
            rows.flat_map(share).collect()
        };
        (shares(&self.start), shares(&self.pairs))
    }
}

/// n(s) = Σ_t Π_m γ[t, m, s^m] over tokens that are not missing.
fn emitting_states<T: Real>(shape: Shape, sentences: &[&[u32]], gamma: &[T]) -> Vec<f64> {
    let words: Vec<u32> = sentences.concat();
    let rows = gamma.chunks_exact(shape.row()).zip(&words);
    let rows: Vec<&[T]> = rows.filter(|(_, word)| **word != MISSING).map(|(row, _)| row).collect();
    let mut sums = vec![T::zero(); shape.n_joint()];
    for rows in rows.chunks(CHUNK_TOKENS) {
        let (first, second) = group_products(shape, rows, None);
        let first = MatRef::from_row_major_slice(&first, rows.len(), shape.n_rows());
        let second = MatRef::from_row_major_slice(&second, rows.len(), shape.n_columns());
        let sums = MatMut::from_row_major_slice_mut(&mut sums, shape.n_rows(), shape.n_columns());
        multiply(sums, Accum::Add, first.transpose(), second, Par::rayon(0));
    }
    sums.iter().map(|sum| sum.wide()).collect()
}

/// Products over the layers of the first and of the second group, for each row of layers × states. Those of the first
/// group are scaled by a factor per row.
pub(crate) fn group_products<T: Real>(
    shape: Shape,
    rows: &[&[T]],
    factors: Option<&[T]>,
) -> (Vec<T>, Vec<T>) {
    /// Number of rows per task.
    const ROWS: usize = 64;
    let (n_rows, n_columns, k) = (shape.n_rows(), shape.n_columns(), shape.n_states);
    let mut first = vec![T::zero(); rows.len() * n_rows];
    let mut second = vec![T::zero(); rows.len() * n_columns];
    let blocks = first.par_chunks_mut(ROWS * n_rows).zip(second.par_chunks_mut(ROWS * n_columns));
    blocks.zip(rows.par_chunks(ROWS)).enumerate().for_each(|(block, ((first, second), rows))| {
        latens_math::vectorized(
            #[inline(always)]
            || {
                let outs = first.chunks_exact_mut(n_rows).zip(second.chunks_exact_mut(n_columns));
                for (i, ((first, second), row)) in outs.zip(rows).enumerate() {
                    let factor = factors.map_or(T::one(), |factors| factors[block * ROWS + i]);
                    kronecker(&row[shape.layers(shape.first())], k, factor, first);
                    kronecker(&row[shape.layers(shape.second())], k, T::one(), second);
                }
            },
        );
    });
    (first, second)
}

fn scale(values: &mut [f64], factor: f64) {
    values.par_chunks_mut(1 << 14).for_each(|chunk| chunk.iter_mut().for_each(|x| *x *= factor));
}

fn add_scaled<T: Real>(sums: &mut [f64], values: &[T], factor: f64) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value.wide());
}
