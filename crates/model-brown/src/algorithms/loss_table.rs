//! The losses of all mergers, updated incrementally.
//!
//! Let n(s, t) be the number of times that cluster s occurs right before cluster t, f(s) the number of occurrences of
//! s, and T the number of tokens. The mutual information of adjacent clusters is, up to terms that do not change in a
//! merger,
//!
//! ```text
//! T · MI = Σ_st n(s,t) ln n(s,t) − Σ_s (l(s) + r(s)) ln f(s)        l(s) = Σ_t n(s,t)   r(s) = Σ_t n(t,s)
//! ```
//!
//! With F(x) = x ln x and g(x, y) = F(x + y) − F(x) − F(y), which is zero if x or y is, a merger of v and w loses
//!
//! ```text
//! L(v,w) = M(v,w) − Σ_{x ≠ v,w} [g(n(v,x), n(w,x)) + g(n(x,v), n(x,w))] − B(v,w)
//! M(v,w) = (l+r)(v) · (ln f(vw) − ln f(v)) + (l+r)(w) · (ln f(vw) − ln f(w))       f(vw) = f(v) + f(w)
//! B(v,w) = F(n(v,v) + n(v,w) + n(w,v) + n(w,w)) − F(n(v,v)) − F(n(v,w)) − F(n(w,v)) − F(n(w,w))
//! ```
//!
//! A third cluster x contributes to L(v,w) only if both v and w are its neighbors. When a rare word is inserted, or
//! merged with a frequent one, only pairs that contain one of its few neighbors change. An insertion or a merger with
//! k neighbors therefore costs C · k operations, where recomputing the table costs C².

use crate::algorithms::merger_losses::MergerLosses;
use crate::counts::cluster_counts::ClusterCounts;
use crate::counts::entropy::EntropyTerms;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Clusters in slots, their counts, and the losses of their mergers.
pub(crate) struct LossTable {
    n_slots: usize,
    active: Vec<bool>,
    counts: ClusterCounts,
    /// ln f(s).
    log_frequency: Vec<f64>,
    /// ln (f(s) + f(t)).
    log_sums: Vec<f64>,
    /// L(s, t).
    losses: MergerLosses,
    entropy_terms: EntropyTerms,
}

impl LossTable {
    pub(crate) fn new(n_slots: usize) -> LossTable {
        LossTable {
            n_slots,
            active: vec![false; n_slots],
            counts: ClusterCounts::new(n_slots),
            log_frequency: vec![0.0; n_slots],
            log_sums: vec![0.0; n_slots * n_slots],
            losses: MergerLosses::new(n_slots),
            entropy_terms: EntropyTerms::new(),
        }
    }

    /// The table of complete clusters.
    pub(crate) fn of(counts: &ClusterCounts) -> LossTable {
        let n = counts.n_clusters;
        let mut table = LossTable::new(n);
        for s in 0..n {
            let row = |side: &[u64], end: usize| -> Vec<(usize, u64)> {
                side[s * n..s * n + end].iter().copied().enumerate().collect()
            };
            let (after, before) = (row(&counts.right, s + 1), row(&counts.left, s));
            table.insert(s, counts.frequency[s], &after, &before);
        }
        table
    }

    /// The table with saved losses.
    ///
    /// Losses are sums of many small changes. Recomputed, they would differ in their last bits, which can decide
    /// between mergers with equal losses.
    pub(crate) fn with_losses(counts: ClusterCounts, losses: Vec<f64>) -> LossTable {
        let n_slots = counts.n_clusters;
        let mut table = LossTable::new(n_slots);
        table.active = counts.frequency.iter().map(|&frequency| frequency > 0).collect();
        table.counts = counts;
        table.losses = MergerLosses::from_values(n_slots, losses);
        (0..n_slots).for_each(|s| table.set_frequency(s, table.counts.frequency[s]));
        table
    }

