//! Forward–backward recursions with scaled weights.

use super::Chain;
use crate::{BlockRef, Real};

/// Smallest ratio between the weights of consecutive steps. Below it, single precision may underflow, and the caller
/// has to use log space. It is far above the 10⁻³⁰ at which the sums of [`BlockRef`] start, so that impossible paths
/// are not confused with unlikely ones.
pub const SMALLEST_SCALE: f64 = 1e-22;

/// Probability of each state of each step given all steps up to it.
#[derive(Clone, Debug, Default)]
pub struct Filtered<T> {
    values: Vec<T>,
    offsets: Vec<usize>,
}

impl<T: Real> Filtered<T> {
    /// Number of steps.
    pub fn n_steps(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Probabilities of the states of a step; they sum to one.
    pub fn step(&self, step: usize) -> &[T] {
        &self.values[self.offsets[step]..self.offsets[step + 1]]
    }

    fn clear(&mut self) {
        self.values.clear();
        self.offsets.clear();
        self.offsets.push(0);
    }

    /// Appends a step of `n` zeros and returns the previous step and the new one.
    fn push(&mut self, n: usize) -> (&[T], &mut [T]) {
        let begin = self.values.len();
        let before = self.offsets.iter().rev().nth(1).copied().unwrap_or(begin);
        self.values.resize(begin + n, T::zero());
        self.offsets.push(begin + n);
        let (all, new) = self.values.split_at_mut(begin);
        (&all[before.min(begin)..], new)
    }
}

/// Runs the scaled forward recursion (Rabiner 1989, eq. 19, 20 and 92):
///
/// α_t(j) = local_t(j) Σ_i α_{t−1}(i) pair_{t−1}(i, j) / c_t, with c_t making the sum over j equal 1.
///
/// Returns ln Σ over all paths = Σ_t ln c_t, or `None` if some c_t is below [`SMALLEST_SCALE`]. `filtered` is
/// overwritten with α.
pub fn forward<T: Real>(chain: &impl Chain<T>, filtered: &mut Filtered<T>) -> Option<f64> {
    filtered.clear();
    let mut log_sum = 0.0;
    for step in 0..chain.n_steps() {
        let local = chain.local(step);
        let (before, alpha) = filtered.push(local.len());
        if step == 0 {
            alpha.copy_from_slice(local);
        } else {
            times_matrix(before, chain.pairs(step - 1), alpha);
            alpha.iter_mut().zip(local).for_each(|(alpha, &local)| *alpha *= local);
        }
        log_sum += normalize(alpha)?.ln();
    }
    Some(log_sum)
}

/// Posterior of states, and the factors of the posterior of pairs.
#[derive(Clone, Debug, Default)]
pub struct Smoothed<T> {
    /// α of the forward recursion.
    pub filtered: Filtered<T>,
    /// γ_t, the probability of each state of each step given all steps.
    nodes: Vec<T>,
    /// local_t ∘ β_t, β scaled to a maximum of one.
    weighted: Vec<T>,
    /// Σ_i α_t(i) Σ_j pair_t(i, j) weighted_{t+1}(j).
    totals: Vec<T>,
}

impl<T: Real> Smoothed<T> {
    /// Probability of each state of a step given all steps; the values sum to one.
    pub fn nodes(&self, step: usize) -> &[T] {
        &self.nodes[self.range(step)]
    }

    /// Returns a, a scale and b such that the posterior of pairs of `step` and the next step is
    /// ξ(i, j) = scale · a_i pair(i, j) b_j.
    ///
    /// If all steps have the same pairs, the products a bᵀ of many steps are one matrix product.
    ///
    /// # Panics
    /// If `step` is the last step.
    pub fn edge_factors(&self, step: usize) -> (&[T], T, &[T]) {
        let weighted = &self.weighted[self.range(step + 1)];
        (self.filtered.step(step), T::one() / self.totals[step], weighted)
    }

