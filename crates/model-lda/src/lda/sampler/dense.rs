//! Computes the weights of all topics for every token.
//!
//! This is one vectorized pass over two single-precision rows, which is fastest for few topics.

use super::state::LdaState;
use crate::documents::TypedDocuments;
use crate::draw::{BLOCK, padded_alpha};
use latens_math::Rng;

/// Samples every token once. Returns the number of tokens that changed their topic.
pub(super) fn sweep(state: &mut LdaState, documents: &TypedDocuments, beta: f64, seed: u64) -> u64 {
    let alpha = padded_alpha(&state.alpha);
    let mut pass = Pass {
        alpha: &alpha,
        beta: beta as f32,
        all_beta: (state.n_types as f64 * beta) as f32,
        counts: vec![0; state.stride],
        weights: vec![0.0; state.stride],
        sums: vec![0.0; state.stride / BLOCK],
    };
    let mut n_changed = 0;
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for document in 0..documents.len() {
                let mut rng = Rng::stream(seed, document as u64);
                n_changed += pass.document(state, documents, document, &mut rng);
            }
        },
    );
    n_changed
}

/// Buffers and constants of a sweep.
struct Pass<'a> {
    alpha: &'a [f32],
    beta: f32,
    /// V β.
    all_beta: f32,
    /// n_dk of the current document.
    counts: Vec<u32>,
    /// (n_dk + α_k) / (N_k + V β).
    weights: Vec<f32>,
    sums: Vec<f32>,
}

impl Pass<'_> {
    #[inline(always)]
    fn document(
        &mut self,
        state: &mut LdaState,
        documents: &TypedDocuments,
        document: usize,
        rng: &mut Rng,
    ) -> u64 {
        let range = documents.range(document);
        let LdaState { topics, stride, rows, totals, .. } = state;
        self.counts.fill(0);
        topics[range.clone()].iter().for_each(|&k| self.counts[usize::from(k)] += 1);
        totals.iter().enumerate().for_each(|(k, &total)| self.weigh(k, total));
        let mut n_changed = 0;
        for token in range {
            let row = documents.types[token] as usize * *stride;
            let old = usize::from(topics[token]);
            rows.remove(row + old);
            totals[old] -= 1.0;
            self.counts[old] -= 1;
            self.weigh(old, totals[old]);
            let new = self.draw(&rows.values()[row..][..*stride], rng.uniform());
            rows.add(row + new);
            totals[new] += 1.0;
            self.counts[new] += 1;
            self.weigh(new, totals[new]);
            n_changed += u64::from(new != old);
            topics[token] = new as u16;
        }
        n_changed
    }

    #[inline(always)]
    fn weigh(&mut self, k: usize, total: f64) {
        self.weights[k] = (self.counts[k] as f32 + self.alpha[k]) / (total as f32 + self.all_beta);
    }

    /// Draws k with probability proportional to weights_k (row_k + β). Padding has zero weight.
    #[inline(always)]
    fn draw(&mut self, row: &[f32], uniform: f64) -> usize {
        let beta = self.beta;
        let mut total = 0.0;
        let blocks = self.weights.chunks_exact(BLOCK).zip(row.chunks_exact(BLOCK));
        for ((weights, row), sum) in blocks.zip(&mut self.sums) {
            total += block_sum(weights, row, beta);
            *sum = total;
        }
        let target = uniform as f32 * total;
        let mut block = 0;
        while block + 1 < self.sums.len() && self.sums[block] <= target {
            block += 1;
        }
        let mut rest = if block > 0 { target - self.sums[block - 1] } else { target };
        let begin = block * BLOCK;
        let mut last = 0;
        let of_block = self.weights[begin..begin + BLOCK].iter().zip(&row[begin..begin + BLOCK]);
        for (k, (weight, n)) in of_block.enumerate() {
            let weight = weight * (n + beta);
            if rest < weight {
                return begin + k;
            }
            rest -= weight;
            last = if weight > 0.0 { begin + k } else { last };
        }
        // Because of rounding, the target may exceed the sum of this block.
        last
    }
}

#[inline(always)]
fn block_sum(weights: &[f32], row: &[f32], beta: f32) -> f32 {
    let mut p = [0.0f32; BLOCK];
    for k in 0..BLOCK {
        p[k] = weights[k] * (row[k] + beta);
    }
    let mut half = BLOCK / 2;
    while half > 0 {
        for k in 0..half {
            p[k] += p[k + half];
        }
        half /= 2;
    }
    p[0]
}