    /// Puts a cluster into the free slot `s`, given its frequency and the counts of the clusters right after and right
    /// before it, itself included.
    pub(crate) fn insert(
        &mut self,
        s: usize,
        frequency: u64,
        after: &[(usize, u64)],
        before: &[(usize, u64)],
    ) {
        assert!(!self.active[s] && frequency > 0, "slot {s} must be free, and the word must occur");
        self.active[s] = true;
        self.set_frequency(s, frequency);
        for &(t, count) in after {
            self.counts.right[s * self.n_slots + t] += count;
            self.counts.left[t * self.n_slots + s] += count;
        }
        for &(t, count) in before.iter().filter(|&&(t, _)| t != s) {
            self.counts.right[t * self.n_slots + s] += count;
            self.counts.left[s * self.n_slots + t] += count;
        }
        let neighbors = self.neighbors(s);
        self.counts.n_neighbors[s] = 2 * self.counts.right[s * self.n_slots + s];
        for &v in &neighbors {
            let more =
                self.counts.right[s * self.n_slots + v] + self.counts.left[s * self.n_slots + v];
            self.counts.n_neighbors[s] += more;
            self.counts.n_neighbors[v] += more;
            self.raise_margin(v, more, s);
        }
        self.join_pairs(s, &neighbors);
        let loss = |v: usize| self.loss_with(v, s, &neighbors);
        for (v, loss) in with_each(self.others(s, s), neighbors.len(), loss) {
            self.losses.set(v, s, loss);
        }
    }

    /// Merges two clusters, and returns the slot of the result and the slot that became free.
    pub(crate) fn merge(&mut self, a: usize, b: usize) -> (usize, usize) {
        let (n_a, n_b) = (self.neighbors(a).len(), self.neighbors(b).len());
        // The cost is proportional to the neighbors of the cluster that vanishes.
        let (s, t) = if n_a <= n_b { (a, b) } else { (b, a) };
        let neighbors: Vec<usize> = self.neighbors(s).into_iter().filter(|&v| v != t).collect();
        self.merge_in_pairs(s, t, &neighbors);
        let losses = self.losses_after_merger(s, t, &neighbors);
        self.add_counts(s, t);
        for (v, loss) in losses {
            self.losses.set(v, t, loss);
        }
        self.release(s);
        (t, s)
    }

    /// The two clusters whose merger loses least; the lowest slots in case of a tie.
    pub(crate) fn best_merger(&mut self) -> Option<(usize, usize)> {
        self.losses.best_merger()
    }

    /// The counts of the clusters; zero for free slots.
    pub(crate) fn counts(&self) -> &ClusterCounts {
        &self.counts
    }

    /// L(s, t), row-major; +∞ where a slot is free, and on the diagonal.
    pub(crate) fn losses(&self) -> &[f64] {
        self.losses.values()
    }

    fn set_frequency(&mut self, s: usize, frequency: u64) {
        self.counts.frequency[s] = frequency;
        self.log_frequency[s] = (frequency as f64).ln();
        for t in 0..self.n_slots {
            let log_sum = ((frequency + self.counts.frequency[t]) as f64).ln();
            self.log_sums[s * self.n_slots + t] = log_sum;
            self.log_sums[t * self.n_slots + s] = log_sum;
        }
    }

    /// The active slots except `s` and `t`.
    fn others(&self, s: usize, t: usize) -> Vec<usize> {
        (0..self.n_slots).filter(|&v| self.active[v] && v != s && v != t).collect()
    }

    /// The other clusters right before or right after `s`.
    fn neighbors(&self, s: usize) -> Vec<usize> {
        let row = s * self.n_slots;
        let is_neighbor =
            |v: &usize| *v != s && self.counts.right[row + v] + self.counts.left[row + v] > 0;
        (0..self.n_slots).filter(is_neighbor).collect()
    }

    /// Updates the losses of `v` for `more` additional neighbors, except that with `s`, which is not known yet.
    fn raise_margin(&mut self, v: usize, more: u64, s: usize) {
        for w in self.others(v, s) {
            let log_ratio = self.log_sums[v * self.n_slots + w] - self.log_frequency[v];
            self.losses.add(v, w, more as f64 * log_ratio);
        }
    }

    /// Adds the new cluster `s` as a third cluster to all pairs of its neighbors.
    fn join_pairs(&mut self, s: usize, neighbors: &[usize]) {
        let row = s * self.n_slots;
        for (i, &v) in neighbors.iter().enumerate() {
            for &w in &neighbors[i + 1..] {
                let gain = self
                    .entropy_terms
                    .g(self.counts.right[row + v], self.counts.right[row + w])
                    + self.entropy_terms.g(self.counts.left[row + v], self.counts.left[row + w]);
                if gain != 0.0 {
                    self.losses.add(v, w, -gain);
                }
            }
        }
    }

