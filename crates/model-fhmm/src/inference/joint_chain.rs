//! Exact inference: the joint chain of all layers, Kᴹ states.
//!
//! A step of the joint chain is one step of each layer after the other, a product along one axis of the tensor α over
//! joint states: 2 M Kᴹ⁺¹ operations. The posterior of pairs of layer m is made of α advanced through the layers
//! before m and of β pulled back through those after it.

use crate::inference::mean_field::MISSING;
use crate::distribution::Parameters;
use crate::shape::Shape;
use crate::emission::partition::Table;
use crate::tensor::kronecker;
use latens_math::Real;

/// What is needed for exact inference.
pub(crate) struct Joint<'a, T> {
    parameters: &'a Parameters<T>,
    table: &'a Table<T>,
}

/// The exact posterior of a sentence.
pub(crate) struct JointPosterior<T> {
    pub(crate) log_prob: f64,
    /// tokens × layers × states.
    pub(crate) gamma: Vec<T>,
    /// How often each joint state emits a word.
    pub(crate) emitting: Vec<f64>,
    /// layers × states × states.
    pub(crate) pairs: Vec<f64>,
}

impl<'a, T: Real> Joint<'a, T> {
    pub(crate) fn new(parameters: &'a Parameters<T>, table: &'a Table<T>) -> Joint<'a, T> {
        Joint { parameters, table }
    }

    /// The posterior of all joint states, by the forward and backward recursions.
    pub(crate) fn posterior(&self, words: &[u32]) -> JointPosterior<T> {
        let shape = self.parameters.shape;
        let (n, row) = (words.len(), shape.row());
        let (alphas, log_prob) = self.forward(words);
        let mut found = JointPosterior {
            log_prob,
            gamma: vec![T::zero(); n * row],
            emitting: vec![0.0; shape.n_joint()],
            pairs: vec![0.0; row * shape.n_states],
        };
        let mut beta = vec![T::one(); shape.n_joint()];
        for t in (0..n).rev() {
            let mut nodes: Vec<T> = alphas[t].iter().zip(&beta).map(|(&a, &b)| a * b).collect();
            normalize(&mut nodes);
            self.add_layers(&nodes, &mut found.gamma[t * row..(t + 1) * row]);
            if words[t] != MISSING {
                found.emitting.iter_mut().zip(&nodes).for_each(|(sum, p)| *sum += p.wide());
            }
            if t > 0 {
                self.weigh(words[t], &mut beta);
                normalize(&mut beta);
                self.add_pairs(&alphas[t - 1], &beta, &mut found.pairs);
                (0..shape.n_layers).for_each(|layer| self.pull_back(layer, &mut beta));
            }
        }
        found
    }

    /// α of every token, and the log-likelihood of the sentence.
    fn forward(&self, words: &[u32]) -> (Vec<Vec<T>>, f64) {
        let shape = self.parameters.shape;
        let mut alpha = vec![T::zero(); shape.n_joint()];
        kronecker(&self.parameters.start, shape.n_states, T::one(), &mut alpha);
        let (mut alphas, mut log_prob) = (Vec::with_capacity(words.len()), 0.0);
        for (t, &word) in words.iter().enumerate() {
            if t > 0 {
                (0..shape.n_layers).for_each(|layer| self.advance(layer, &mut alpha));
            }
            self.weigh(word, &mut alpha);
            log_prob += normalize(&mut alpha).ln();
            alphas.push(alpha.clone());
        }
        (alphas, log_prob)
    }

    /// Multiplies with p(word | s).
    fn weigh(&self, word: u32, values: &mut [T]) {
        if word == MISSING {
            return;
        }
        let (shape, word) = (self.parameters.shape, word as usize);
        let mut products = vec![T::zero(); shape.n_joint()];
        let exps = &self.table.exps[word * shape.row()..(word + 1) * shape.row()];
        kronecker(exps, shape.n_states, self.table.base[word], &mut products);
        let probs = products.iter().zip(&self.table.values).map(|(&product, &z)| product / z);
        values.iter_mut().zip(probs).for_each(|(value, p)| *value *= p);
    }

    /// A step of one layer: out[… k …] = Σ_j A(j, k) values[… j …].
    fn advance(&self, layer: usize, values: &mut [T]) {
        let k = self.parameters.shape.n_states;
        self.along(layer, values, &|transition, j, to| transition[j * k + to]);
    }

    /// A step back: out[… j …] = Σ_k A(j, k) values[… k …].
    fn pull_back(&self, layer: usize, values: &mut [T]) {
        let k = self.parameters.shape.n_states;
        self.along(layer, values, &|transition, from, to| transition[to * k + from]);
    }

    /// out[… to …] = Σ_from factor(from, to) values[… from …] along the axis of a layer.
    fn along(&self, layer: usize, values: &mut [T], factor: &dyn Fn(&[T], usize, usize) -> T) {
        let (k, inner) = (self.parameters.shape.n_states, inner(self.parameters.shape, layer));
        let transition = &self.parameters.transition[layer * k * k..(layer + 1) * k * k];
        let mut out = vec![T::zero(); k * inner];
        for block in values.chunks_exact_mut(k * inner) {
            out.fill(T::zero());
            for (to, out) in out.chunks_exact_mut(inner).enumerate() {
                for (from, values) in block.chunks_exact(inner).enumerate() {
                    let factor = factor(transition, from, to);
                    out.iter_mut().zip(values).for_each(|(out, &value)| *out += factor * value);
                }
            }
            block.copy_from_slice(&out);
        }
    }

    /// Adds the sums over all other layers to a row of layers × states.
    fn add_layers(&self, nodes: &[T], out: &mut [T]) {
        let (k, shape) = (self.parameters.shape.n_states, self.parameters.shape);
        for (layer, out) in out.chunks_exact_mut(k).enumerate() {
            for block in nodes.chunks_exact(k * inner(shape, layer)) {
                for (out, values) in out.iter_mut().zip(block.chunks_exact(inner(shape, layer))) {
                    *out += values.iter().copied().sum::<T>();
                }
            }
        }
    }

    /// Adds the posterior of pairs of every layer; `after` is β with the emission of the later token.
    fn add_pairs(&self, alpha: &[T], after: &[T], pairs: &mut [f64]) {
        let Shape { n_layers, n_states: k, .. } = self.parameters.shape;
        // β pulled back through all layers after m, for every m.
        let mut pulled = vec![after.to_vec()];
        for layer in (1..n_layers).rev() {
            let mut next = pulled[pulled.len() - 1].clone();
            self.pull_back(layer, &mut next);
            pulled.push(next);
        }
        let mut advanced = alpha.to_vec();
        for layer in 0..n_layers {
            let (later, inner) =
                (&pulled[n_layers - 1 - layer], inner(self.parameters.shape, layer));
            let transition = &self.parameters.transition[layer * k * k..(layer + 1) * k * k];
            let mut sums = vec![0.0; k * k];
            for (a, b) in advanced.chunks_exact(k * inner).zip(later.chunks_exact(k * inner)) {
                for (i, a) in a.chunks_exact(inner).enumerate() {
                    for (j, b) in b.chunks_exact(inner).enumerate() {
                        let sum: T = a.iter().zip(b).map(|(&a, &b)| a * b).sum();
                        sums[i * k + j] += sum.wide() * transition[i * k + j].wide();
                    }
                }
            }
            let total: f64 = sums.iter().sum();
            let out = &mut pairs[layer * k * k..(layer + 1) * k * k];
            out.iter_mut().zip(&sums).for_each(|(out, sum)| *out += sum / total);
            self.advance(layer, &mut advanced);
        }
    }

    /// The most likely path of joint states: for each token the states of all layers. Of equal ones it is the one
    /// with the lowest states.
    pub(crate) fn best_path(&self, words: &[u32]) -> Vec<Vec<u32>> {
        let shape = self.parameters.shape;
        let k = shape.n_states;
        let mut best = vec![T::zero(); shape.n_joint()];
        kronecker(&self.parameters.start, k, T::one(), &mut best);
        let mut origins: Vec<Vec<Vec<u16>>> = Vec::with_capacity(words.len());
        for (t, &word) in words.iter().enumerate() {
            let layers = if t > 0 { 0..shape.n_layers } else { 0..0 };
            origins.push(layers.map(|layer| self.advance_best(layer, &mut best)).collect());
            self.weigh(word, &mut best);
            normalize(&mut best);
        }
        let largest = best.iter().fold(T::zero(), |max, &x| if x > max { x } else { max });
        let mut state = best.iter().position(|&x| x == largest).unwrap_or(0);
        let mut path = vec![vec![]; words.len()];
        for t in (0..words.len()).rev() {
            let digit = |layer| (state / inner(shape, layer) % k) as u32;
            path[t] = (0..shape.n_layers).map(digit).collect();
            for (layer, origins) in origins[t].iter().enumerate().rev() {
                let (origin, inner) = (usize::from(origins[state]), inner(shape, layer));
                state = state - state / inner % k * inner + origin * inner;
            }
        }
        path
    }

    /// As [`Joint::advance`] with the largest term instead of the sum; which one it is comes back.
    fn advance_best(&self, layer: usize, values: &mut [T]) -> Vec<u16> {
        let (k, inner) = (self.parameters.shape.n_states, inner(self.parameters.shape, layer));
        let transition = &self.parameters.transition[layer * k * k..(layer + 1) * k * k];
        let mut origins = vec![0; values.len()];
        let blocks = values.chunks_exact_mut(k * inner).zip(origins.chunks_exact_mut(k * inner));
        for (values, origins) in blocks {
            let before = values.to_vec();
            values.fill(T::zero());
            for (at, (value, origin)) in values.iter_mut().zip(origins).enumerate() {
                let (to, rest) = (at / inner, at % inner);
                for from in 0..k {
                    let weight = before[from * inner + rest] * transition[from * k + to];
                    if weight > *value {
                        (*value, *origin) = (weight, from as u16);
                    }
                }
            }
        }
        origins
    }
}

/// How far states of a layer are apart in a tensor over all layers.
fn inner(shape: Shape, layer: usize) -> usize {
    shape.joint(shape.n_layers - 1 - layer)
}

/// Scales to a sum of one, and returns what the sum was.
fn normalize<T: Real>(values: &mut [T]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.wide()).sum();
    let scale = T::of(1.0 / sum);
    values.iter_mut().for_each(|value| *value *= scale);
    sum
}
