//! The scaled forward and backward recursions.

use super::transition::SMALLEST;
use crate::kit::{
    Done, EXACT, Framed, Rng, SINGLE, Sum, Tolerance, assert_near, device, framed, get, holes, put,
    sums, twice,
};
use latens_cuda::{Device, MAX_STATES, Sequences, Shape};
use std::ops::Range;

/// Sums of positive numbers, with errors that add up over the steps.
const RECURSION: Tolerance = Tolerance { of_value: 0.0, of_terms: 3e-5 };

/// Lower bound of emission probabilities, as in the kernels.
const SMALLEST_EMISSION: f64 = 1e-33f32 as f64;

/// Sentences, and the probabilities of their tokens and transitions.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) k: usize,
    offsets: Vec<u32>,
    pub(super) clusters: Vec<u32>,
    slots: Vec<u32>,
    block_of_pair: Vec<u32>,
    pub(super) local: Vec<f32>,
    pub(super) start: Vec<f32>,
    pub(super) blocks: Vec<f32>,
}

impl Text {
    /// Sentences of these lengths. The emissions of some tokens and some blocks are multiplied by `small`.
    pub(super) fn draw(
        k: usize,
        lengths: &[usize],
        n_blocks: usize,
        small: f32,
        rng: &mut Rng,
    ) -> Text {
        let (n_clusters, n_tokens) = (3, lengths.iter().sum::<usize>());
        let ends = lengths.iter().scan(0, |end, len| {
            *end += len;
            Some(*end as u32)
        });
        let offsets: Vec<u32> = [0].into_iter().chain(ends).collect();
        let mut block_of_pair = rng.idxs(n_tokens, n_blocks);
        // The first token of a sentence must not use its block, which has NaN.
        for &begin in offsets.iter().filter(|&&begin| (begin as usize) < n_tokens) {
            block_of_pair[begin as usize] = n_blocks as u32;
        }
        let mut local = rng.positives(n_tokens * k);
        for (t, row) in local.chunks_mut(k).enumerate() {
            let scale = if t % 4 == 1 { small } else { 0.01 };
            row.iter_mut().for_each(|x| *x *= scale);
        }
        let mut blocks = rng.distributions(n_blocks * k, k);
        for block in blocks.chunks_mut(k * k).step_by(3) {
            block.iter_mut().for_each(|x| *x *= small);
        }
        blocks.extend(vec![f32::NAN; k * k]);
        let (clusters, slots) = (rng.idxs(n_tokens, n_clusters), rng.idxs(n_tokens, 11));
        let mut start = rng.distributions(1, n_clusters * k);
        // This start probability gets the lower bound. With a small emission it would underflow.
        if small > 1e-3 {
            start[0] = 0.0;
        }
        Text { k, offsets, clusters, slots, block_of_pair, local, start, blocks }
    }

    pub(super) fn n_tokens(&self) -> usize {
        self.clusters.len()
    }

    pub(super) fn sentences(&self) -> impl Iterator<Item = Range<usize>> {
        self.offsets.windows(2).map(|ends| ends[0] as usize..ends[1] as usize)
    }

    pub(super) fn put(&self, device: &Device) -> Framed<u32> {
        let parts = [&self.offsets[..], &self.clusters, &self.slots, &self.block_of_pair];
        framed(device, &parts.concat())
    }

    /// The sentences that [`Text::put`] has uploaded.
    pub(super) fn sequences<'a>(&self, ints: &'a Framed<u32>) -> Sequences<'a> {
        let (at, n) = (ints.range.start + self.offsets.len(), self.n_tokens());
        Sequences {
            ints: &ints.array,
            offsets: ints.range.start..at,
            clusters: at..at + n,
            slots: at + n..at + 2 * n,
            block_of_pair: at + 2 * n..at + 3 * n,
        }
    }

    pub(super) fn start_at(&self, state: usize) -> f64 {
        f64::from(self.start[state]).max(SMALLEST)
    }

    pub(super) fn local_at(&self, t: usize, j: usize) -> f64 {
        f64::from(self.local[t * self.k + j])
    }

    /// The transition to state j of token t from state i of the one before.
    pub(super) fn transition(&self, t: usize, i: usize, j: usize) -> f64 {
        f64::from(self.blocks[(self.block_of_pair[t] as usize * self.k + i) * self.k + j])
    }
}