    /// Merges the third clusters s and t into one for all pairs of other clusters: on each side L(v,w) changes by
    /// g(s_v, s_w) + g(t_v, t_w) − g(s_v + t_v, s_w + t_w), which is zero unless v or w is a neighbor of s.
    fn merge_in_pairs(&mut self, s: usize, t: usize, neighbors: &[usize]) {
        let mut is_neighbor = vec![false; self.n_slots];
        neighbors.iter().for_each(|&v| is_neighbor[v] = true);
        let others = self.others(s, t);
        let n = self.n_slots;
        for &v in neighbors {
            for &w in &others {
                // A pair of two neighbors comes up twice; update it once.
                if w == v || (is_neighbor[w] && w < v) {
                    continue;
                }
                let mut change = 0.0;
                for side in [&self.counts.right, &self.counts.left] {
                    let [s_v, s_w] = [side[s * n + v], side[s * n + w]];
                    let [t_v, t_w] = [side[t * n + v], side[t * n + w]];
                    if s_v == 0 && s_w == 0 {
                        continue;
                    }
                    change += self.entropy_terms.g(s_v, s_w) + self.entropy_terms.g(t_v, t_w)
                        - self.entropy_terms.g(s_v + t_v, s_w + t_w);
                }
                if change != 0.0 {
                    self.losses.add(v, w, change);
                }
            }
        }
    }

    /// L(v, s ∪ t) for all other clusters v, computed from L(v, t) and the terms in which the two differ.
    fn losses_after_merger(&self, s: usize, t: usize, neighbors: &[usize]) -> Vec<(usize, f64)> {
        let n = self.n_slots;
        let terms = &self.entropy_terms;
        let frequency = self.counts.frequency[s] + self.counts.frequency[t];
        let log_frequency = (frequency as f64).ln();
        let n_neighbors = self.counts.n_neighbors[s] + self.counts.n_neighbors[t];
        let own =
            [s, t].iter().flat_map(|&a| [s, t].map(|b| self.counts.right[a * n + b])).sum::<u64>();
        let loss = |v: usize| {
            let log_sum = ((frequency + self.counts.frequency[v]) as f64).ln();
            let margin = self.counts.n_neighbors[v] as f64 * (log_sum - self.log_frequency[v])
                + n_neighbors as f64 * (log_sum - log_frequency);
            let mut loss = self.losses.get(v, t) + margin - self.margin(v, t) + self.block(v, t);
            for side in [&self.counts.right, &self.counts.left] {
                let (row_v, row_s, row_t) = (&side[v * n..], &side[s * n..], &side[t * n..]);
                for &x in neighbors.iter().filter(|&&x| x != v) {
                    loss -= terms.g(row_v[x], row_s[x] + row_t[x]) - terms.g(row_v[x], row_t[x]);
                }
                // s is no longer a third cluster.
                loss += terms.g(row_v[s], row_t[s]);
            }
            let to = self.counts.right[v * n + s] + self.counts.right[v * n + t];
            let from = self.counts.left[v * n + s] + self.counts.left[v * n + t];
            loss - terms.block(self.counts.right[v * n + v], to, from, own)
        };
        with_each(self.others(s, t), neighbors.len(), loss)
    }

    /// L(v, s), which depends only on the neighbors of s.
    fn loss_with(&self, v: usize, s: usize, neighbors: &[usize]) -> f64 {
        let n = self.n_slots;
        let mut loss = self.margin(v, s) - self.block(v, s);
        for side in [&self.counts.right, &self.counts.left] {
            let (row_v, row_s) = (&side[v * n..], &side[s * n..]);
            for &x in neighbors.iter().filter(|&&x| x != v) {
                loss -= self.entropy_terms.g(row_v[x], row_s[x]);
            }
        }
        loss
    }

    /// M(v, w).
    fn margin(&self, v: usize, w: usize) -> f64 {
        let log_sum = self.log_sums[v * self.n_slots + w];
        self.counts.n_neighbors[v] as f64 * (log_sum - self.log_frequency[v])
            + self.counts.n_neighbors[w] as f64 * (log_sum - self.log_frequency[w])
    }

    /// B(v, w).
    fn block(&self, v: usize, w: usize) -> f64 {
        let n = |a: usize, b: usize| self.counts.right[a * self.n_slots + b];
        self.entropy_terms.block(n(v, v), n(v, w), n(w, v), n(w, w))
    }

