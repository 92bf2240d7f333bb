//! The most likely paths.

use super::recursion::{LENGTHS, Text};
use crate::kit::{Done, EXACT, Rng, assert_near, device, get, holes, put, sums, twice};
use latens_cuda::Device;
use std::ops::Range;

/// Lower bounds of probabilities, as in the kernels. The path that takes one of them is marked.
const SMALLEST_TRANSITION: f32 = 1e-30;
const SMALLEST_EMISSION: f32 = 1e-33;

/// The results in single precision: they consist of single products and quotients, which are rounded alike everywhere.
#[derive(Debug, Default)]
struct Twin {
    path: Vec<u32>,
    scales: Vec<f32>,
}

/// The device flushes subnormal numbers to zero.
fn flush(x: f32) -> f32 {
    if x < f32::MIN_POSITIVE { 0.0 } else { x }
}

/// Index of the largest number; the first one of ties.
fn first_largest(values: impl Iterator<Item = f32>) -> u32 {
    let larger = |max: (u32, f32), new: (u32, f32)| if new.1 > max.1 { new } else { max };
    (0..).zip(values).fold((0, -1.0), larger).0
}

impl Twin {
    fn of(text: &Text) -> Twin {
        let mut twin = Twin::default();
        text.sentences().for_each(|sentence| twin.add(text, sentence));
        twin
    }

    fn add(&mut self, text: &Text, sentence: Range<usize>) {
        let k = text.k;
        let start = |t: usize, j: usize| text.start_at(text.clusters[t] as usize * k + j) as f32;
        let (transition, local) = (
            |t: usize, i: usize, j: usize| text.transition(t, i, j) as f32,
            |t: usize, j: usize| text.local_at(t, j) as f32,
        );
        let (mut best, mut origins): (Vec<f32>, Vec<Vec<u32>>) = (vec![], vec![]);
        for t in sentence.clone() {
            let weights = |j: usize| best.iter().enumerate().map(move |(i, b)| (b, i, j));
            let weight = |(b, i, j): (&f32, usize, usize)| flush(b * transition(t, i, j));
            let origin = |j: usize| first_largest(weights(j).map(weight));
            let of_state = |j: usize| match t == sentence.start {
                true => start(t, j),
                false => weights(j).map(weight).fold(0.0, f32::max),
            };
            let row: Vec<f32> = (0..k).map(|j| flush(of_state(j) * local(t, j))).collect();
            origins.push((0..k).map(origin).collect());
            let top = row.iter().copied().fold(0.0, f32::max);
            self.scales.push(top);
            best = row.into_iter().map(|x| flush(x / top)).collect();
        }
        let Some(last) = sentence.clone().last() else { return };
        let mut path = vec![first_largest(best.into_iter())];
        for origins in origins[1..].iter().rev() {
            path.push(origins[path[path.len() - 1] as usize]);
        }
        path.reverse();
        for (t, &state) in sentence.clone().zip(&path) {
            let (at, j) = (t - sentence.start, state as usize);
            let p = match at {
                0 => start(t, j),
                _ => transition(t, path[at - 1] as usize, j),
            };
            if p <= SMALLEST_TRANSITION || local(t, j) <= SMALLEST_EMISSION {
                self.scales[t] = 0.0;
            }
        }
        assert_eq!(self.scales.len(), last + 1);
        self.path.extend(path);
    }
}

#[test]
fn the_twin_agrees_with_the_best_of_all_paths() {
    for seed in 70..90 {
        let text = Text::draw(3, &[4, 1, 0, 5], 4, 0.1, &mut Rng::new(seed));
        let (k, twin) = (text.k, Twin::of(&text));
        for sentence in text.sentences().filter(|sentence| !sentence.is_empty()) {
            let len = sentence.len();
            let weight = |path: &[u32]| -> f64 {
                let of_token = |(i, t): (usize, usize)| {
                    let state = path[i] as usize;
                    text.local_at(t, state)
                        * match i {
                            0 => text.start_at(text.clusters[t] as usize * k + state),
                            _ => text.transition(t, path[i - 1] as usize, state),
                        }
                };
                sentence.clone().enumerate().map(of_token).product()
            };
            let paths = (0..k.pow(len as u32)).map(|path| -> Vec<u32> {
                (0..len).map(|i| (path / k.pow(i as u32) % k) as u32).collect()
            });
            let largest = paths.map(|path| weight(&path)).fold(0.0, f64::max);
            let found = weight(&twin.path[sentence.clone()]);
            assert!((found / largest - 1.0).abs() < 1e-5, "{found} and {largest}");
            let scales = twin.scales[sentence.clone()].iter().map(|&scale| f64::from(scale));
            let product: f64 = scales.product();
            assert!((product / largest - 1.0).abs() < 1e-5, "{product} and {largest}");
        }
    }
}