/// The results of the recursions in double precision.
#[derive(Debug)]
struct Twin {
    /// Sums to 1 for each token.
    alpha: Vec<f64>,
    /// 1 for the last token of a sentence, else the sums of transitions times `weighted`.
    beta: Vec<f64>,
    /// b ∘ β, with a maximum of 1 for each token.
    weighted: Vec<f64>,
    log_probs: Vec<Sum>,
}

impl Twin {
    fn of(text: &Text) -> Twin {
        let n = text.n_tokens() * text.k;
        let (alpha, beta, weighted) = (vec![0.0; n], vec![1.0; n], vec![0.0; n]);
        let mut twin = Twin { alpha, beta, weighted, log_probs: vec![] };
        for sentence in text.sentences() {
            twin.forward(text, sentence.clone());
            twin.backward(text, sentence);
        }
        twin
    }

    fn forward(&mut self, text: &Text, sentence: Range<usize>) {
        let k = text.k;
        let mut log_prob = Sum::default();
        for t in sentence.clone() {
            let mut row = vec![0.0; k];
            if t == sentence.start {
                let first = text.clusters[t] as usize * k;
                (0..k).for_each(|j| row[j] = text.start_at(first + j));
            } else {
                for i in 0..k {
                    let a = self.alpha[(t - 1) * k + i];
                    (0..k).for_each(|j| row[j] += a * text.transition(t, i, j));
                }
            }
            (0..k).for_each(|j| row[j] *= text.local_at(t, j));
            let mass: f64 = row.iter().sum();
            log_prob += mass.ln();
            (0..k).for_each(|j| self.alpha[t * k + j] = row[j] / mass);
        }
        self.log_probs.push(log_prob);
    }

    fn backward(&mut self, text: &Text, sentence: Range<usize>) {
        let k = text.k;
        for t in sentence.clone().rev() {
            if t + 1 < sentence.end {
                for i in 0..k {
                    let next = (0..k)
                        .map(|j| text.transition(t + 1, i, j) * self.weighted[(t + 1) * k + j]);
                    self.beta[t * k + i] = next.sum();
                }
            }
            let product = |j: usize| self.beta[t * k + j] * text.local_at(t, j);
            let max = (0..k).map(product).fold(0.0, f64::max);
            let row: Vec<f64> = (0..k).map(|j| product(j) / max).collect();
            self.weighted[t * k..(t + 1) * k].copy_from_slice(&row);
        }
    }

    /// α/κ and γ of all tokens, with κ = Σ α ∘ β.
    fn joined(&self, k: usize) -> (Vec<Sum>, Vec<Sum>) {
        join(&self.alpha, &self.beta, k)
    }
}

/// α/κ and α ∘ β/κ of all tokens.
pub(crate) fn join(alpha: &[f64], beta: &[f64], k: usize) -> (Vec<Sum>, Vec<Sum>) {
    let (mut scaled, mut nodes) = (vec![], vec![]);
    for (alpha, beta) in alpha.chunks(k).zip(beta.chunks(k)) {
        let kappa: f64 = alpha.iter().zip(beta).map(|(a, b)| a * b).sum();
        scaled.extend(alpha.iter().map(|a| Sum::from(a / kappa)));
        nodes.extend(alpha.iter().zip(beta).map(|(a, b)| Sum::from(a * b / kappa)));
    }
    (scaled, nodes)
}

