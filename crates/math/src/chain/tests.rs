use super::*;
use crate::{Real, Rng};

/// Arbitrary weights with a different number of states per step.
#[derive(Clone)]
struct Toy<T> {
    local: Vec<Vec<T>>,
    pairs: Vec<Vec<T>>,
}

impl<T> Chain<T> for Toy<T> {
    fn n_steps(&self) -> usize {
        self.local.len()
    }

    fn local(&self, step: usize) -> &[T] {
        &self.local[step]
    }

    fn pairs(&self, step: usize) -> &[T] {
        &self.pairs[step]
    }
}

impl<T: Real> LogChain for Toy<T> {
    fn n_steps(&self) -> usize {
        self.local.len()
    }

    fn log_local(&self, step: usize) -> Vec<f64> {
        self.local[step].iter().map(|weight| weight.wide().ln()).collect()
    }

    fn log_pairs(&self, step: usize) -> Vec<f64> {
        self.pairs[step].iter().map(|weight| weight.wide().ln()).collect()
    }
}

fn random_chain<T: Real>(widths: &[usize], seed: u64) -> Toy<T> {
    let mut rng = Rng::new(seed);
    let mut weights = |n: usize| -> Vec<T> { (0..n).map(|_| T::of(rng.uniform() * 2.0)).collect() };
    let local = widths.iter().map(|&n| weights(n)).collect();
    let pairs = widths.windows(2).map(|pair| weights(pair[0] * pair[1])).collect();
    Toy { local, pairs }
}

/// Enumerates all paths with their weights.
fn all_paths<T: Real>(chain: &Toy<T>) -> Vec<(Vec<u32>, f64)> {
    let mut paths = vec![(vec![], 1.0)];
    for (step, local) in chain.local.iter().enumerate() {
        let mut longer = Vec::new();
        for (path, weight) in &paths {
            for (j, here) in local.iter().enumerate() {
                let mut path: Vec<u32> = path.clone();
                let pair = path
                    .last()
                    .map_or(1.0, |&i| chain.pairs[step - 1][i as usize * local.len() + j].wide());
                path.push(j as u32);
                longer.push((path, weight * pair * here.wide()));
            }
        }
        paths = longer;
    }
    paths
}

const WIDTHS: [&[usize]; 5] = [&[1], &[3], &[2, 3], &[3, 1, 4, 2], &[2, 3, 2, 3, 2, 3]];

#[test]
fn all_sums_agree_with_the_sum_over_all_paths() {
    for (seed, widths) in WIDTHS.iter().enumerate() {
        let chain = random_chain::<f64>(widths, seed as u64);
        let paths = all_paths(&chain);
        let total: f64 = paths.iter().map(|(_, weight)| weight).sum();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a} {b}");

        let mut smoothed = Smoothed::default();
        close(smooth(&chain, &mut smoothed).unwrap(), total.ln());
        close(forward(&chain, &mut Filtered::default()).unwrap(), total.ln());
        let share = |wanted: &dyn Fn(&[u32]) -> bool| -> f64 {
            paths.iter().filter(|(path, _)| wanted(path)).map(|(_, weight)| weight / total).sum()
        };
        for step in 0..widths.len() {
            for i in 0..widths[step] {
                close(smoothed.nodes(step)[i], share(&|path| path[step] == i as u32));
            }
        }
        let mut log_nodes = vec![Vec::new(); widths.len()];
        let mut log_edges = vec![Vec::new(); widths.len()];
        let log_total = log_smooth(
            &chain,
            |step, nodes| log_nodes[step] = nodes.to_vec(),
            |step, edges| log_edges[step] = edges.to_vec(),
        );
        close(log_total, total.ln());
        for step in 0..widths.len() - 1 {
            let mut edges = vec![0.0; widths[step] * widths[step + 1]];
            add_edges(&chain, &smoothed, step, &mut edges);
            for (at, &edge) in edges.iter().enumerate() {
                let (i, j) = (at / widths[step + 1], at % widths[step + 1]);
                let wanted = |path: &[u32]| path[step..step + 2] == [i as u32, j as u32];
                close(edge, share(&wanted));
                close(log_edges[step][at], edge);
            }
        }
        for (step, nodes) in log_nodes.iter().enumerate() {
            nodes.iter().zip(smoothed.nodes(step)).for_each(|(&a, &b)| close(a, b));
        }
    }
}

#[test]
fn the_best_path_has_the_largest_weight() {
    for (seed, widths) in WIDTHS.iter().enumerate() {
        let chain = random_chain::<f64>(widths, 10 + seed as u64);
        let paths = all_paths(&chain);
        let (best, weight) = paths.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        for (path, log_weight) in [viterbi(&chain).unwrap(), log_viterbi(&chain)] {
            assert_eq!(&path, best);
            assert!((log_weight - weight.ln()).abs() < 1e-12);
        }
    }
}