fn compare(device: &Device, text: &Text) -> Twin {
    let (k, n_tokens) = (text.k, text.n_tokens());
    let what = format!("best_paths: {n_tokens} tokens of {k} states");
    let (path, scales) = twice(&what, || {
        let (local, start) = (put(device, &text.local), put(device, &text.start));
        let (blocks, ints) = (put(device, &text.blocks), text.put(device));
        let (mut path, mut scales) = (holes::<u32>(device, n_tokens), holes(device, n_tokens));
        let mut best = holes(device, n_tokens * k);
        let out = (&mut path.array, &mut scales.array);
        let probabilities = (&local.array, &start.array, &blocks.array);
        device
            .best_paths(out, &mut best.array, probabilities, &text.sequences(&ints), k)
            .done(&what);
        get(device, &what, &best);
        (get(device, &what, &path), get(device, &what, &scales))
    });
    let twin = Twin::of(text);
    assert_near(&format!("{what}, scales"), &scales, &sums(&twin.scales), EXACT);
    // After a scale of 0 there are no weights to compare.
    for sentence in
        text.sentences().filter(|tokens| scales[tokens.clone()].iter().all(|&x| x > 0.0))
    {
        assert_eq!(path[sentence.clone()], twin.path[sentence], "{what}");
    }
    twin
}

#[test]
fn paths_agree_with_the_cpu() {
    let Some(device) = device(&["best_paths"]) else { return };
    let mut rng = Rng::new(100);
    // Up to 256 states, several threads share a column.
    for k in [1, 2, 3, 5, 31, 32, 33, 64, 100, 128, 170, 171, 255, 256, 257, 511, 512, 513, 700] {
        let lengths = if k < 200 { LENGTHS } else { &[1, 0, 2, 6] };
        for small in [0.01, 1e-8] {
            compare(&device, &Text::draw(k, lengths, 4, small, &mut rng));
        }
    }
    // More states than other recursions support.
    compare(&device, &Text::draw(6_000, &[3, 1], 1, 0.01, &mut rng));
    compare(&device, &Text::draw(4, &[], 2, 1.0, &mut rng));
}

#[test]
fn the_first_of_equally_likely_states_is_taken() {
    let Some(device) = device(&["best_paths"]) else { return };
    for k in [2, 40, 300, 600] {
        let mut text = Text::draw(k, &[1, 7, 3], 2, 1.0, &mut Rng::new(101));
        text.local.fill(0.5);
        text.start.fill(0.25);
        text.blocks[..2 * k * k].fill(0.125);
        let twin = compare(&device, &text);
        assert!(twin.path.iter().all(|&state| state == 0));
    }
}

#[test]
fn paths_with_raised_probabilities_are_marked() {
    let Some(device) = device(&["best_paths"]) else { return };
    let mut rng = Rng::new(102);
    for k in [3, 40, 300] {
        let mut text = Text::draw(k, &[5, 4, 6, 1], 4, 1.0, &mut rng);
        let is_raised = |text: &Text, t: usize| compare(&device, text).scales[t] == 0.0;
        assert!(!is_raised(&text, 7), "{k} states");
        // All states of token 7, the third one of the second sentence.
        text.local[7 * k..8 * k].fill(SMALLEST_EMISSION);
        assert!(is_raised(&text, 7), "{k} states");
    }
    // The only transition to the second token, and the only start, have the lower bound.
    let mut text = Text::draw(1, &[3, 2], 2, 1.0, &mut rng);
    text.start.fill(0.5);
    text.blocks[..2].fill(SMALLEST_TRANSITION);
    let twin = compare(&device, &text);
    assert!([1, 2, 4].iter().all(|&t| twin.scales[t] == 0.0) && twin.scales[0] > 0.0);
    let mut text = Text::draw(1, &[2], 2, 1.0, &mut rng);
    text.start.fill(0.0);
    assert_eq!(compare(&device, &text).scales[0], 0.0);
}
