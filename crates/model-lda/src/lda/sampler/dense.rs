//! Computes the weights of all topics for every token.
//!
//! This is one vectorized pass over two single-precision rows, which is fastest for few topics.

use super::shards::Shard;
use super::table::{LANES, padded};
use latens_math::Rng;
use std::array::from_fn;

/// Samples every token of a shard once.
pub(super) fn sample(shard: &mut Shard<'_>) {
    let mut pass = Pass::new(shard);
    latens_math::vectorized(
        #[inline(always)]
        || {
            for document in shard.documents.clone() {
                pass.document(shard, document);
            }
        },
    );
}

/// Buffers and constants of a sweep. Rows have one number per topic and are padded with zeros.
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
    /// The probabilities of the current draw, up to a common factor.
    p: Vec<[f32; LANES]>,
}

impl Pass {
    fn new(shard: &Shard<'_>) -> Pass {
        let mut alpha: Vec<f32> = shard.prior.alpha.iter().map(|&a| a as f32).collect();
        alpha.resize(padded(alpha.len()), 0.0);
        let all_beta = shard.prior.all_beta() as f32;
        let totals = shard.table.totals().iter();
        let inverses: Vec<f32> = totals.map(|&total| 1.0 / (total as f32 + all_beta)).collect();
        let empty = alpha.iter().zip(&inverses).map(|(alpha, inverse)| alpha * inverse).collect();
        let (counts, weights) = (vec![0; alpha.len()], vec![0.0; alpha.len()]);
        let p = vec![[0.0; LANES]; alpha.len() / LANES];
        let beta = shard.prior.beta as f32;
        Pass { alpha, beta, all_beta, inverses, empty, counts, weights, p }
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
            let new = self.draw(table.row(token_type), old, table.totals()[old], rng.uniform());
            if new != old {
                self.counts[old] -= 1;
                self.resize(old, table.remove(token_type, old));
                self.counts[new] += 1;
                self.resize(new, table.add(token_type, new));
                *topic = new as u16;
            }
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

    /// Draws the topic of a token with probability proportional to weights_k (row_k + β), without this token.
    ///
    /// All counts still include the token in its `old` topic, of size `total`: to take it out first and put it back later
    /// would make each draw wait for memory that was just written.
    #[inline(always)]
    fn draw(&mut self, row: &[f32], old: usize, total: f64, uniform: f64) -> usize {
        let with_token = self.weights[old] * (row[old] + self.beta);
        let inverse = 1.0 / ((total - 1.0) as f32 + self.all_beta);
        let weight = ((self.counts[old] - 1) as f32 + self.alpha[old]) * inverse;
        let stays = weight * (row[old] - 1.0 + self.beta);

        let mut sums = [0.0f32; LANES];
        let blocks = self.weights.as_chunks::<LANES>().0.iter().zip(row.as_chunks::<LANES>().0);
        for (p, (weights, row)) in self.p.iter_mut().zip(blocks) {
            // Whole arrays, so that the compiler sees that no input changes in between.
            let products: [f32; LANES] = from_fn(|lane| weights[lane] * (row[lane] + self.beta));
            sums = from_fn(|lane| sums[lane] + products[lane]);
            *p = products;
        }
        let pairs: [f32; LANES / 2] = from_fn(|lane| sums[lane] + sums[lane + LANES / 2]);
        let all = (pairs[0] + pairs[2]) + (pairs[1] + pairs[3]);
        let goes = (all - with_token).max(0.0);
        let target = uniform as f32 * (goes + stays) - stays;
        if target < 0.0 { old } else { self.other(old, sums, with_token, target) }
    }

    /// Draws one of the other topics: first a lane, then a place in the lane, without branches.
    #[inline(always)]
    fn other(&mut self, old: usize, mut sums: [f32; LANES], with_token: f32, target: f32) -> usize {
        let own = &mut sums[old % LANES];
        *own = (*own - with_token).max(0.0);
        self.p[old / LANES][old % LANES] = 0.0;
        let (mut sum, mut before, mut lane) = (0.0, 0.0, 0);
        for of_lane in &sums[..LANES - 1] {
            sum += of_lane;
            let is_past = sum <= target;
            before = if is_past { sum } else { before };
            lane += usize::from(is_past);
        }
        let (target, mut sum, mut block) = (target - before, 0.0, 0);
        for p in &self.p[..self.p.len() - 1] {
            sum += p[lane];
            block += usize::from(sum <= target);
        }
        // Because of rounding, the target may exceed the sum of a lane.
        if self.p[block][lane] > 0.0 { block * LANES + lane } else { self.any_other(old) }
    }

    /// The most probable of the other topics.
    #[cold]
    fn any_other(&self, old: usize) -> usize {
        let p = self.p.as_flattened();
        (0..p.len()).filter(|&k| p[k] > 0.0).max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap_or(old)
    }
}
