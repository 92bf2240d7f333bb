//! Coupling of the layers of a token: sums over the states of all layers but one.

use crate::shape::Shape;
use crate::tensor::{keep_first, kronecker, sum_first};
use latens_math::Real;
use latens_math::linalg::{Accum, MatMut, MatRef, matmul};

/// Sums over all joint states with the state of one layer fixed, for a block of tokens.
pub(crate) trait Coupling<T> {
    /// Overwrites `out` (tokens × states) with
    ///
    /// out[t, k] = Σ_{s: s^m = k} Π_{n ≠ m} weights[t, n, s^n] c(s)
    ///
    /// for `layer` m and a function c of joint states. `weights` is tokens × layers × states.
    ///
    /// Call this for the layers in order. Between two calls only the weights of the last layer may change.
    fn sums(&mut self, layer: usize, weights: &[T], out: &mut Vec<T>);
}

/// Coupling by a table of all Kᴹ values.
///
/// With u and v the products of the weights of the layers of each group, a sweep over all layers costs two matrix
/// products, v Cᵀ and u C: 4 Kᴹ operations per token.
pub(crate) struct TableCoupling<'a, T> {
    shape: Shape,
    /// c(s), one row per joint state of the first group.
    table: &'a [T],
    /// Products of the weights of one group: tokens × joint states.
    products: Vec<T>,
    /// Sums over the other group and over the finished layers of this group, for each token.
    rest: Vec<T>,
    next: Vec<T>,
}

impl<'a, T: Real> TableCoupling<'a, T> {
    pub(crate) fn new(shape: Shape, table: &'a [T]) -> TableCoupling<'a, T> {
        TableCoupling { shape, table, products: vec![], rest: vec![], next: vec![] }
    }

    /// Sums over the states of the other group.
    fn enter_group(&mut self, layer: usize, weights: &[T]) {
        let (shape, row) = (self.shape, self.shape.row());
        let (n_rows, n_columns) = (shape.n_rows(), shape.n_columns());
        let is_first = layer == shape.first().start && !shape.first().is_empty();
        let others = if is_first { shape.second() } else { shape.first() };
        let (n_others, n_group) = if is_first { (n_columns, n_rows) } else { (n_rows, n_columns) };
        let n = weights.len() / row;
        self.products.resize(n * n_others, T::zero());
        self.rest.resize(n * n_group, T::zero());
        let products = &mut self.products;
        latens_math::vectorized(
            #[inline(always)]
            || {
                for (out, weights) in
                    products.chunks_exact_mut(n_others).zip(weights.chunks_exact(row))
                {
                    let weights = &weights[shape.layers(others.clone())];
                    kronecker(weights, shape.n_states, T::one(), out);
                }
            },
        );
        let table = MatRef::from_row_major_slice(self.table, n_rows, n_columns);
        let table = if is_first { table.transpose() } else { table };
        let products = MatRef::from_row_major_slice(&self.products, n, n_others);
        let rest = MatMut::from_row_major_slice_mut(&mut self.rest, n, n_group);
        matmul(rest, Accum::Replace, products, table);
    }

    /// Sums over the states of the previous layer, whose weights are now final.
    #[inline(always)]
    fn leave_layer(&mut self, layer: usize, weights: &[T], n_left: usize) {
        let (shape, row, k) = (self.shape, self.shape.row(), self.shape.n_states);
        self.next.resize(weights.len() / row * n_left, T::zero());
        let tensors = self.rest.chunks_exact(n_left * k).zip(weights.chunks_exact(row));
        for (out, (tensor, weights)) in self.next.chunks_exact_mut(n_left).zip(tensors) {
            sum_first(&weights[shape.layer(layer)], tensor, out);
        }
        std::mem::swap(&mut self.rest, &mut self.next);
    }
}

impl<T: Real> Coupling<T> for TableCoupling<'_, T> {
    fn sums(&mut self, layer: usize, weights: &[T], out: &mut Vec<T>) {
        let (shape, row, k) = (self.shape, self.shape.row(), self.shape.n_states);
        let group = shape.group(layer);
        if layer == group.start {
            self.enter_group(layer, weights);
        }
        let n_left = shape.joint(group.end - layer);
        let mut tail = vec![T::zero(); n_left / k];
        out.resize(weights.len() / row * k, T::zero());
        latens_math::vectorized(
            #[inline(always)]
            || {
                if layer > group.start {
                    self.leave_layer(layer - 1, weights, n_left);
                }
                let tensors = self.rest.chunks_exact(n_left).zip(weights.chunks_exact(row));
                for (out, (tensor, weights)) in out.chunks_exact_mut(k).zip(tensors) {
                    let later = &weights[shape.layers(layer + 1..group.end)];
                    kronecker(later, k, T::one(), &mut tail);
                    keep_first(tensor, &tail, out);
                }
            },
        );
    }
}

