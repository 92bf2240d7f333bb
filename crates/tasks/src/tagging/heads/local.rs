//! A classifier of single tokens: softmax(s) of the scores s of tags or, with a hidden layer h = tanh(s + b),
//! softmax(v + Σ_u h_u V_u).

use super::shard::Shard;
use crate::tagging::weights::layout::Layout;
use latens_math::{Real, dot, softmax};

/// Network weights, shared by all tokens.
pub(crate) struct LocalHead<T> {
    n_tags: usize,
    n_hidden: usize,
    stride: usize,
    /// b, V (row-major, units × tags), v; empty without hidden units.
    weights: Vec<T>,
}

impl<T: Real> LocalHead<T> {
    pub(crate) fn new(layout: &Layout, stride: usize) -> LocalHead<T> {
        let weights = vec![T::zero(); layout.network().all().len()];
        LocalHead { n_tags: layout.n_tags, n_hidden: layout.n_hidden, stride, weights }
    }

    /// A head with learned weights; `weights` is empty without hidden units.
    pub(crate) fn fitted(n_tags: usize, n_hidden: usize, weights: &[T]) -> LocalHead<T> {
        LocalHead { n_tags, n_hidden, stride: n_tags.max(n_hidden), weights: weights.to_vec() }
    }

    pub(crate) fn n_weights(&self) -> usize {
        self.weights.len()
    }

    /// Sets the network weights.
    pub(crate) fn prepare(&mut self, weights: &[f64], layout: &Layout) {
        let weights = &weights[layout.network().all()];
        self.weights.iter_mut().zip(weights).for_each(|(to, &from)| *to = T::of(from));
    }

    /// Replaces the scores of a sentence by ∂(−ln p)/∂score and adds its loss and gradient to `shard`.
    #[inline(always)]
    pub(crate) fn run(
        &self,
        tags: &[u16],
        counts: &[bool],
        scores: &mut [T],
        shard: &mut Shard<T>,
    ) {
        let tokens = tags.iter().zip(counts).zip(scores.chunks_exact_mut(self.stride));
        for ((&tag, &counts), scores) in tokens {
            if !counts {
                scores.fill(T::zero());
            } else if self.n_hidden == 0 {
                shard.loss -= softmax_gradient(&mut scores[..self.n_tags], tag);
            } else {
                shard.loss -= self.run_network(tag, scores, &mut shard.gradient);
            }
        }
    }

    /// With p = softmax(v + Σ_u h_u V_u), e = p − onehot(tag) and h = tanh(s + b):
    ///
    /// ∂/∂v = e, ∂/∂V_u = h_u e, ∂/∂b_u = ∂/∂s_u = (1 − h_u²) Σ_y V_uy e_y.
    #[inline(always)]
    fn run_network(&self, tag: u16, scores: &mut [T], gradient: &mut [f64]) -> f64 {
        let (n_hidden, n_tags) = (self.n_hidden, self.n_tags);
        let hidden = &mut scores[..n_hidden];
        let (bias, rest) = self.weights.split_at(n_hidden);
        let (units, offsets) = rest.split_at(n_hidden * n_tags);
        hidden.iter_mut().zip(bias).for_each(|(h, &b)| *h = tanh(*h + b));
        let mut logits = offsets.to_vec();
        for (&h, unit) in hidden.iter().zip(units.chunks_exact(n_tags)) {
            logits.iter_mut().zip(unit).for_each(|(logit, &w)| *logit += h * w);
        }
        let log_prob = softmax_gradient(&mut logits, tag);
        let (d_bias, rest) = gradient.split_at_mut(n_hidden);
        let (d_units, d_offsets) = rest.split_at_mut(n_hidden * n_tags);
        d_offsets.iter_mut().zip(&logits).for_each(|(d, e)| *d += e.wide());
        let rows = units.chunks_exact(n_tags).zip(d_units.chunks_exact_mut(n_tags));
        for ((h, d_bias), (unit, d_unit)) in hidden.iter_mut().zip(d_bias).zip(rows) {
            d_unit.iter_mut().zip(&logits).for_each(|(d, &e)| *d += (*h * e).wide());
            let sum = dot::<8, _>(unit, &logits);
            *h = (T::one() - *h * *h) * sum;
            *d_bias += h.wide();
        }
        log_prob
    }

    /// The logits of the tags of a token.
    pub(crate) fn logits(&self, scores: &[T]) -> Vec<T> {
        if self.n_hidden == 0 {
            return scores[..self.n_tags].to_vec();
        }
        let (bias, rest) = self.weights.split_at(self.n_hidden);
        let (units, offsets) = rest.split_at(self.n_hidden * self.n_tags);
        let mut logits = offsets.to_vec();
        for ((&s, &b), unit) in scores.iter().zip(bias).zip(units.chunks_exact(self.n_tags)) {
            let h = tanh(s + b);
            logits.iter_mut().zip(unit).for_each(|(logit, &w)| *logit += h * w);
        }
        logits
    }
}

/// Replaces logits by ∂(−ln p(tag))/∂logit and returns ln p(tag).
#[inline(always)]
fn softmax_gradient<T: Real>(logits: &mut [T], tag: u16) -> f64 {
    let logit = logits[usize::from(tag)];
    let log_sum = softmax(logits);
    logits[usize::from(tag)] -= T::one();
    (logit - log_sum).wide()
}

/// tanh x = 1 − 2 / (e^2x + 1), which vectorizes. The absolute error is at most the rounding error of 1.
#[inline(always)]
fn tanh<T: Real>(x: T) -> T {
    T::one() - T::of(2.0) / ((x + x).exp_of() + T::one())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectorized_tanh_and_dot_agree_with_the_plain_ones() {
        for x in [-100.0, -30.0, -1.5, -1e-3, 0.0, 1e-6, 0.3, 2.0, 9.0, 50.0] {
            assert!((tanh(x) - f64::tanh(x)).abs() < 1e-15, "{x}");
            assert!((tanh(x as f32) - (x as f32).tanh()).abs() < 3e-7, "{x}");
        }
    }
}