#[test]
fn the_twin_agrees_with_the_sum_over_all_paths() {
    let text = Text::draw(3, &[4, 1, 0], 4, 0.1, &mut Rng::new(60));
    let (k, twin) = (text.k, Twin::of(&text));
    let (_, nodes) = twin.joined(k);
    for (sentence, log_prob) in text.sentences().zip(&twin.log_probs) {
        let len = sentence.len();
        let (mut total, mut of_state) = (0.0, vec![0.0; len * k]);
        for path in 0..k.pow(len as u32) {
            let state = |i: usize| path / k.pow(i as u32) % k;
            let mut p = 1.0;
            for (i, t) in sentence.clone().enumerate() {
                let first = text.clusters[t] as usize * k;
                p *= text.local_at(t, state(i));
                p *= match i {
                    0 => text.start_at(first + state(0)),
                    _ => text.transition(t, state(i - 1), state(i)),
                };
            }
            total += p;
            (0..len).for_each(|i| of_state[i * k + state(i)] += p);
        }
        assert!((total.ln() - log_prob.value).abs() < 1e-12, "{total} and {log_prob:?}");
        for (at, expected) in of_state.iter().map(|p| p / total).enumerate() {
            let node = nodes[sentence.start * k + at].value;
            assert!((node - expected).abs() < 1e-12, "γ at {at}: {node} and {expected}");
        }
    }
}

/// Lengths of sentences. The probability of the longest one underflows even in double precision.
pub(super) const LENGTHS: &[usize] = &[1, 2, 7, 0, 150, 3, 12];

/// Compares the forward pass alone, and both passes, with the twin.
fn compare(device: &Device, text: &Text, tolerance: Tolerance) {
    let (k, n, n_sentences) = (text.k, text.n_tokens() * text.k, text.offsets.len() - 1);
    let shape = format!("{n_sentences} sentences of {} tokens, {k} states", text.n_tokens());
    let put_all = || {
        let (local, start) = (put(device, &text.local), put(device, &text.start));
        (local, start, put(device, &text.blocks), text.put(device))
    };
    let twin = Twin::of(text);

    let what = format!("forward_pass: {shape}");
    let (alpha, log_probs) = twice(&what, || {
        let (local, start, blocks, ints) = put_all();
        let (mut alpha, mut log_probs) = (holes(device, n), holes::<f64>(device, n_sentences));
        let probabilities = (&local.array, &start.array, &blocks.array);
        let out = (&mut alpha.array, &mut log_probs.array);
        device.forward_pass(out, probabilities, &text.sequences(&ints), k).done(&what);
        (get(device, &what, &alpha), get(device, &what, &log_probs))
    });
    assert_near(&format!("{what}, alpha"), &alpha, &sums(&twin.alpha), tolerance);
    assert_near(&format!("{what}, ln p"), &log_probs, &twin.log_probs, LN_P);

    let what = format!("both_passes: {shape}");
    let (alpha, nodes, weighted, log_probs) = twice(&what, || {
        let (local, start, blocks, ints) = put_all();
        let (mut alpha, mut log_probs) = (holes(device, n), holes::<f64>(device, n_sentences));
        let (mut nodes, mut weighted) = (holes(device, n), holes(device, n));
        let probabilities = (&local.array, &start.array, &blocks.array);
        let out = (&mut alpha.array, &mut nodes.array, &mut weighted.array);
        device
            .both_passes(out, &mut log_probs.array, probabilities, &text.sequences(&ints), k)
            .done(&what);
        let get_it = |array: &Framed<f32>| get(device, &what, array);
        (get_it(&alpha), get_it(&nodes), get_it(&weighted), get(device, &what, &log_probs))
    });
    let (scaled, expected) = twin.joined(k);
    assert_near(&format!("{what}, weighted"), &weighted, &sums(&twin.weighted), tolerance);
    assert_near(&format!("{what}, alpha"), &alpha, &scaled, tolerance);
    assert_near(&format!("{what}, nodes"), &nodes, &expected, tolerance);
    assert_near(&format!("{what}, ln p"), &log_probs, &twin.log_probs, LN_P);
}

/// Tolerance of sums of logarithms of numbers in single precision.
const LN_P: Tolerance = Tolerance { of_value: 0.0, of_terms: 2e-6 };