    /// Adds the counts of s to those of t.
    fn add_counts(&mut self, s: usize, t: usize) {
        let n = self.n_slots;
        let own =
            [s, t].iter().flat_map(|&a| [s, t].map(|b| self.counts.right[a * n + b])).sum::<u64>();
        for v in self.others(s, t) {
            for side in [&mut self.counts.right, &mut self.counts.left] {
                side[t * n + v] += side[s * n + v];
                side[v * n + t] += side[v * n + s];
            }
        }
        self.counts.right[t * n + t] = own;
        self.counts.left[t * n + t] = own;
        self.counts.n_neighbors[t] += self.counts.n_neighbors[s];
        self.set_frequency(t, self.counts.frequency[s] + self.counts.frequency[t]);
    }

    /// Frees a slot.
    fn release(&mut self, s: usize) {
        let n = self.n_slots;
        self.active[s] = false;
        self.counts.n_neighbors[s] = 0;
        self.counts.frequency[s] = 0;
        for v in 0..n {
            for side in [&mut self.counts.right, &mut self.counts.left] {
                side[s * n + v] = 0;
                side[v * n + s] = 0;
            }
            self.losses.set(v, s, f64::INFINITY);
        }
    }
}

/// Each slot with its loss, computed in parallel if the work, proportional to `n_neighbors`, outweighs the overhead.
fn with_each(
    slots: Vec<usize>,
    n_neighbors: usize,
    loss: impl Fn(usize) -> f64 + Sync,
) -> Vec<(usize, f64)> {
    const MIN_PARALLEL_WORK: usize = 1 << 16;
    if slots.len() * n_neighbors < MIN_PARALLEL_WORK {
        slots.into_iter().map(|v| (v, loss(v))).collect()
    } else {
        slots.into_par_iter().map(|v| (v, loss(v))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    /// T · MI of the clusters in a table, computed from its counts.
    fn information(table: &LossTable) -> f64 {
        table.counts.mutual_information(1_000, 1_000) * 1_000.0 * std::f64::consts::LN_2
    }

    /// Asserts that every loss in the table is the loss of the actual merger.
    fn assert_losses_agree_with_mergers(table: &LossTable, of: impl Fn() -> LossTable) {
        for v in 0..table.n_slots {
            for w in v + 1..table.n_slots {
                if table.active[v] && table.active[w] {
                    let mut merged = of();
                    let before = information(&merged);
                    merged.merge(v, w);
                    let expected = before - information(&merged);
                    let found = table.losses.get(v, w);
                    assert!((found - expected).abs() < 1e-9, "{v} {w}: {found} {expected}");
                } else {
                    assert_eq!(table.losses.get(v, w), f64::INFINITY);
                }
            }
        }
    }

    /// Asserts that the best merger is the first one with the smallest loss of the whole table.
    fn assert_best_merger_is_the_first_minimum(table: &mut LossTable) {
        let n = table.n_slots;
        let mut expected = (f64::INFINITY, None);
        for (v, w) in (0..n).flat_map(|v| (v + 1..n).map(move |w| (v, w))) {
            if table.losses.get(v, w) < expected.0 {
                expected = (table.losses.get(v, w), Some((v, w)));
            }
        }
        assert_eq!(table.best_merger(), expected.1);
    }

    /// The table after a number of random insertions and mergers.
    fn random_table(seed: u64, n_steps: usize) -> LossTable {
        let mut rng = Rng::new(seed);
        let mut below = |n: usize| (rng.uniform() * n as f64) as usize;
        let mut table = LossTable::new(6);
        for _ in 0..n_steps {
            let active: Vec<usize> = (0..6).filter(|&s| table.active[s]).collect();
            if active.len() == 6 || (active.len() > 2 && below(3) == 0) {
                let v = active[below(active.len())];
                let w = active[below(active.len())];
                if v != w {
                    table.merge(v, w);
                    assert_best_merger_is_the_first_minimum(&mut table);
                }
                continue;
            }
            let s = (0..6).find(|&s| !table.active[s]).unwrap();
            let mut counts = |itself: bool| -> Vec<(usize, u64)> {
                let mut counts: Vec<(usize, u64)> =
                    active.iter().map(|&t| (t, (below(3) * below(4)) as u64)).collect();
                if itself {
                    counts.push((s, below(3) as u64));
                }
                counts
            };
            let (after, before) = (counts(true), counts(false));
            table.insert(s, 1 + below(20) as u64, &after, &before);
            assert_best_merger_is_the_first_minimum(&mut table);
        }
        table
    }

    #[test]
    fn losses_agree_with_the_change_of_mutual_information() {
        for seed in 0..20 {
            for n_steps in [2, 5, 12, 30] {
                let table = random_table(seed, n_steps);
                assert_losses_agree_with_mergers(&table, || random_table(seed, n_steps));
            }
        }
    }
}
