//! The table of what every merger would lose, kept up to date by what changes.
//!
//! Let n(s, t) be how often cluster s stands right before cluster t, f(s) how often s stands anywhere,
//! and T the number of tokens. The average mutual information of neighbours is, up to terms that no
//! merger changes,
//!
//! ```text
//! T · MI = Σ_st n(s,t) ln n(s,t) − Σ_s (l(s) + r(s)) ln f(s)        l(s) = Σ_t n(s,t)   r(s) = Σ_t n(t,s)
//! ```
//!
//! With F(x) = x ln x and g(x, y) = F(x + y) − F(x) − F(y), which is zero if x or y is, a merger of v and
//! w loses
//!
//! ```text
//! L(v,w) = M(v,w) − Σ_{x ≠ v,w} [g(n(v,x), n(w,x)) + g(n(x,v), n(x,w))] − B(v,w)
//! M(v,w) = (l+r)(v) · (ln f(vw) − ln f(v)) + (l+r)(w) · (ln f(vw) − ln f(w))       f(vw) = f(v) + f(w)
//! B(v,w) = F(n(v,v) + n(v,w) + n(w,v) + n(w,w)) − F(n(v,v)) − F(n(v,w)) − F(n(w,v)) − F(n(w,w))
//! ```
//!
//! A third cluster x matters for L(v,w) only if both v and w are its neighbours. So when a rare word
//! comes in, or is merged with a frequent one, only pairs with one of its few neighbours change: this
//! makes an insertion or a merger cost C · k for k neighbours, where recomputing costs C².

use crate::counts::cluster_counts::ClusterCounts;
use crate::counts::entropy::EntropyTerms;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Clusters in slots, how often they are neighbours, and what their mergers would lose.
pub(crate) struct LossTable {
    n_slots: usize,
    active: Vec<bool>,
    counts: ClusterCounts,
    /// ln f(s).
    log_frequency: Vec<f64>,
    /// ln (f(s) + f(t)).
    log_sums: Vec<f64>,
    /// L(s, t), symmetric; +∞ where a slot is free, and on the diagonal.
    losses: Vec<f64>,
    /// The least loss of each row, right of the diagonal.
    least: Vec<Least>,
    entropy_terms: EntropyTerms,
}

/// The least loss of a row, and the first slot that has it.
#[derive(Clone, Copy)]
struct Least {
    loss: f64,
    slot: usize,
}

impl Least {
    /// Of a row that must be looked through, because its least loss has risen. No loss and no slot is like
    /// these, so the row stays unknown until then.
    const UNKNOWN: Least = Least { loss: f64::NEG_INFINITY, slot: usize::MAX };
}

impl LossTable {
    pub(crate) fn new(n_slots: usize) -> LossTable {
        let square = n_slots * n_slots;
        LossTable {
            n_slots,
            active: vec![false; n_slots],
            counts: ClusterCounts::new(n_slots),
            log_frequency: vec![0.0; n_slots],
            log_sums: vec![0.0; square],
            losses: vec![f64::INFINITY; square],
            least: vec![Least::UNKNOWN; n_slots],
            entropy_terms: EntropyTerms::new(),
        }
    }

    /// The table of clusters that are all there.
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

    /// A table whose losses were kept: they are sums of many small changes, so computed anew they would
    /// differ in their last bits, which can decide between equal mergers.
    pub(crate) fn with_losses(counts: ClusterCounts, losses: Vec<f64>) -> LossTable {
        let n_slots = counts.n_clusters;
        let mut table = LossTable::new(n_slots);
        table.active = counts.frequency.iter().map(|&frequency| frequency > 0).collect();
        table.counts = counts;
        table.losses = losses;
        (0..n_slots).for_each(|s| table.set_frequency(s, table.counts.frequency[s]));
        table
    }