#[test]
fn passes_agree_with_the_cpu() {
    let Some(device) = device(&["passes"]) else { return };
    let mut rng = Rng::new(61);
    // Threads keep blocks of up to 128 states in registers: always backward, and forward if k divides 512.
    for k in [1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 64, 96, 100, 127, 128, 129] {
        let text = Text::draw(k, LENGTHS, 7, 0.01, &mut rng);
        compare(&device, &text, RECURSION);
    }
    for k in [256, 500, 512, 513, 700] {
        let text = Text::draw(k, &[1, 2, 6], 4, 0.01, &mut rng);
        compare(&device, &text, RECURSION);
    }
}

#[test]
fn passes_do_not_underflow() {
    let Some(device) = device(&["passes"]) else { return };
    let mut rng = Rng::new(62);
    for k in [1, 4, 7, 64, 100, 128, 130, 600] {
        // Both transitions and emissions of 10⁻²⁵.
        let text = Text::draw(k, &[2, 9, 1, 8], 4, 1e-25, &mut rng);
        compare(&device, &text, RECURSION);
    }
}

#[test]
fn passes_with_the_largest_number_of_states_agree_with_the_cpu() {
    let Some(device) = device(&["passes"]) else { return };
    let text = Text::draw(MAX_STATES, &[3, 1], 1, 0.01, &mut Rng::new(63));
    // A single thread adds thousands of numbers.
    compare(&device, &text, Tolerance { of_value: 0.0, of_terms: 2e-4 });
}

#[test]
fn passes_without_sentences_do_nothing() {
    let Some(device) = device(&["passes"]) else { return };
    let text = Text::draw(4, &[], 2, 1.0, &mut Rng::new(64));
    compare(&device, &text, SINGLE);
}

#[test]
fn tokens_get_the_emissions_of_their_slots() {
    let Some(device) = device(&["place"]) else { return };
    let mut rng = Rng::new(65);
    // The last shape has more numbers than a grid has threads.
    for (k, n_tokens) in [(1, 1), (3, 5), (32, 40), (33, 7), (513, 9), (300, 7_100)] {
        let what = format!("place: {n_tokens} tokens of {k} states");
        let text = Text::draw(k, &[n_tokens], 1, 1.0, &mut rng);
        let mut emission = rng.positives(11 * k);
        emission.iter_mut().step_by(4).for_each(|x| *x *= 1e-34);
        emission[0] = 0.0;
        let got = twice(&what, || {
            let (emission, ints) = (put(&device, &emission), text.put(&device));
            let mut local = holes(&device, n_tokens * k);
            let (out, sequences) = (&mut local.array, text.sequences(&ints));
            device.place(out, &emission.array, &sequences, k).done(&what);
            get(&device, &what, &local)
        });
        let placed = |at: usize| f64::from(emission[text.slots[at / k] as usize * k + at % k]);
        let expected: Vec<Sum> =
            (0..n_tokens * k).map(|at| placed(at).max(SMALLEST_EMISSION).into()).collect();
        assert_near(&what, &got, &expected, EXACT);
    }
}

#[test]
fn joined_passes_agree_with_the_cpu() {
    let Some(device) = device(&["join_passes"]) else { return };
    let mut rng = Rng::new(66);
    for (n, k) in [(0, 3), (1, 1), (7, 31), (8, 32), (9, 33), (100, 5), (3, 1_000)] {
        let what = format!("join_passes: {n} tokens of {k} states");
        let (alpha, beta) = (rng.distributions(n, k), rng.positives(n * k));
        let (scaled, nodes) = twice(&what, || {
            let (mut alpha, mut nodes) = (put(&device, &alpha), put(&device, &beta));
            device
                .join_passes(&mut alpha.array, &mut nodes.array, Shape { rows: n, columns: k })
                .done(&what);
            (get(&device, &what, &alpha), get(&device, &what, &nodes))
        });
        let in_double = |values: &[f32]| values.iter().map(|&x| x.into()).collect::<Vec<f64>>();
        let expected = join(&in_double(&alpha), &in_double(&beta), k);
        assert_near(&format!("{what}, alpha"), &scaled, &expected.0, SINGLE);
        assert_near(&format!("{what}, nodes"), &nodes, &expected.1, SINGLE);
    }
}
