//! Recursions in log space.

use super::LogChain;
use super::viterbi::trace;
use crate::log_sum_exp;

/// Computes ln α_t(j) = ln local_t(j) + ln Σ_i α_{t−1}(i) pair_{t−1}(i, j), not scaled, for every step.
///
/// The logarithm of the sum over all paths is the [`log_sum_exp`] of the last step. The result is not a
/// [`Matrix`](crate::Matrix), since the number of states may differ from step to step.
pub fn log_forward(chain: &impl LogChain) -> Vec<Vec<f64>> {
    let mut alphas = vec![chain.log_local(0)];
    for step in 1..chain.n_steps() {
        let (pairs, mut local) = (chain.log_pairs(step - 1), chain.log_local(step));
        let before = &alphas[step - 1];
        let n = local.len();
        for (j, local) in local.iter_mut().enumerate() {
            let column = before.iter().enumerate().map(|(i, alpha)| alpha + pairs[i * n + j]);
            *local += log_sum_exp(&column.collect::<Vec<_>>());
        }
        alphas.push(local);
    }
    alphas
}

/// Visits the posterior of the states of every step and of the pairs of every step but the last, from the last step to
/// the first.
///
/// Returns ln Σ over all paths; if that is −∞, nothing is visited.
pub fn log_smooth(
    chain: &impl LogChain,
    mut node: impl FnMut(usize, &[f64]),
    mut edge: impl FnMut(usize, &[f64]),
) -> f64 {
    let alphas = log_forward(chain);
    let log_sum = log_sum_exp(&alphas[alphas.len() - 1]);
    if log_sum == f64::NEG_INFINITY {
        return log_sum;
    }
    let mut beta = vec![0.0; alphas[alphas.len() - 1].len()];
    for step in (0..chain.n_steps()).rev() {
        let alpha = &alphas[step];
        if step + 1 < chain.n_steps() {
            let (mut pairs, local) = (chain.log_pairs(step), chain.log_local(step + 1));
            let weighted: Vec<f64> = local.iter().zip(&beta).map(|(a, b)| a + b).collect();
            for row in pairs.chunks_exact_mut(weighted.len()) {
                row.iter_mut().zip(&weighted).for_each(|(pair, weighted)| *pair += weighted);
            }
            beta = pairs.chunks_exact(weighted.len()).map(log_sum_exp).collect();
            for (row, alpha) in pairs.chunks_exact_mut(weighted.len()).zip(alpha) {
                row.iter_mut().for_each(|pair| *pair = (alpha + *pair - log_sum).exp());
            }
            edge(step, &pairs);
        }
        let nodes = alpha.iter().zip(&beta).map(|(alpha, beta)| (alpha + beta - log_sum).exp());
        node(step, &nodes.collect::<Vec<_>>());
    }
    log_sum
}

/// Returns the path of largest weight and the logarithm of its weight. Ties go to the smallest state.
///
/// If every path has a weight of zero, the logarithm is −∞ and the path is arbitrary.
pub fn log_viterbi(chain: &impl LogChain) -> (Vec<u32>, f64) {
    let mut best = chain.log_local(0);
    let mut origins: Vec<Vec<u32>> = Vec::new();
    for step in 1..chain.n_steps() {
        let (pairs, local) = (chain.log_pairs(step - 1), chain.log_local(step));
        let n = local.len();
        let heaviest = |j: usize| {
            let column = best.iter().enumerate().map(|(i, best)| (i, best + pairs[i * n + j]));
            column.fold((0, f64::NEG_INFINITY), heavier)
        };
        let chosen: Vec<(usize, f64)> = (0..n).map(heaviest).collect();
        origins.push(chosen.iter().map(|&(i, _)| i as u32).collect());
        best = chosen.iter().zip(&local).map(|(&(_, weight), local)| weight + local).collect();
    }
    let last = best.iter().copied().enumerate().fold((0, f64::NEG_INFINITY), heavier);
    (trace(last.0 as u32, &origins), last.1)
}

fn heavier(best: (usize, f64), other: (usize, f64)) -> (usize, f64) {
    if other.1 > best.1 { other } else { best }
}
