//! The probability of each token given those before it.

use super::lockstep;
use super::recursion::{LENGTHS, Text};
use super::transition::SMALLEST;
use crate::kit::{
    Done, Rng, SINGLE, Sum, TF32, Tolerance, assert_near, device, get, holes, put, twice,
};
use latens_cuda::{Device, MAX_STATES, Precision};

/// Rows of α with different scales, which must not matter.
fn alphas(n_tokens: usize, k: usize, rng: &mut Rng) -> Vec<f32> {
    let mut alpha = rng.positives(n_tokens * k);
    for (t, row) in alpha.chunks_mut(k).enumerate() {
        let scale = [1.0, 0.1, 1e6][t % 3];
        row.iter_mut().for_each(|x| *x *= scale);
    }
    alpha
}

/// Σ_j b(j) Σ_i α(i) a(i, j) / Σ_i α(i), with the row of α before a token; without one, its start probabilities.
fn mass(
    k: usize,
    before: Option<&[f32]>,
    start: impl Fn(usize) -> f64,
    transition: impl Fn(usize, usize) -> f64,
    local: impl Fn(usize) -> f64,
) -> Sum {
    let Some(before) = before else { return Sum::of((0..k).map(|j| start(j) * local(j))) };
    let total: f64 = before.iter().map(|&a| f64::from(a)).sum();
    let from = |j: usize| before.iter().enumerate().map(move |(i, &a)| (i, j, f64::from(a)));
    let terms = (0..k).flat_map(from).map(|(i, j, a)| a / total * transition(i, j) * local(j));
    Sum::of(terms)
}

fn compare(device: &Device, text: &Text, tolerance: Tolerance, rng: &mut Rng) {
    let (k, n_tokens) = (text.k, text.n_tokens());
    let alpha = alphas(n_tokens, k, rng);
    let what = format!("token_masses: {n_tokens} tokens of {k} states");
    let got = twice(&what, || {
        let (alpha, local) = (put(device, &alpha), put(device, &text.local));
        let (start, blocks) = (put(device, &text.start), put(device, &text.blocks));
        let (ints, mut masses) = (text.put(device), holes::<f64>(device, n_tokens));
        let (of_tokens, of_states) = ((&alpha.array, &local.array), (&start.array, &blocks.array));
        let (out, sequences) = (&mut masses.array, text.sequences(&ints));
        device.token_masses(out, of_tokens, of_states, &sequences, k).done(&what);
        get(device, &what, &masses)
    });
    let of_token = |t: usize, is_first: bool| {
        let before = (!is_first).then(|| &alpha[(t - 1) * k..t * k]);
        let start = |j: usize| text.start_at(text.clusters[t] as usize * k + j);
        mass(k, before, start, |i, j| text.transition(t, i, j), |j| text.local_at(t, j))
    };
    let of_sentence = |tokens: std::ops::Range<usize>| {
        let first = tokens.start;
        tokens.map(move |t| (t, t == first))
    };
    let expected: Vec<Sum> =
        text.sentences().flat_map(of_sentence).map(|(t, is_first)| of_token(t, is_first)).collect();
    assert_near(&what, &got, &expected, tolerance);
}

#[test]
fn masses_agree_with_the_cpu() {
    let Some(device) = device(&["token_masses"]) else { return };
    let mut rng = Rng::new(90);
    for k in [1, 2, 5, 31, 32, 33, 64, 129, 256, 513, 700] {
        for small in [0.01, 1e-25] {
            let lengths = if k < 200 { LENGTHS } else { &[1, 0, 2, 6] };
            compare(&device, &Text::draw(k, lengths, 4, small, &mut rng), SINGLE, &mut rng);
        }
    }
    // A single thread adds thousands of numbers.
    let text = Text::draw(MAX_STATES, &[3, 1], 1, 0.01, &mut rng);
    compare(&device, &text, Tolerance { of_value: 0.0, of_terms: 2e-4 }, &mut rng);
    compare(&device, &Text::draw(4, &[], 2, 1.0, &mut rng), SINGLE, &mut rng);
}

#[test]
fn masses_of_steps_agree_with_the_cpu() {
    let Some(device) = device(&["mass_rows"]) else { return };
    let mut rng = Rng::new(91);
    let shapes =
        lockstep::SIZES.iter().flat_map(|sizes| lockstep::STATES.iter().map(move |&k| (*sizes, k)));
    for (sizes, k) in shapes {
        let text = lockstep::Text::draw(sizes, k, 0.01, &mut rng);
        let alpha = alphas(text.len() / k, k, &mut rng);
        for (precision, tolerance) in [(Precision::Full, SINGLE), (Precision::Fast, TF32)] {
            let what = format!("masses_in_steps: {precision:?}, {sizes:?} sentences, {k} states");
            let got = twice(&what, || {
                let [local, start, transitions] = text.put(&device);
                let (alpha, mut masses) =
                    (put(&device, &alpha), holes::<f64>(&device, text.len() / k));
                let mut predicted = device.zeros(0).done(&what);
                let (of_tokens, of_states) =
                    ((&alpha.array, &local.array), (&start.array, &transitions.array));
                let (out, steps) = (&mut masses.array, text.steps(precision));
                device
                    .masses_in_steps(out, of_tokens, of_states, steps, &mut predicted)
                    .done(&what);
                get(&device, &what, &masses)
            });
            let of_token = |&(step, _, t): &(usize, usize, usize)| {
                let before = (step > 0).then(|| t - text.sizes[step - 1]);
                let before = before.map(|t| &alpha[t * k..(t + 1) * k]);
                let start = |j: usize| f64::from(text.start[j]).max(SMALLEST);
                let transition = |i: usize, j: usize| text.transition(i, j);
                mass(k, before, start, transition, |j| text.local_at(t, j))
            };
            let expected: Vec<Sum> = text.tokens().iter().map(of_token).collect();
            assert_near(&what, &got, &expected, tolerance);
        }
    }
}
