//! Gibbs sampling of one document with fixed topics, at a cost that hardly depends on the number of topics.
//!
//! p(k) ∝ (n_dk + α_k) φ_wk has two parts. The first, n_dk φ_wk, is zero except for the topics of the document. The second,
//! α_k φ_wk, does not change between sweeps: its sum is computed once per token, and its terms are needed only when a draw
//! falls into it.

use crate::draw::{BLOCK, draw_product};
use latens_math::Rng;

pub(crate) struct SparseDocument<'a> {
    /// α_k, padded.
    alpha: &'a [f32],
    /// Σ_k α_k φ_wk of each token.
    priors: Vec<f32>,
    /// n_dk.
    counts: Vec<u32>,
    /// The topics with n_dk > 0.
    present: Vec<u16>,
    /// Scratch space: cumulative sums over `present`, and over blocks of topics.
    sums: Vec<f32>,
    blocks: Vec<f32>,
}

impl<'a> SparseDocument<'a> {
    pub(crate) fn new<'t>(
        types: &[u32],
        topics: &[u16],
        row: &impl Fn(u32) -> &'t [f32],
        alpha: &'a [f32],
    ) -> SparseDocument<'a> {
        let prior = |&t: &u32| row(t).iter().zip(alpha).map(|(phi, a)| phi * a).sum();
        let mut document = SparseDocument {
            alpha,
            priors: types.iter().map(prior).collect(),
            counts: vec![0; alpha.len()],
            present: Vec::new(),
            sums: vec![0.0; topics.len() + 1],
            blocks: vec![0.0; alpha.len() / BLOCK],
        };
        topics.iter().for_each(|&topic| document.add(topic));
        document
    }

    /// Samples every token once.
    #[inline(always)]
    pub(crate) fn sample<'t>(
        &mut self,
        types: &[u32],
        topics: &mut [u16],
        row: &impl Fn(u32) -> &'t [f32],
        rng: &mut Rng,
    ) {
        for ((&token_type, topic), token) in types.iter().zip(topics).zip(0..) {
            self.remove(*topic);
            *topic = self.draw(row(token_type), self.priors[token], rng);
            self.add(*topic);
        }
    }

    fn add(&mut self, topic: u16) {
        let n = &mut self.counts[usize::from(topic)];
        *n += 1;
        if *n == 1 {
            self.present.push(topic);
        }
    }

    fn remove(&mut self, topic: u16) {
        let n = &mut self.counts[usize::from(topic)];
        *n -= 1;
        if *n == 0 {
            self.present.retain(|&k| k != topic);
        }
    }

    #[inline(always)]
    fn draw(&mut self, row: &[f32], prior: f32, rng: &mut Rng) -> u16 {
        let mut of_document = 0.0;
        for (&k, sum) in self.present.iter().zip(&mut self.sums) {
            let k = usize::from(k);
            of_document += self.counts[k] as f32 * row[k];
            *sum = of_document;
        }
        let uniform = rng.uniform();
        let target = uniform as f32 * (of_document + prior);
        let sums = &self.sums[..self.present.len()];
        match sums.iter().position(|&sum| target < sum) {
            Some(place) => self.present[place],
            // A second number, because the first has few digits left.
            None => draw_product(self.alpha, row, &mut self.blocks, rng.uniform()) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::{padded, padded_alpha};

    /// The expected share of each topic, by summing over all assignments of topics to the tokens.
    fn exact(types: &[u32], phi: &[Vec<f32>], alpha: &[f64]) -> Vec<f64> {
        let (n_topics, n) = (alpha.len(), types.len());
        let (mut shares, mut total) = (vec![0.0; n_topics], 0.0);
        for assignment in 0..n_topics.pow(n as u32) {
            let mut counts = vec![0.0; n_topics];
            let (mut p, mut rest) = (1.0, assignment);
            for &t in types {
                let k = rest % n_topics;
                rest /= n_topics;
                p *= (counts[k] + alpha[k]) * f64::from(phi[t as usize][k]);
                counts[k] += 1.0;
            }
            total += p;
            shares.iter_mut().zip(&counts).for_each(|(share, n)| *share += p * n);
        }
        shares.iter().map(|share| share / total / n as f64).collect()
    }

    #[test]
    fn topics_have_their_posterior_probability() {
        let mut rng = Rng::new(4);
        let alpha = [0.1, 0.6, 0.05, 0.3];
        let phi: Vec<Vec<f32>> = (0..3)
            .map(|_| {
                let mut row: Vec<f32> = (0..4).map(|_| rng.uniform() as f32).collect();
                row.resize(padded(4), 0.0);
                row
            })
            .collect();
        let row = |t: u32| phi[t as usize].as_slice();
        let types = [0, 1, 1, 2, 0];
        let wide = padded_alpha(&alpha);
        let mut topics = vec![3u16; types.len()];
        let mut document = SparseDocument::new(&types, &topics, &row, &wide);
        let (n_sweeps, mut shares) = (200_000, [0.0; 4]);
        for _ in 0..n_sweeps {
            document.sample(&types, &mut topics, &row, &mut rng);
            topics.iter().for_each(|&k| shares[usize::from(k)] += 1.0);
        }
        let total = f64::from(n_sweeps) * types.len() as f64;
        for (share, exact) in shares.iter().zip(exact(&types, &phi, &alpha)) {
            assert!((share / total - exact).abs() < 0.005, "{shares:?} {exact}");
        }
    }
}
