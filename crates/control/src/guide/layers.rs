//! The recursion over the number of words that are left.

use super::edges::Edge;
use super::options::Lengths;
use latens_math::Real;
use rayon::prelude::*;

/// One vector over hidden states per automaton state, each scaled to a maximum of 1.
pub(super) struct Layer<T> {
    /// One row per automaton state from which texts can be accepted.
    pub(super) rows: Vec<T>,
    /// The logarithm of the scale of each row; −∞ for a row of zeros.
    pub(super) log_scales: Vec<f64>,
}

/// What all layers share. States of edges are numbers of rows.
pub(super) struct Recursion<'a, T> {
    pub(super) edges: &'a [Edge<T>],
    /// Whether a text may end in the state of each row.
    pub(super) accepting: &'a [bool],
    /// b(`<eos>` | z).
    pub(super) ends: &'a [T],
    pub(super) lengths: Lengths,
}

/// How the alternatives for the next word are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Combine {
    Sum,
    Max,
}

impl<T: Real> Recursion<'_, T> {
    /// Whether a text may end when `n_left` more words are allowed.
    pub(super) fn may_end(&self, row: usize, n_left: usize) -> bool {
        self.accepting[row] && self.lengths.max - n_left >= self.lengths.min
    }

    /// u_n(s, z') = [s accepts] b(`<eos>`|z') + Σ_s' B_{s,s'}(z') β_{n−1}(s', z') for the state s of one row, where `before`
    /// is β_{n−1}, or the largest of these terms. Returns the logarithm of the scale.
    pub(super) fn next_word(
        &self,
        edges: &[Edge<T>],
        row: usize,
        n_left: usize,
        before: Option<&Layer<T>>,
        combine: Combine,
        out: &mut [T],
    ) -> f64 {
        out.fill(T::zero());
        let may_end = self.may_end(row, n_left);
        let before = before.filter(|_| n_left > 0);
        let scale_of = |edge: &Edge<T>| before.map_or(f64::NEG_INFINITY, |b| b.log_scales[edge.to]);
        let largest = edges.iter().map(scale_of).fold(f64::NEG_INFINITY, f64::max);
        let log_scale = if may_end { largest.max(0.0) } else { largest };
        if log_scale == f64::NEG_INFINITY {
            return log_scale;
        }
        let mut add = |weights: &[T], values: Option<&[T]>, scale: T| {
            for (z, out) in out.iter_mut().enumerate() {
                let term = weights[z] * scale * values.map_or(T::one(), |values| values[z]);
                match combine {
                    Combine::Sum => *out += term,
                    Combine::Max => *out = out.max(term),
                }
            }
        };
        if may_end {
            add(self.ends, None, T::of((-log_scale).exp()));
        }
        for (edge, before) in edges.iter().zip(std::iter::repeat(before)) {
            let scale = (scale_of(edge) - log_scale).exp();
            if let Some(before) = before.filter(|_| scale > 0.0) {
                let n = edge.weights.len();
                let values = &before.rows[edge.to * n..(edge.to + 1) * n];
                add(&edge.weights, Some(values), T::of(scale));
            }
        }
        log_scale
    }

    /// The next layer. `step` computes Σ_z' a(z'|z) u(z') for all rows, or the largest of these terms.
    pub(super) fn layer<E>(
        &self,
        n_left: usize,
        before: Option<&Layer<T>>,
        combine: Combine,
        step: impl Fn(&[T], &mut [T]) -> Result<(), E>,
    ) -> Result<Layer<T>, E> {
        let n = self.ends.len();
        let n_rows = self.accepting.len();
        let mut words = vec![T::zero(); n_rows * n];
        let mut log_scales = vec![f64::NEG_INFINITY; n_rows];
        let each = words.par_chunks_exact_mut(n).zip(&mut log_scales).enumerate();
        each.for_each(|(row, (out, log_scale))| {
            let edges = edges_of(self.edges, row);
            *log_scale = self.next_word(edges, row, n_left, before, combine, out);
        });
        let mut rows = vec![T::zero(); n_rows * n];
        step(&words, &mut rows)?;
        let each = rows.par_chunks_exact_mut(n).zip(&mut log_scales);
        each.for_each(|(row, log_scale)| *log_scale += scale_to_one(row));
        Ok(Layer { rows, log_scales })
    }
}

/// The edges from a row. Edges are sorted by their rows.
pub(super) fn edges_of<T>(edges: &[Edge<T>], row: usize) -> &[Edge<T>] {
    let begin = edges.partition_point(|edge| edge.from < row);
    let end = edges.partition_point(|edge| edge.from <= row);
    &edges[begin..end]
}

/// Scales to a maximum of 1 and returns the logarithm of the scale, −∞ for zeros.
fn scale_to_one<T: Real>(row: &mut [T]) -> f64 {
    let max = row.iter().fold(T::zero(), |max, &value| if value > max { value } else { max });
    if max.wide() <= 0.0 {
        row.fill(T::zero());
        return f64::NEG_INFINITY;
    }
    // Subnormal numbers would slow down the products of the next layer.
    let smallest = T::min_positive_value();
    row.iter_mut().for_each(|value| {
        let scaled = *value / max;
        *value = if scaled < smallest { T::zero() } else { scaled };
    });
    max.wide().ln()
}
