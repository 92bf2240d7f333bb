//! Computes the weights of all topics for every token.
//!
//! This is one vectorized pass over two single-precision rows, which is fastest for few topics.

use super::shards::Shard;
use crate::draw::{BLOCK, padded_alpha};
use latens_math::Rng;

/// Samples every token of a shard once.
pub(super) fn sample(shard: &mut Shard<'_>) {
    let mut pass = Pass::new(shard);
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for document in shard.documents.clone() {
                pass.document(shard, document);
            }
        },
    );
}

/// Buffers and constants of a sweep.
struct Pass {
    alpha: Vec<f32>,
    beta: f32,
    /// V β.
    all_beta: f32,
    /// 1 / (N_k + V β).
    inverses: Vec<f32>,
    /// α_k / (N_k + V β).
    empty: Vec<f32>,
    /// n_dk of the current document.
    counts: Vec<u32>,
    /// (n_dk + α_k) / (N_k + V β).
    weights: Vec<f32>,
    sums: Vec<f32>,
}

impl Pass {
    fn new(shard: &Shard<'_>) -> Pass {
        let alpha = padded_alpha(shard.prior.alpha);
        let all_beta = shard.prior.all_beta() as f32;
        let totals = shard.table.totals().iter();
        let inverses: Vec<f32> = totals.map(|&total| 1.0 / (total as f32 + all_beta)).collect();
        let empty = alpha.iter().zip(&inverses).map(|(alpha, inverse)| alpha * inverse).collect();
        let (counts, weights) = (vec![0; alpha.len()], vec![0.0; alpha.len()]);
        let sums = vec![0.0; alpha.len() / BLOCK];
        let beta = shard.prior.beta as f32;
        Pass { alpha, beta, all_beta, inverses, empty, counts, weights, sums }
    }

    #[inline(always)]
    fn document(&mut self, shard: &mut Shard<'_>, document: usize) {
        let Shard { all, table, topics, seed, .. } = shard;
        let mut rng = Rng::stream(*seed, document as u64);
        let range = all.range(document);
        let (types, topics) = (&all.types[range.clone()], topics.document(range));
        self.weights.copy_from_slice(&self.empty);
        for &topic in &*topics {
            let k = usize::from(topic);
            self.counts[k] += 1;
            self.weights[k] = (self.counts[k] as f32 + self.alpha[k]) * self.inverses[k];
        }
        for (&token_type, topic) in types.iter().zip(&mut *topics) {
            let old = usize::from(*topic);
            self.counts[old] -= 1;
            self.resize(old, table.remove(token_type, old));
            let new = self.draw(table.row(token_type), rng.uniform());
            self.counts[new] += 1;
            self.resize(new, table.add(token_type, new));
            *topic = new as u16;
        }
        topics.iter().for_each(|&k| self.counts[usize::from(k)] = 0);
    }

    /// Takes note of the new size of a topic.
    #[inline(always)]
    fn resize(&mut self, k: usize, total: f64) {
        let inverse = 1.0 / (total as f32 + self.all_beta);
        self.inverses[k] = inverse;
        self.empty[k] = self.alpha[k] * inverse;
        self.weights[k] = (self.counts[k] as f32 + self.alpha[k]) * inverse;
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
