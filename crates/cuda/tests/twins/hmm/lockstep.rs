//! The recursions of all sentences in lockstep.

use super::transition::SMALLEST;
use crate::kit::{
    Done, Framed, Rng, SINGLE, Sum, TF32, Tolerance, assert_near, device, framed, get, holes, put,
    sums, twice,
};
use latens_cuda::{Device, Precision, Steps};

/// Sums of positive numbers, with errors that add up over the steps.
const RECURSION: Tolerance = Tolerance { of_value: 0.0, of_terms: 3e-5 };

/// Errors of 2⁻¹⁰ of both factors of a product, which average out in sums but grow over the steps.
const FAST: Tolerance = Tolerance { of_value: 0.0, of_terms: 1e-2 };

/// Number of sentences that have a first token, a second one, and so on.
pub(super) const SIZES: &[&[usize]] =
    &[&[], &[1], &[5], &[1, 1, 1, 1], &[5, 5, 3, 1], &[70, 33, 32, 9, 9, 1]];

pub(super) const STATES: &[usize] = &[1, 2, 7, 32, 64, 100, 255, 256, 257, 300];

/// Sentences in lockstep, and the probabilities of their tokens and transitions.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) sizes: Vec<usize>,
    pub(super) k: usize,
    local: Vec<f32>,
    pub(super) start: Vec<f32>,
    transitions: Vec<f32>,
}

impl Text {
    /// Every third row of emissions is multiplied by `small`.
    pub(super) fn draw(sizes: &[usize], k: usize, small: f32, rng: &mut Rng) -> Text {
        let mut local = rng.positives(sizes.iter().sum::<usize>() * k);
        for row in local.chunks_mut(k).step_by(3) {
            row.iter_mut().for_each(|x| *x *= small);
        }
        let (mut start, transitions) = (rng.distributions(1, k), rng.distributions(k, k));
        // This start probability gets the lower bound.
        start[0] = 0.0;
        Text { sizes: sizes.to_vec(), k, local, start, transitions }
    }

    pub(super) fn len(&self) -> usize {
        self.local.len()
    }

    fn n_sentences(&self) -> usize {
        self.sizes.first().copied().unwrap_or(0)
    }

    pub(super) fn steps(&self, precision: Precision) -> Steps<'_> {
        Steps { sizes: &self.sizes, k: self.k, precision }
    }

    pub(super) fn put(&self, device: &Device) -> [Framed<f32>; 3] {
        [&self.local, &self.start, &self.transitions].map(|values| put(device, values))
    }

    /// Step, row within the step, and index of each token.
    pub(super) fn tokens(&self) -> Vec<(usize, usize, usize)> {
        let rows = self.sizes.iter().enumerate().flat_map(|(s, &n)| (0..n).map(move |r| (s, r)));
        rows.enumerate().map(|(t, (s, r))| (s, r, t)).collect()
    }

    /// The index of the token before each token from the second step on.
    fn previous(&self) -> Vec<u32> {
        let tokens = self.tokens();
        let later = tokens.iter().filter(|(s, _, _)| *s > 0);
        later.map(|&(s, _, t)| (t - self.sizes[s - 1]) as u32).collect()
    }

    pub(super) fn transition(&self, i: usize, j: usize) -> f64 {
        f64::from(self.transitions[i * self.k + j])
    }

    pub(super) fn local_at(&self, t: usize, j: usize) -> f64 {
        f64::from(self.local[t * self.k + j])
    }

    /// α and ln p.
    fn forward(&self) -> (Vec<f64>, Vec<Sum>) {
        let k = self.k;
        let (mut alpha, mut log_probs) =
            (vec![0.0; self.len()], vec![Sum::default(); self.n_sentences()]);
        for (s, r, t) in self.tokens() {
            let predicted = |j: usize| match s {
                0 => f64::from(self.start[j]).max(SMALLEST),
                _ => {
                    let before = t - self.sizes[s - 1];
                    (0..k).map(|i| alpha[before * k + i] * self.transition(i, j)).sum()
                }
            };
            let row: Vec<f64> = (0..k).map(|j| predicted(j) * self.local_at(t, j)).collect();
            let mass: f64 = row.iter().sum();
            // The incoming mass is 1, and has a rounding error too.
            log_probs[r] += mass.ln();
            log_probs[r].size += 1.0;
            (0..k).for_each(|j| alpha[t * k + j] = row[j] / mass);
        }
        (alpha, log_probs)
    }

    /// β, and b ∘ β with a maximum of 1.
    fn backward(&self) -> (Vec<f64>, Vec<f64>) {
        let k = self.k;
        let (mut beta, mut weighted) = (vec![1.0; self.len()], vec![0.0; self.len()]);
        for (s, r, t) in self.tokens().into_iter().rev() {
            if self.sizes.get(s + 1).is_some_and(|&n| r < n) {
                let next = t + self.sizes[s];
                for i in 0..k {
                    let terms = (0..k).map(|j| self.transition(i, j) * weighted[next * k + j]);
                    beta[t * k + i] = terms.sum();
                }
            }
            let row: Vec<f64> = (0..k).map(|j| beta[t * k + j] * self.local_at(t, j)).collect();
            let max = row.iter().copied().fold(0.0, f64::max);
            (0..k).for_each(|j| weighted[t * k + j] = row[j] / max);
        }
        (beta, weighted)
    }
}