    /// Puts a cluster into the free slot `s`: how often it stands anywhere, and how often each of the
    /// other clusters, or itself, stands right after and right before it.
    pub(crate) fn insert(
        &mut self,
        s: usize,
        frequency: u64,
        after: &[(usize, u64)],
        before: &[(usize, u64)],
    ) {
        assert!(!self.active[s] && frequency > 0, "a free slot and a word that was seen");
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
        let neighbours = self.neighbours(s);
        self.counts.n_neighbours[s] = 2 * self.counts.right[s * self.n_slots + s];
        for &v in &neighbours {
            let more =
                self.counts.right[s * self.n_slots + v] + self.counts.left[s * self.n_slots + v];
            self.counts.n_neighbours[s] += more;
            self.counts.n_neighbours[v] += more;
            self.raise_margin(v, more, s);
        }
        self.join_pairs(s, &neighbours);
        let loss = |v: usize| self.loss_with(v, s, &neighbours);
        for (v, loss) in with_each(self.others(s, s), neighbours.len(), loss) {
            self.set_loss(v, s, loss);
        }
    }

    /// Merges two clusters, and tells which slot has the result; the other one is free.
    pub(crate) fn merge(&mut self, a: usize, b: usize) -> (usize, usize) {
        let (n_a, n_b) = (self.neighbours(a).len(), self.neighbours(b).len());
        // What costs is to go through the neighbours of the one that vanishes.
        let (s, t) = if n_a <= n_b { (a, b) } else { (b, a) };
        let neighbours: Vec<usize> = self.neighbours(s).into_iter().filter(|&v| v != t).collect();
        self.merge_in_pairs(s, t, &neighbours);
        let losses = self.losses_after_merger(s, t, &neighbours);
        self.add_counts(s, t);
        for (v, loss) in losses {
            self.set_loss(v, t, loss);
        }
        self.release(s);
        (t, s)
    }

    /// The two clusters whose merger loses least; the lowest slots, if several lose the same.
    pub(crate) fn best_merger(&mut self) -> Option<(usize, usize)> {
        let mut best = (f64::INFINITY, None);
        for v in 0..self.n_slots {
            if self.least[v].slot == Least::UNKNOWN.slot {
                self.least[v] = self.find_least(v);
            }
            let Least { loss, slot: w } = self.least[v];
            if loss < best.0 {
                best = (loss, Some((v, w)));
            }
        }
        best.1
    }

    fn find_least(&self, v: usize) -> Least {
        let row = &self.losses[v * self.n_slots + v + 1..(v + 1) * self.n_slots];
        let loss = row.iter().copied().fold(f64::INFINITY, f64::min);
        let at = row.iter().position(|&other| other == loss).unwrap_or(0);
        Least { loss, slot: v + 1 + at }
    }

    /// How often clusters stand anywhere and next to each other; nothing for a free slot.
    pub(crate) fn counts(&self) -> &ClusterCounts {
        &self.counts
    }