    fn range(&self, step: usize) -> std::ops::Range<usize> {
        self.filtered.offsets[step]..self.filtered.offsets[step + 1]
    }
}

/// Runs the scaled forward and backward recursions.
///
/// β_t(i) = Σ_j pair_t(i, j) local_{t+1}(j) β_{t+1}(j) is scaled to a maximum of one, which cannot overflow as the
/// scale of the forward recursion could; γ_t = α_t ∘ β_t / Σ α_t β_t.
///
/// Returns ln Σ over all paths, or `None` as [`forward`] does. `out` is overwritten.
pub fn smooth<T: Real>(chain: &impl Chain<T>, out: &mut Smoothed<T>) -> Option<f64> {
    let log_sum = forward(chain, &mut out.filtered)?;
    let n_values = out.filtered.values.len();
    out.nodes.clear();
    out.nodes.resize(n_values, T::zero());
    out.weighted.clone_from(&out.nodes);
    out.totals.clear();
    out.totals.resize(chain.n_steps(), T::one());
    for step in (0..chain.n_steps()).rev() {
        let range = out.range(step);
        let alpha = &out.filtered.values[range.clone()];
        let nodes = &mut out.nodes[range.clone()];
        if step + 1 == chain.n_steps() {
            nodes.copy_from_slice(alpha);
            out.weighted[range].copy_from_slice(chain.local(step));
            continue;
        }
        let next = out.filtered.offsets[step + 1]..out.filtered.offsets[step + 2];
        let (weighted, after) = out.weighted.split_at_mut(range.end);
        let beta = &mut weighted[range];
        matrix_times(chain.pairs(step), &after[..next.len()], beta);
        let pairs = alpha.iter().zip(&*beta);
        nodes.iter_mut().zip(pairs).for_each(|(node, (&alpha, &beta))| *node = alpha * beta);
        out.totals[step] = T::of(normalize(nodes)?);
        let largest = beta.iter().fold(T::zero(), |max, &beta| if beta > max { beta } else { max });
        for (beta, &local) in beta.iter_mut().zip(chain.local(step)) {
            *beta = *beta / largest * local;
        }
    }
    Some(log_sum)
}

/// Adds the posterior of every pair of states of `step` and the next step to `out`, which has the layout of
/// [`Chain::pairs`]: ξ_t(i, j) = α_t(i) pair_t(i, j) local_{t+1}(j) β_{t+1}(j) / Σ_ij of the same.
///
/// # Panics
/// If `step` is the last step, or the length of `out` differs from that of the pairs.
pub fn add_edges<T: Real>(
    chain: &impl Chain<T>,
    smoothed: &Smoothed<T>,
    step: usize,
    out: &mut [T],
) {
    let (filtered, scale, weighted) = smoothed.edge_factors(step);
    let pairs = chain.pairs(step);
    assert_eq!(out.len(), pairs.len(), "`out` must have one value per pair");
    crate::vectorized(
        #[inline(always)]
        || {
            let n = weighted.len();
            let rows = out.chunks_exact_mut(n).zip(pairs.chunks_exact(n));
            for (&alpha, (out, pairs)) in filtered.iter().zip(rows) {
                let factor = alpha * scale;
                for ((out, &pair), &weighted) in out.iter_mut().zip(pairs).zip(weighted) {
                    *out += factor * pair * weighted;
                }
            }
        },
    );
}

/// Scales `values` to a sum of one and returns the previous sum, or `None` if that is too small.
fn normalize<T: Real>(values: &mut [T]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.wide()).sum();
    if sum < SMALLEST_SCALE || !sum.is_finite() {
        return None;
    }
    let scale = T::of(1.0 / sum);
    values.iter_mut().for_each(|value| *value *= scale);
    Some(sum)
}

/// Computes out = rowᵀ · matrix.
fn times_matrix<T: Real>(row: &[T], matrix: &[T], out: &mut [T]) {
    BlockRef::new(matrix, out.len(), 0..row.len(), 0..out.len()).times_rows(row, out);
}

/// Computes out = matrix · column.
fn matrix_times<T: Real>(matrix: &[T], column: &[T], out: &mut [T]) {
    let block = BlockRef::new(matrix, column.len(), 0..out.len(), 0..column.len());
    block.transposed_times_rows(column, out);
}
