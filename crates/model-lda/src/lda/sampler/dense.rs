//! Computes the weights of all topics for every token.
//!
//! This is one vectorized pass over two single-precision rows, which is fastest for few topics. A token of 50 topics
//! needs 448 bytes and 168 operations in 21 vector instructions. Most of the time is latency: of the rows of words,
//! which are therefore prefetched, and of the branch on whether a token keeps its topic, which is random.

use super::shards::Shard;
use super::table::{LANES, Table, padded};
use latens_math::Rng;
use std::array::from_fn;

/// Number of tokens between the prefetch of a row and its use.
const AHEAD: usize = 8;

/// Samples every token of a shard once.
pub(super) fn sample(shard: &mut Shard<'_>) {
    let mut pass = Pass::new(shard);
    match pass.p.len() {
        1 => sample_blocks::<1>(&mut pass, shard),
        2 => sample_blocks::<2>(&mut pass, shard),
        3 => sample_blocks::<3>(&mut pass, shard),
        4 => sample_blocks::<4>(&mut pass, shard),
        5 => sample_blocks::<5>(&mut pass, shard),
        6 => sample_blocks::<6>(&mut pass, shard),
        7 => sample_blocks::<7>(&mut pass, shard),
        8 => sample_blocks::<8>(&mut pass, shard),
        _ => sample_blocks::<0>(&mut pass, shard),
    }
}