    /// L(s, t), row after row; +∞ where a slot is free, and on the diagonal.
    pub(crate) fn losses(&self) -> &[f64] {
        &self.losses
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

    #[inline]
    fn set_loss(&mut self, v: usize, w: usize, loss: f64) {
        self.losses[v * self.n_slots + w] = loss;
        self.losses[w * self.n_slots + v] = loss;
        let (row, slot) = (v.min(w), v.max(w));
        let least = self.least[row];
        // Nearly always neither is true.
        if loss <= least.loss || slot == least.slot {
            self.least[row] = if loss < least.loss || (loss == least.loss && slot <= least.slot) {
                Least { loss, slot }
            } else if slot == least.slot {
                Least::UNKNOWN
            } else {
                least
            };
        }
    }

    #[inline]
    fn add_loss(&mut self, v: usize, w: usize, more: f64) {
        self.set_loss(v, w, self.losses[v * self.n_slots + w] + more);
    }

    /// The active slots but `s` and `t`.
    fn others(&self, s: usize, t: usize) -> Vec<usize> {
        (0..self.n_slots).filter(|&v| self.active[v] && v != s && v != t).collect()
    }

    /// The other clusters that stand right before or after `s`.
    fn neighbours(&self, s: usize) -> Vec<usize> {
        let row = s * self.n_slots;
        let is_neighbour =
            |v: &usize| *v != s && self.counts.right[row + v] + self.counts.left[row + v] > 0;
        (0..self.n_slots).filter(is_neighbour).collect()
    }

    /// `v` has `more` neighbours: all its mergers lose more, except that with `s`, not yet known.
    fn raise_margin(&mut self, v: usize, more: u64, s: usize) {
        for w in self.others(v, s) {
            let log_ratio = self.log_sums[v * self.n_slots + w] - self.log_frequency[v];
            self.add_loss(v, w, more as f64 * log_ratio);
        }
    }

    /// The new cluster `s` is a third one for all pairs of its neighbours.
    fn join_pairs(&mut self, s: usize, neighbours: &[usize]) {
        let row = s * self.n_slots;
        for (i, &v) in neighbours.iter().enumerate() {
            for &w in &neighbours[i + 1..] {
                let gain = self
                    .entropy_terms
                    .g(self.counts.right[row + v], self.counts.right[row + w])
                    + self.entropy_terms.g(self.counts.left[row + v], self.counts.left[row + w]);
                if gain != 0.0 {
                    self.add_loss(v, w, -gain);
                }
            }
        }
    }

    /// s and t become one third cluster for all pairs of others: L(v,w) changes by
    /// g(s_v, s_w) + g(t_v, t_w) − g(s_v + t_v, s_w + t_w) on each side, which is zero unless v or w is a
    /// neighbour of s.
    fn merge_in_pairs(&mut self, s: usize, t: usize, neighbours: &[usize]) {
        let mut is_neighbour = vec![false; self.n_slots];
        neighbours.iter().for_each(|&v| is_neighbour[v] = true);
        let others = self.others(s, t);
        let n = self.n_slots;
        for &v in neighbours {
            for &w in &others {
                // A pair of two neighbours comes twice, and is done once.
                if w == v || (is_neighbour[w] && w < v) {
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
                    self.add_loss(v, w, change);
                }
            }
        }
    }

    /// L(v, s ∪ t) for all others v, from L(v, t): see the definition above for what differs.
    fn losses_after_merger(&self, s: usize, t: usize, neighbours: &[usize]) -> Vec<(usize, f64)> {
        let n = self.n_slots;
        let terms = &self.entropy_terms;
        let frequency = self.counts.frequency[s] + self.counts.frequency[t];
        let log_frequency = (frequency as f64).ln();
        let n_neighbours = self.counts.n_neighbours[s] + self.counts.n_neighbours[t];
        let own =
            [s, t].iter().flat_map(|&a| [s, t].map(|b| self.counts.right[a * n + b])).sum::<u64>();
        let loss = |v: usize| {
            let log_sum = ((frequency + self.counts.frequency[v]) as f64).ln();
            let margin = self.counts.n_neighbours[v] as f64 * (log_sum - self.log_frequency[v])
                + n_neighbours as f64 * (log_sum - log_frequency);
            let mut loss = self.losses[v * n + t] + margin - self.margin(v, t) + self.block(v, t);
            for side in [&self.counts.right, &self.counts.left] {
                let (row_v, row_s, row_t) = (&side[v * n..], &side[s * n..], &side[t * n..]);
                for &x in neighbours.iter().filter(|&&x| x != v) {
                    loss -= terms.g(row_v[x], row_s[x] + row_t[x]) - terms.g(row_v[x], row_t[x]);
                }
                // s is no third cluster any more.
                loss += terms.g(row_v[s], row_t[s]);
            }
            let to = self.counts.right[v * n + s] + self.counts.right[v * n + t];
            let from = self.counts.left[v * n + s] + self.counts.left[v * n + t];
            loss - terms.block(self.counts.right[v * n + v], to, from, own)
        };
        with_each(self.others(s, t), neighbours.len(), loss)
    }

    /// L(v, s), of which only the neighbours of s need to be looked at.
    fn loss_with(&self, v: usize, s: usize, neighbours: &[usize]) -> f64 {
        let n = self.n_slots;
        let mut loss = self.margin(v, s) - self.block(v, s);
        for side in [&self.counts.right, &self.counts.left] {
            let (row_v, row_s) = (&side[v * n..], &side[s * n..]);
            for &x in neighbours.iter().filter(|&&x| x != v) {
                loss -= self.entropy_terms.g(row_v[x], row_s[x]);
            }
        }
        loss
    }

    /// M(v, w).
    fn margin(&self, v: usize, w: usize) -> f64 {
        let log_sum = self.log_sums[v * self.n_slots + w];
        self.counts.n_neighbours[v] as f64 * (log_sum - self.log_frequency[v])
            + self.counts.n_neighbours[w] as f64 * (log_sum - self.log_frequency[w])
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
        self.counts.n_neighbours[t] += self.counts.n_neighbours[s];
        self.set_frequency(t, self.counts.frequency[s] + self.counts.frequency[t]);
    }

    /// Empties a slot.
    fn release(&mut self, s: usize) {
        let n = self.n_slots;
        self.active[s] = false;
        self.counts.n_neighbours[s] = 0;
        self.counts.frequency[s] = 0;
        for v in 0..n {
            for side in [&mut self.counts.right, &mut self.counts.left] {
                side[s * n + v] = 0;
                side[v * n + s] = 0;
            }
            self.set_loss(v, s, f64::INFINITY);
        }
    }
}

/// Each slot with its loss, which takes time in proportion to `n_neighbours`; by all threads, if that is
/// worth their start.
fn with_each(
    slots: Vec<usize>,
    n_neighbours: usize,
    loss: impl Fn(usize) -> f64 + Sync,
) -> Vec<(usize, f64)> {
    const WORTH: usize = 1 << 16;
    if slots.len() * n_neighbours < WORTH {
        slots.into_iter().map(|v| (v, loss(v))).collect()
    } else {
        slots.into_par_iter().map(|v| (v, loss(v))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    /// T · MI of the clusters in a table, from its counts alone.
    fn information(table: &LossTable) -> f64 {
        table.counts.mutual_information(1_000, 1_000) * 1_000.0 * std::f64::consts::LN_2
    }

    /// Every loss in the table must be what a merger really loses.
    fn assert_losses_are_right(table: &LossTable, of: impl Fn() -> LossTable) {
        for v in 0..table.n_slots {
            for w in v + 1..table.n_slots {
                if table.active[v] && table.active[w] {
                    let mut merged = of();
                    let before = information(&merged);
                    merged.merge(v, w);
                    let expected = before - information(&merged);
                    let found = table.losses[v * table.n_slots + w];
                    assert!((found - expected).abs() < 1e-9, "{v} {w}: {found} {expected}");
                } else {
                    assert_eq!(table.losses[v * table.n_slots + w], f64::INFINITY);
                }
            }
        }
    }

    /// The best merger must be the first of the least losses in the whole table.
    fn assert_best_merger_is_right(table: &mut LossTable) {
        let n = table.n_slots;
        let mut expected = (f64::INFINITY, None);
        for (v, w) in (0..n).flat_map(|v| (v + 1..n).map(move |w| (v, w))) {
            if table.losses[v * n + w] < expected.0 {
                expected = (table.losses[v * n + w], Some((v, w)));
            }
        }
        assert_eq!(table.best_merger(), expected.1);
    }

    /// A table after a number of random insertions and mergers.
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
                    assert_best_merger_is_right(&mut table);
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
            assert_best_merger_is_right(&mut table);
        }
        table
    }

    #[test]
    fn losses_are_what_mergers_lose() {
        for seed in 0..20 {
            for n_steps in [2, 5, 12, 30] {
                let table = random_table(seed, n_steps);
                assert_losses_are_right(&table, || random_table(seed, n_steps));
            }
        }
    }
}