/// Coupling by Z(s) = Σ_Y e^{b_Y} Π_m E[Y, m, s^m] without a table, for any number of layers (Nepal and Yates 2013, eq.
/// 19).
///
/// It first sums over the states for every word, D_m[t, Y] = Σ_k weights[t, m, k] E[Y, m, k], which costs 4 M K V
/// operations per token.
pub(crate) struct WordCoupling<'a, T> {
    shape: Shape,
    /// E = e^θ: words × layers × states.
    exps: &'a [T],
    /// e^b.
    base: &'a [T],
    /// e^b Π D of the finished layers: tokens × words.
    before: Vec<T>,
    /// Π D of each layer and those after it: layers × tokens × words.
    after: Vec<Vec<T>>,
    factor: Vec<T>,
}

impl<'a, T: Real> WordCoupling<'a, T> {
    pub(crate) fn new(shape: Shape, exps: &'a [T], base: &'a [T]) -> WordCoupling<'a, T> {
        let after = vec![vec![]; shape.n_layers + 1];
        WordCoupling { shape, exps, base, before: vec![], after, factor: vec![] }
    }

    /// Computes D of a layer.
    fn sum_states(&mut self, layer: usize, weights: &[T]) {
        let Shape { n_states: k, n_words, .. } = self.shape;
        let (row, n) = (self.shape.row(), weights.len() / self.shape.row());
        self.factor.resize(n * n_words, T::zero());
        let exps = MatRef::from_row_major_slice(self.exps, n_words, row).subcols(layer * k, k);
        let weights = MatRef::from_row_major_slice(weights, n, row).subcols(layer * k, k);
        let factor = MatMut::from_row_major_slice_mut(&mut self.factor, n, n_words);
        matmul(factor, Accum::Replace, weights, exps.transpose());
    }

    fn begin(&mut self, weights: &[T]) {
        let (n_words, n_layers) = (self.shape.n_words, self.shape.n_layers);
        let n = weights.len() / self.shape.row();
        self.before.clear();
        (0..n).for_each(|_| self.before.extend_from_slice(self.base));
        self.after[n_layers].clear();
        self.after[n_layers].resize(n * n_words, T::one());
        for layer in (1..n_layers).rev() {
            self.sum_states(layer, weights);
            let (out, later) = self.after.split_at_mut(layer + 1);
            let products = self.factor.iter().zip(&later[0]).map(|(&d, &later)| d * later);
            out[layer].clear();
            out[layer].extend(products);
        }
    }

    /// e^b Π D of all layers but one: tokens × words. The order of calls is that of [`Coupling::sums`].
    pub(crate) fn products_of_others(&mut self, layer: usize, weights: &[T]) -> &[T] {
        if layer == 0 {
            self.begin(weights);
        } else {
            self.sum_states(layer - 1, weights);
            self.before.iter_mut().zip(&self.factor).for_each(|(before, &d)| *before *= d);
        }
        self.factor.resize(self.before.len(), T::zero());
        let pairs = self.before.iter().zip(&self.after[layer + 1]);
        self.factor.iter_mut().zip(pairs).for_each(|(out, (&b, &a))| *out = b * a);
        &self.factor
    }
}

impl<T: Real> Coupling<T> for WordCoupling<'_, T> {
    fn sums(&mut self, layer: usize, weights: &[T], out: &mut Vec<T>) {
        let Shape { n_states: k, n_words, .. } = self.shape;
        let (row, n) = (self.shape.row(), weights.len() / self.shape.row());
        self.products_of_others(layer, weights);
        out.resize(n * k, T::zero());
        let exps = MatRef::from_row_major_slice(self.exps, n_words, row).subcols(layer * k, k);
        let products = MatRef::from_row_major_slice(&self.factor, n, n_words);
        let out = MatMut::from_row_major_slice_mut(out, n, k);
        matmul(out, Accum::Replace, products, exps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;
    use crate::emission::partition::PartitionTable;
    use latens_math::Rng;

    #[test]
    fn sums_over_the_table_agree_with_sums_over_all_words() {
        for n_layers in 1..=5 {
            let shape = Shape { n_layers, n_states: 3, n_words: 11 };
            let distribution: Distribution<f64> =
                Distribution::random(shape, &[-0.3; 11], &mut Rng::new(n_layers as u64));
            let table = PartitionTable::of(&distribution);
            let mut rng = Rng::new(7);
            let weights: Vec<f64> = (0..4 * shape.row()).map(|_| rng.uniform()).collect();
            let mut by_table = TableCoupling::new(shape, &table.values);
            let mut by_words = WordCoupling::new(shape, &table.exps, &table.base);
            let (mut a, mut b) = (vec![], vec![]);
            for layer in 0..n_layers {
                by_table.sums(layer, &weights, &mut a);
                by_words.sums(layer, &weights, &mut b);
                for (a, b) in a.iter().zip(&b) {
                    assert!((a - b).abs() < 1e-12 * b.abs(), "{a} {b}");
                }
            }
        }
    }
}