/// Compares both passes with the twin.
fn compare(device: &Device, text: &Text, (precision, tolerance): (Precision, Tolerance)) {
    let (k, n, sizes) = (text.k, text.len(), &text.sizes);
    let shape = format!("{precision:?}, {sizes:?} sentences, {k} states");

    let what = format!("forward_in_steps: {shape}");
    let (alpha, log_probs) = twice(&what, || {
        let [local, start, transitions] = text.put(device);
        let (mut alpha, mut log_probs) =
            (holes(device, n), holes::<f64>(device, text.n_sentences()));
        let mut predicted = device.zeros(0).done(&what);
        let inputs = (&local.array, &start.array, &transitions.array);
        let out = (&mut alpha.array, &mut log_probs.array);
        device.forward_in_steps(out, inputs, text.steps(precision), &mut predicted).done(&what);
        (get(device, &what, &alpha), get(device, &what, &log_probs))
    });
    let expected = text.forward();
    assert_near(&format!("{what}, alpha"), &alpha, &sums(&expected.0), tolerance);
    let of_terms = tolerance.of_terms * 0.1;
    let ln_p = Tolerance { of_terms, ..tolerance };
    assert_near(&format!("{what}, ln p"), &log_probs, &expected.1, ln_p);

    let what = format!("backward_in_steps: {shape}");
    let (betas, weighted) = twice(&what, || {
        let [local, _, transitions] = text.put(device);
        let (mut betas, mut weighted) = (holes(device, n), holes(device, n));
        let mut predicted = device.zeros(0).done(&what);
        let inputs = (&local.array, &transitions.array);
        let out = (&mut betas.array, &mut weighted.array);
        device.backward_in_steps(out, inputs, text.steps(precision), &mut predicted).done(&what);
        (get(device, &what, &betas), get(device, &what, &weighted))
    });
    let expected = text.backward();
    assert_near(&format!("{what}, beta"), &betas, &sums(&expected.0), tolerance);
    assert_near(&format!("{what}, weighted"), &weighted, &sums(&expected.1), tolerance);
}

#[test]
fn steps_agree_with_the_cpu() {
    let Some(device) = device(&["forward_rows", "backward_rows"]) else { return };
    let mut rng = Rng::new(80);
    for (&sizes, &k) in SIZES.iter().flat_map(|sizes| STATES.iter().map(move |k| (sizes, k))) {
        let text = Text::draw(sizes, k, 0.01, &mut rng);
        compare(&device, &text, (Precision::Full, RECURSION));
        compare(&device, &text, (Precision::Fast, FAST));
    }
}

#[test]
fn steps_do_not_underflow() {
    let Some(device) = device(&["forward_rows", "backward_rows"]) else { return };
    let mut rng = Rng::new(81);
    for k in [1, 7, 64, 300] {
        let mut text = Text::draw(&[6, 5, 5, 2], k, 1e-25, &mut rng);
        // Not distributions, so that the incoming mass is as small as the emissions.
        text.start.iter_mut().for_each(|x| *x = (*x * 1e-25).max(1e-29));
        text.transitions.iter_mut().for_each(|x| *x *= 1e-25);
        compare(&device, &text, (Precision::Full, RECURSION));
    }
}

#[test]
fn ratios_of_steps_agree_with_the_cpu() {
    let Some(device) = device(&[]) else { return };
    let mut rng = Rng::new(82);
    for (&sizes, &k) in SIZES.iter().flat_map(|sizes| STATES.iter().map(move |k| (sizes, k))) {
        for (precision, tolerance) in [(Precision::Full, SINGLE), (Precision::Fast, TF32)] {
            let what = format!("ratios_in_steps: {precision:?}, {sizes:?} sentences, {k} states");
            let text = Text::draw(sizes, k, 1.0, &mut rng);
            let (alpha, weighted) = (rng.positives(text.len()), rng.positives(text.len()));
            let (previous, before) = (text.previous(), rng.normals(k * k));
            let got = twice(&what, || {
                let (alpha, weighted) = (put(&device, &alpha), put(&device, &weighted));
                let (previous, mut ratios) = (framed(&device, &previous), put(&device, &before));
                let (inputs, steps) = ((&alpha.array, &weighted.array), text.steps(precision));
                let (out, mut scratch) = (&mut ratios.array, device.zeros(0).done(&what));
                device
                    .ratios_in_steps(out, inputs, previous.part(), steps, &mut scratch)
                    .done(&what);
                get(&device, &what, &ratios)
            });
            // Without transitions nothing is written.
            let mut expected = sums(&before);
            if !previous.is_empty() {
                expected.fill(Sum::default());
            }
            for (&before, t) in previous.iter().zip(text.n_sentences()..) {
                for (at, sum) in expected.iter_mut().enumerate() {
                    let a = alpha[before as usize * k + at / k];
                    *sum += f64::from(a) * f64::from(weighted[t * k + at % k]);
                }
            }
            assert_near(&what, &got, &expected, tolerance);
        }
    }
}
