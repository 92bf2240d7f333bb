//! Paths drawn from the posterior.

use super::Chain;
use super::scaled::Filtered;
use crate::{Real, Rng, sample_index};

/// Draws a path from the posterior.
///
/// The last state is drawn from α_T, and then every earlier state from
/// p(z_t | z_{t+1}, all steps up to t) ∝ α_t(i) pair_t(i, z_{t+1}), with α from [`super::forward`].
pub fn sample_path<T: Real>(
    chain: &impl Chain<T>,
    filtered: &Filtered<T>,
    rng: &mut Rng,
) -> Vec<u32> {
    let n_steps = chain.n_steps();
    let weights = |values: &[T]| -> Vec<f64> { values.iter().map(|value| value.wide()).collect() };
    let mut path = vec![sample_index(&weights(filtered.step(n_steps - 1)), rng) as u32];
    for step in (0..n_steps - 1).rev() {
        let (next, n) = (path[path.len() - 1] as usize, chain.local(step + 1).len());
        let column = chain.pairs(step).iter().skip(next).step_by(n);
        let alphas = filtered.step(step).iter().zip(column);
        let shares: Vec<f64> = alphas.map(|(alpha, pair)| alpha.wide() * pair.wide()).collect();
        path.push(sample_index(&shares, rng) as u32);
    }
    path.reverse();
    path
}