/// Samples with rows of `N` blocks, so that the compiler unrolls the loops over blocks; 0 stands for any number.
fn sample_blocks<const N: usize>(pass: &mut Pass, shard: &mut Shard<'_>) {
    latens_math::vectorized(
        #[inline(always)]
        || {
            for document in shard.documents.clone() {
                pass.document::<N>(shard, document);
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
    /// 1 / (N_k + V β), and the same without one token of the topic.
    inverses: Vec<[f32; 2]>,
    /// α_k / (N_k + V β).
    empty: Vec<f32>,
    /// n_dk of the current document.
    counts: Vec<u32>,
    /// (n_dk + α_k) / (N_k + V β).
    weights: Vec<f32>,
    /// The weights of the topics of the current document, without one token of the topic.
    without: Vec<f32>,
    /// The probabilities of the current draw, up to a common factor.
    p: Vec<[f32; LANES]>,
}

impl Pass {
    fn new(shard: &Shard<'_>) -> Pass {
        let mut alpha: Vec<f32> = shard.prior.alpha.iter().map(|&a| a as f32).collect();
        alpha.resize(padded(alpha.len()), 0.0);
        let n = alpha.len();
        let mut pass = Pass {
            alpha,
            beta: shard.prior.beta as f32,
            all_beta: shard.prior.all_beta() as f32,
            inverses: vec![[0.0; 2]; n],
            empty: vec![0.0; n],
            counts: vec![0; n],
            weights: vec![0.0; n],
            without: vec![0.0; n],
            p: vec![[0.0; LANES]; n / LANES],
        };
        (0..n).for_each(|k| pass.resize(k, shard.table.totals()[k]));
        pass
    }

    #[inline(always)]
    fn document<const N: usize>(&mut self, shard: &mut Shard<'_>, document: usize) {
        let Shard { all, table, topics, seed, .. } = shard;
        let mut rng = Rng::stream(*seed, all.number(document) as u64);
        let range = all.range(document);
        let next = &all.types[(range.start + AHEAD).min(all.types.len())..];
        let (types, topics) = (&all.types[range.clone()], topics.document(range));
        self.weights.copy_from_slice(&self.empty);
        for &topic in &*topics {
            let k = usize::from(topic);
            self.counts[k] += 1;
            self.weigh(k);
        }
        for (i, (&token_type, topic)) in types.iter().zip(&mut *topics).enumerate() {
            if let Some(&next) = next.get(i) {
                table.prefetch(next);
            }
            let old = usize::from(*topic);
            let new = self.draw::<N>(table.row(token_type), old, rng.uniform());
            if new != old {
                self.change(table, token_type, old, new);
                *topic = new as u16;
            }
        }
        topics.iter().for_each(|&k| self.counts[usize::from(k)] = 0);
    }

    /// Moves a token from one topic to another.
    #[inline(always)]
    fn change(&mut self, table: &mut Table, token_type: u32, old: usize, new: usize) {
        self.counts[old] -= 1;
        self.resize(old, table.remove(token_type, old));
        self.counts[new] += 1;
        self.resize(new, table.add(token_type, new));
    }

    /// Takes note of the new size of a topic.
    #[inline(always)]
    fn resize(&mut self, k: usize, total: f64) {
        self.inverses[k] = [total, total - 1.0].map(|total| 1.0 / (total as f32 + self.all_beta));
        self.empty[k] = self.alpha[k] * self.inverses[k][0];
        self.weigh(k);
    }

    /// Takes note of the new count of a topic in the current document.
    #[inline(always)]
    fn weigh(&mut self, k: usize) {
        let [inverse, without] = self.inverses[k];
        let n = self.counts[k];
        self.weights[k] = (n as f32 + self.alpha[k]) * inverse;
        self.without[k] = (n.wrapping_sub(1) as f32 + self.alpha[k]) * without;
    }

    /// Draws the topic of a token with probability proportional to weights_k (row_k + β), without this token.
    ///
    /// All counts still include the token in its `old` topic: to take it out first and put it back later would make each
    /// draw wait for memory that was just written.
    #[inline(always)]
    fn draw<const N: usize>(&mut self, row: &[f32], old: usize, uniform: f64) -> usize {
        let with_token = self.weights[old] * (row[old] + self.beta);
        let stays = self.without[old] * (row[old] - 1.0 + self.beta);

        let n_blocks = if N > 0 { N } else { self.p.len() };
        let p = &mut self.p[..n_blocks];
        let weights = &self.weights.as_chunks::<LANES>().0[..n_blocks];
        let row = &row.as_chunks::<LANES>().0[..n_blocks];
        // Even and odd blocks have their own sums, which do not wait for each other.
        let mut sums = [[0.0f32; LANES]; 2];
        for block in 0..n_blocks {
            // Whole arrays, so that the compiler sees that no input changes in between.
            let (weights, row, sum) = (weights[block], row[block], &mut sums[block % 2]);
            let products: [f32; LANES] = from_fn(|lane| weights[lane] * (row[lane] + self.beta));
            *sum = from_fn(|lane| sum[lane] + products[lane]);
            p[block] = products;
        }
        let sums: [f32; LANES] = from_fn(|lane| sums[0][lane] + sums[1][lane]);
        let pairs: [f32; LANES / 2] = from_fn(|lane| sums[lane] + sums[lane + LANES / 2]);
        let all = (pairs[0] + pairs[2]) + (pairs[1] + pairs[3]);
        let goes = (all - with_token).max(0.0);
        let target = uniform as f32 * (goes + stays) - stays;
        if target < 0.0 { old } else { self.other::<N>(old, sums, with_token, target) }
    }

    /// Draws one of the other topics: first a lane, then a place in the lane, without branches.
    #[inline(always)]
    fn other<const N: usize>(
        &mut self,
        old: usize,
        mut sums: [f32; LANES],
        with_token: f32,
        target: f32,
    ) -> usize {
        let n_blocks = if N > 0 { N } else { self.p.len() };
        let p = &mut self.p[..n_blocks];
        let own = &mut sums[old % LANES];
        *own = (*own - with_token).max(0.0);
        p[old / LANES][old % LANES] = 0.0;
        // The sums before each lane. In memory, so that the compiler makes no branches of them.
        let mut before = [0.0f32; LANES];
        for lane in 1..LANES {
            before[lane] = before[lane - 1] + sums[lane - 1];
        }
        let lane: usize = before[1..].iter().map(|&sum| usize::from(sum <= target)).sum();
        let (target, mut sum, mut block) = (target - before[lane], 0.0, 0);
        for p in &p[..n_blocks - 1] {
            sum += p[lane];
            block += usize::from(sum <= target);
        }
        // Because of rounding, the target may exceed the sum of a lane.
        if p[block][lane] > 0.0 { block * LANES + lane } else { self.any_other(old) }
    }

    /// The most probable of the other topics.
    #[cold]
    fn any_other(&self, old: usize) -> usize {
        let p = self.p.as_flattened();
        (0..p.len()).filter(|&k| p[k] > 0.0).max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap_or(old)
    }
}
