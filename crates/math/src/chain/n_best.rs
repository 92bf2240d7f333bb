//! The paths of largest weight.

use super::LogChain;

/// The end of a path: its weight, its state one step before, and its rank among the best paths to that state.
type End = (f64, u32, u32);

/// Returns the `n` paths of largest weight and the logarithms of their weights, best first. Fewer if there are fewer paths
/// of positive weight.
///
/// Exact: the best `n` paths to each state extend the best `n` paths to the states one step before. Takes
/// O(steps · states² · n log(states · n)) time and O(steps · states · n) memory.
pub fn log_n_best(chain: &impl LogChain, n: usize) -> Vec<(Vec<u32>, f64)> {
    let is_possible = |end: &End| end.0 > f64::NEG_INFINITY;
    let first = |&weight: &f64| Vec::from_iter(Some((weight, 0, 0)).filter(is_possible));
    // One list of ends per step and state.
    let mut steps: Vec<Vec<Vec<End>>> = vec![chain.log_local(0).iter().map(first).collect()];
    for step in 1..chain.n_steps() {
        let (pairs, local) = (chain.log_pairs(step - 1), chain.log_local(step));
        let before = &steps[step - 1];
        let ends_in = |(state, local): (usize, &f64)| {
            let mut ends: Vec<End> = Vec::new();
            for (i, paths) in before.iter().enumerate() {
                let weight = pairs[i * pairs.len() / before.len() + state] + local;
                let extended = paths.iter().zip(0..);
                ends.extend(extended.map(|(end, rank)| (end.0 + weight, i as u32, rank)));
            }
            ends.retain(is_possible);
            keep_best(&mut ends, n);
            ends
        };
        let ends = local.iter().enumerate().map(ends_in).collect();
        steps.push(ends);
    }
    let last = steps[steps.len() - 1].iter().zip(0..);
    let mut ends: Vec<End> = last
        .flat_map(|(ends, state)| ends.iter().zip(0..).map(move |(end, rank)| (end.0, state, rank)))
        .collect();
    keep_best(&mut ends, n);
    ends.into_iter().map(|(weight, state, rank)| (trace(&steps, state, rank), weight)).collect()
}

/// Sorts by descending weight and keeps the first `n`. Ties go to the smallest state.
fn keep_best(ends: &mut Vec<End>, n: usize) {
    ends.sort_by(|a, b| b.0.total_cmp(&a.0));
    ends.truncate(n);
}

fn trace(steps: &[Vec<Vec<End>>], mut state: u32, mut rank: u32) -> Vec<u32> {
    let mut path = Vec::with_capacity(steps.len());
    for ends in steps.iter().rev() {
        path.push(state);
        (_, state, rank) = ends[state as usize][rank as usize];
    }
    path.reverse();
    path
}