#[test]
fn the_best_paths_are_the_first_of_all_paths_sorted_by_weight() {
    for (seed, widths) in WIDTHS.iter().enumerate() {
        let mut chain = random_chain::<f64>(widths, 20 + seed as u64);
        // An impossible state.
        let last = widths.len() - 1;
        if widths[last] > 1 {
            chain.local[last][1] = 0.0;
        }
        let mut paths = all_paths(&chain);
        paths.retain(|path| path.1 > 0.0);
        paths.sort_by(|a, b| b.1.total_cmp(&a.1));
        for n in [1, 2, 7, 1000] {
            let found = log_n_best(&chain, n);
            assert_eq!(found.len(), n.min(paths.len()), "{widths:?}");
            for ((path, log_weight), (expected, weight)) in found.iter().zip(&paths) {
                assert_eq!(path, expected, "{widths:?}, {n}");
                assert!((log_weight - weight.ln()).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn filtered_states_depend_on_earlier_steps_only() {
    let widths = [3, 2, 4];
    let chain = random_chain::<f64>(&widths, 3);
    let mut filtered = Filtered::default();
    forward(&chain, &mut filtered).unwrap();
    for step in 0..widths.len() {
        let mut begin = chain.clone();
        begin.local.truncate(step + 1);
        let paths = all_paths(&begin);
        let total: f64 = paths.iter().map(|(_, weight)| weight).sum();
        for i in 0..widths[step] {
            let ending = paths.iter().filter(|(path, _)| path[step] == i as u32);
            let share: f64 = ending.map(|(_, weight)| weight / total).sum();
            assert!((filtered.step(step)[i] - share).abs() < 1e-12);
        }
    }
}

#[test]
fn paths_are_sampled_in_proportion_to_their_posterior() {
    let chain = random_chain::<f64>(&[2, 3, 2], 4);
    let paths = all_paths(&chain);
    let total: f64 = paths.iter().map(|(_, weight)| weight).sum();
    let mut filtered = Filtered::default();
    forward(&chain, &mut filtered).unwrap();
    let (mut rng, n) = (Rng::new(5), 100_000);
    let drawn: Vec<Vec<u32>> = (0..n).map(|_| sample_path(&chain, &filtered, &mut rng)).collect();
    for (path, weight) in &paths {
        let p = weight / total;
        let share = drawn.iter().filter(|other| *other == path).count() as f64 / n as f64;
        // Five standard deviations of a binomial.
        assert!((share - p).abs() < 5.0 * (p * (1.0 - p) / n as f64).sqrt(), "{path:?}");
    }
}

#[test]
fn single_precision_agrees_with_double() {
    let widths = [40, 17, 33, 64, 5];
    let wide = random_chain::<f64>(&widths, 6);
    let narrow = |rows: &[Vec<f64>]| -> Vec<Vec<f32>> {
        rows.iter().map(|row| row.iter().map(|&value| value as f32).collect()).collect()
    };
    let chain = Toy { local: narrow(&wide.local), pairs: narrow(&wide.pairs) };
    let (mut a, mut b) = (Smoothed::default(), Smoothed::default());
    let (log_a, log_b) = (smooth(&chain, &mut a).unwrap(), smooth(&wide, &mut b).unwrap());
    assert!((log_a - log_b).abs() < 1e-5);
    for step in 0..widths.len() {
        for (a, b) in a.nodes(step).iter().zip(b.nodes(step)) {
            assert!((a.wide() - b).abs() < 1e-5 * b);
        }
    }
}

#[test]
fn a_hundred_thousand_steps_stay_finite() {
    let n_steps = 100_000;
    let mut chain = random_chain::<f32>(&vec![3; n_steps], 7);
    // One step in a hundred has tiny weights.
    chain.local.iter_mut().step_by(100).for_each(|local| {
        local.iter_mut().for_each(|weight| *weight *= 1e-18);
    });
    let mut smoothed = Smoothed::default();
    let log_sum = smooth(&chain, &mut smoothed).unwrap();
    assert!(log_sum.is_finite());
    for step in 0..n_steps {
        let sum: f32 = smoothed.nodes(step).iter().sum();
        assert!((sum - 1.0).abs() < 1e-5);
    }
    let log_space_sum = log_smooth(&chain, |_, _| (), |_, _| ());
    // Every step rounds once by at most 1e-7.
    assert!((log_sum - log_space_sum).abs() < 1e-7 * n_steps as f64);
}

#[test]
fn weights_that_underflow_need_log_space() {
    let mut chain = random_chain::<f32>(&[2, 2, 2], 8);
    chain.local[1] = vec![1e-36, 1e-37];
    assert_eq!(forward(&chain, &mut Filtered::default()), None);
    assert_eq!(smooth(&chain, &mut Smoothed::default()), None);
    assert_eq!(viterbi(&chain), None);
    let total: f64 = all_paths(&chain).iter().map(|(_, weight)| weight).sum();
    assert!((log_smooth(&chain, |_, _| (), |_, _| ()) - total.ln()).abs() < 1e-12);
}

#[test]
fn an_impossible_chain_has_a_weight_of_zero() {
    let mut chain = random_chain::<f64>(&[2, 2], 9);
    chain.pairs[0] = vec![0.0; 4];
    assert_eq!(forward(&chain, &mut Filtered::default()), None);
    let visited = |_: usize, _: &[f64]| panic!("an impossible chain has no posterior");
    assert_eq!(log_smooth(&chain, visited, visited), f64::NEG_INFINITY);
    assert_eq!(log_viterbi(&chain).1, f64::NEG_INFINITY);
}

#[test]
fn permuting_the_states_permutes_the_posterior() {
    let chain = random_chain::<f64>(&[3, 3, 3], 10);
    let order = [2, 0, 1];
    let renamed = Toy {
        local: chain.local.iter().map(|local| order.map(|i| local[i]).to_vec()).collect(),
        pairs: (chain.pairs.iter())
            .map(|pairs| order.iter().flat_map(|i| order.map(|j| pairs[i * 3 + j])).collect())
            .collect(),
    };
    let (mut a, mut b) = (Smoothed::default(), Smoothed::default());
    let (log_a, log_b) = (smooth(&chain, &mut a).unwrap(), smooth(&renamed, &mut b).unwrap());
    assert!((log_a - log_b).abs() < 1e-12);
    for step in 0..3 {
        for (i, &old) in order.iter().enumerate() {
            assert!((a.nodes(step)[old] - b.nodes(step)[i]).abs() < 1e-12);
        }
    }
}
