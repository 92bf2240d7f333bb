//! Exact inference: the joint chain of all layers, with Kᴹ states.
//!
//! A step of the joint chain is a step of each layer in turn, a product along one axis of the tensor α over joint
//! states: 2 M Kᴹ⁺¹ operations. The pair posterior of layer m combines α advanced through the layers before m with β
//! pulled back through the layers after m.

use crate::distribution::Distribution;
use crate::emission::partition::PartitionTable;
use crate::shape::Shape;
use crate::tensor::kronecker;
use crate::word_rows::MISSING;
use latens_math::Real;

/// The joint chain of all layers.
pub(crate) struct JointChain<'a, T> {
    distribution: &'a Distribution<T>,
    table: &'a PartitionTable<T>,
}

/// Exact posterior of a sentence.
pub(crate) struct JointPosterior<T> {
    pub(crate) log_prob: f64,
    /// γ: tokens × layers × states.
    pub(crate) gamma: Vec<T>,
    /// Expected number of emissions of each joint state.
    pub(crate) emitting: Vec<f64>,
    /// Expected transitions: layers × states × states.
    pub(crate) pairs: Vec<f64>,
}

impl<'a, T: Real> JointChain<'a, T> {
    pub(crate) fn new(
        distribution: &'a Distribution<T>,
        table: &'a PartitionTable<T>,
    ) -> JointChain<'a, T> {
        JointChain { distribution, table }
    }

    /// Posterior of the joint states, by the forward–backward recursions.
    pub(crate) fn posterior(&self, words: &[u32]) -> JointPosterior<T> {
        let shape = self.distribution.shape;
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

    /// Returns α of every token, and the log-likelihood of the sentence.
    fn forward(&self, words: &[u32]) -> (Vec<Vec<T>>, f64) {
        let shape = self.distribution.shape;
        let mut alpha = vec![T::zero(); shape.n_joint()];
        kronecker(&self.distribution.start, shape.n_states, T::one(), &mut alpha);
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

    /// Multiplies by p(word | s).
    fn weigh(&self, word: u32, values: &mut [T]) {
        if word == MISSING {
            return;
        }
        let (shape, word) = (self.distribution.shape, word as usize);
        let mut products = vec![T::zero(); shape.n_joint()];
        let exps = &self.table.exps[word * shape.row()..(word + 1) * shape.row()];
        kronecker(exps, shape.n_states, self.table.base[word], &mut products);
        let probs = products.iter().zip(&self.table.values).map(|(&product, &z)| product / z);
        values.iter_mut().zip(probs).for_each(|(value, p)| *value *= p);
    }

    /// Step of one layer forward: out[… k …] = Σ_j A(j, k) values[… j …].
    fn advance(&self, layer: usize, values: &mut [T]) {
        let k = self.distribution.shape.n_states;
        self.along(layer, values, &|transition, j, to| transition[j * k + to]);
    }

    /// Step of one layer backward: out[… j …] = Σ_k A(j, k) values[… k …].
    fn pull_back(&self, layer: usize, values: &mut [T]) {
        let k = self.distribution.shape.n_states;
        self.along(layer, values, &|transition, from, to| transition[to * k + from]);
    }

    /// Product along the axis of a layer: out[… to …] = Σ_from factor(from, to) values[… from …].
    fn along(&self, layer: usize, values: &mut [T], factor: &dyn Fn(&[T], usize, usize) -> T) {
        let (k, stride) =
            (self.distribution.shape.n_states, stride(self.distribution.shape, layer));
        let transition = &self.distribution.transition[layer * k * k..(layer + 1) * k * k];
        let mut out = vec![T::zero(); k * stride];
        for block in values.chunks_exact_mut(k * stride) {
            out.fill(T::zero());
            for (to, out) in out.chunks_exact_mut(stride).enumerate() {
                for (from, values) in block.chunks_exact(stride).enumerate() {
                    let factor = factor(transition, from, to);
                    out.iter_mut().zip(values).for_each(|(out, &value)| *out += factor * value);
                }
            }
            block.copy_from_slice(&out);
        }
    }

    /// Adds the marginals of each layer to `out`: layers × states.
    fn add_layers(&self, nodes: &[T], out: &mut [T]) {
        let (k, shape) = (self.distribution.shape.n_states, self.distribution.shape);
        for (layer, out) in out.chunks_exact_mut(k).enumerate() {
            for block in nodes.chunks_exact(k * stride(shape, layer)) {
                for (out, values) in out.iter_mut().zip(block.chunks_exact(stride(shape, layer))) {
                    *out += values.iter().copied().sum::<T>();
                }
            }
        }
    }

    /// Adds the pair posterior of every layer; `after` is β times the emission of the later token.
    fn add_pairs(&self, alpha: &[T], after: &[T], pairs: &mut [f64]) {
        let Shape { n_layers, n_states: k, .. } = self.distribution.shape;
        // β pulled back through the layers after m, for every m.
        let mut pulled = vec![after.to_vec()];
        for layer in (1..n_layers).rev() {
            let mut next = pulled[pulled.len() - 1].clone();
            self.pull_back(layer, &mut next);
            pulled.push(next);
        }
        let mut advanced = alpha.to_vec();
        for layer in 0..n_layers {
            let (later, stride) =
                (&pulled[n_layers - 1 - layer], stride(self.distribution.shape, layer));
            let transition = &self.distribution.transition[layer * k * k..(layer + 1) * k * k];
            let mut sums = vec![0.0; k * k];
            for (a, b) in advanced.chunks_exact(k * stride).zip(later.chunks_exact(k * stride)) {
                for (i, a) in a.chunks_exact(stride).enumerate() {
                    for (j, b) in b.chunks_exact(stride).enumerate() {
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

    /// Most likely path of joint states: tokens × layers. Ties go to the lowest states.
    pub(crate) fn best_path(&self, words: &[u32]) -> Vec<u32> {
        let shape = self.distribution.shape;
        let k = shape.n_states;
        let mut best = vec![T::zero(); shape.n_joint()];
        kronecker(&self.distribution.start, k, T::one(), &mut best);
        let mut origins: Vec<Vec<Vec<u16>>> = Vec::with_capacity(words.len());
        for (t, &word) in words.iter().enumerate() {
            let layers = if t > 0 { 0..shape.n_layers } else { 0..0 };
            origins.push(layers.map(|layer| self.advance_best(layer, &mut best)).collect());
            self.weigh(word, &mut best);
            normalize(&mut best);
        }
        let largest = best.iter().fold(T::zero(), |max, &x| if x > max { x } else { max });
        let mut state = best.iter().position(|&x| x == largest).unwrap_or(0);
        let mut path = vec![0; words.len() * shape.n_layers];
        for (t, states) in path.chunks_exact_mut(shape.n_layers).enumerate().rev() {
            for (layer, out) in states.iter_mut().enumerate() {
                *out = (state / stride(shape, layer) % k) as u32;
            }
            for (layer, origins) in origins[t].iter().enumerate().rev() {
                let (origin, stride) = (usize::from(origins[state]), stride(shape, layer));
                state = state - state / stride % k * stride + origin * stride;
            }
        }
        path
    }

    /// Like [`JointChain::advance`] with the maximum instead of the sum. Returns the maximizing states.
    fn advance_best(&self, layer: usize, values: &mut [T]) -> Vec<u16> {
        let (k, stride) =
            (self.distribution.shape.n_states, stride(self.distribution.shape, layer));
        let transition = &self.distribution.transition[layer * k * k..(layer + 1) * k * k];
        let mut origins = vec![0; values.len()];
        let blocks = values.chunks_exact_mut(k * stride).zip(origins.chunks_exact_mut(k * stride));
        for (values, origins) in blocks {
            let before = values.to_vec();
            values.fill(T::zero());
            for (at, (value, origin)) in values.iter_mut().zip(origins).enumerate() {
                let (to, rest) = (at / stride, at % stride);
                for from in 0..k {
                    let weight = before[from * stride + rest] * transition[from * k + to];
                    if weight > *value {
                        (*value, *origin) = (weight, from as u16);
                    }
                }
            }
        }
        origins
    }
}

/// Stride of the states of a layer in a tensor over all layers.
fn stride(shape: Shape, layer: usize) -> usize {
    shape.joint(shape.n_layers - 1 - layer)
}

/// Scales values to a sum of one, and returns the previous sum.
fn normalize<T: Real>(values: &mut [T]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.wide()).sum();
    let scale = T::of(1.0 / sum);
    values.iter_mut().for_each(|value| *value *= scale);
    sum
}
