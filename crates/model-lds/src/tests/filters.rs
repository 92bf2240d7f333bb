//! Filters and likelihoods of text, against dense and time-varying ones.

use super::golden::{dense, fixed};
use super::invariants::{first_model, to_mat};
use super::toy::{golden, golden_tokens, markov_text, moments, sharp_markov_text};
use crate::asos::expectations;
use crate::covariances::Covariances;
use crate::dense::{cholesky, identity, product};
use crate::filter::{filter, rows, smooth};
use crate::learner::to_rows;
use crate::likelihood::{Run, TextGain};
use crate::lu::inverse;
use crate::moments::Moments;
use crate::panel::Panel;
use crate::solvers::lyapunov;
use crate::steady::{Dynamics, Steady, Update};
use latens_corpus::WordId;
use latens_math::linalg::{Mat, Scale};

/// u_i = c_i / √μ_i.
pub(super) fn vector(c: &Panel<f64>, mu: &[f64], word: usize) -> Mat<f64> {
    Mat::from_fn(c.n_cols(), 1, |i, _| c.row(word)[i] / mu[word].sqrt())
}

pub(super) fn text_gain(
    model: &Dynamics,
    steady: &Steady,
    c: &Panel<f64>,
    mu: &[f64],
    text: &[usize],
) -> f64 {
    let words: Vec<WordId> = text.iter().map(|&word| WordId::from(word)).collect();
    let mut runs = Vec::new();
    Run::cut(0..words.len(), &mut runs);
    TextGain::new(model, steady, c, mu).of(&words, &runs)
}

/// Filtered states, then smoothed ones, with steady gains.
pub(super) fn states(
    model: &Dynamics,
    steady: &Steady,
    c: &Panel<f64>,
    mu: &[f64],
    text: &[usize],
) -> [Vec<f64>; 2] {
    let inputs: Vec<Vec<f64>> = (0..mu.len())
        .map(|word| {
            let input = product([steady.b.as_ref(), vector(c, mu, word).as_ref()]);
            (0..model.dim()).map(|i| input[(i, 0)]).collect()
        })
        .collect();
    let h = rows::<f64>(&steady.h);
    let steps = text.iter().map(|&word| (&h[..], &inputs[word][..]));
    let filtered = filter(steps, &vec![0.0; model.dim()]);
    let mut smoothed = filtered.clone();
    smooth(&rows(&steady.j), &rows(&steady.p), model.dim(), &mut smoothed);
    [filtered, smoothed]
}

/// The exact filter of a sequence that starts with the stationary covariance: gain, the last state, and the
/// first gain matrix.
fn exact(
    model: &Dynamics,
    c: &Panel<f64>,
    mu: &[f64],
    text: &[usize],
) -> (f64, Mat<f64>, Mat<f64>) {
    let factor = cholesky(&model.g, "G").unwrap();
    let mut covariance = lyapunov(&model.a, &model.q).unwrap();
    let mut predicted = Mat::zeros(model.dim(), 1);
    let (mut gain, mut first, mut state) = (0.0, None, Mat::zeros(model.dim(), 1));
    for &word in text {
        let update = Update::new(model, &factor, &covariance).unwrap();
        let u = vector(c, mu, word);
        let innovation = &u - product([model.g.as_ref(), predicted.as_ref()]);
        let quadratic =
            |x: &Mat<f64>, m: &Mat<f64>| product([x.transpose(), m.as_ref(), x.as_ref()])[(0, 0)];
        let terms = -2.0 * product([u.transpose(), predicted.as_ref()])[(0, 0)]
            + quadratic(&predicted, &model.g)
            - quadratic(&innovation, &update.theta);
        gain -= 0.5 * (update.log_det + terms);
        state = &predicted + product([update.b.as_ref(), innovation.as_ref()]);
        predicted = product([model.a.as_ref(), state.as_ref()]);
        covariance =
            product([model.a.as_ref(), update.filtered.as_ref(), model.a.transpose()]) + &model.q;
        first.get_or_insert(update.b);
    }
    (gain, state, first.unwrap())
}

#[test]
fn golden_states_and_gains_of_text() {
    let moments = golden();
    let (model, c) = fixed(&moments);
    let (steady, mu, text) = (Steady::of(&model).unwrap(), moments.mu(), golden_tokens());
    let near = |a: &[f64], b: [f64; 2]| {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?}, not {b:?}");
    };
    let input = product([steady.b.as_ref(), vector(&c, mu, 1).as_ref()]);
    near(&[input[(0, 0)], input[(1, 0)]], [0.831780067193, -0.666486123262]);
    assert!((text_gain(&model, &steady, &c, mu, &text) + 9.746053102757).abs() < 1e-9);
    let [filtered, smoothed] = states(&model, &steady, &c, mu, &text);
    near(&filtered[..2], [0.588125046144, -0.374979226799]);
    near(&filtered[2..4], [0.781318891632, -0.791856394932]);
    near(&filtered[78..], [-1.217520652487, 0.582934439831]);
    near(&smoothed[..2], [0.688190500331, -0.350351758267]);
    near(&smoothed[76..78], [-0.003753917325, -0.920775067880]);
    let (gain, last, first) = exact(&model, &c, mu, &text[..6]);
    near(&[first[(0, 0)], first[(0, 1)]], [1.383552888989, 0.183014906719]);
    near(&[first[(1, 0)], first[(1, 1)]], [0.045160679296, 1.244029481518]);
    near(&[last[(0, 0)], last[(1, 0)]], [-1.069206155957, 0.955933035043]);
    assert!((gain - 0.355554391606).abs() < 1e-9);
    assert!((text_gain(&model, &steady, &c, mu, &text[..6]) - 0.473999224613).abs() < 1e-9);
    // The constants that turn a gain into a density: ln pdet Ψ_0 = Σ ln μ + ln V.
    let constant: f64 = mu.iter().map(|mu| mu.ln()).sum::<f64>() + 8f64.ln();
    assert!((constant + 14.879911910827).abs() < 1e-9);
}

/// The gain of a text by matrices of words by words.
fn dense_gain(model: &Dynamics, c: &Panel<f64>, mu: &[f64], text: &[usize]) -> (f64, Mat<f64>) {
    let (n, c) = (mu.len(), to_mat(c));
    let mut covariance = lyapunov(&model.a, &model.q).unwrap();
    let mut predicted = Mat::zeros(model.dim(), 1);
    let mut gain = 0.0;
    for &word in text {
        let m = &covariance - &model.e;
        let s = identity(n) + product([c.as_ref(), m.as_ref(), c.transpose()]);
        let inverse_s = inverse(&s, "S").unwrap();
        let w =
            Mat::from_fn(n, 1, |i, _| f64::from(u8::from(i == word)) / mu[i].sqrt() - mu[i].sqrt());
        let e = &w - product([c.as_ref(), predicted.as_ref()]);
        let square = product([e.transpose(), inverse_s.as_ref(), e.as_ref()])[(0, 0)];
        let own = product([w.transpose(), w.as_ref()])[(0, 0)];
        let log_det = crate::dense::log_det(&cholesky(&s, "S").unwrap());
        gain -= 0.5 * (log_det + square - own);
        let k = product([covariance.as_ref(), c.transpose(), inverse_s.as_ref()]);
        let state = &predicted + product([k.as_ref(), e.as_ref()]);
        let filtered = &covariance - product([k.as_ref(), c.as_ref(), covariance.as_ref()]);
        predicted = product([model.a.as_ref(), state.as_ref()]);
        covariance = product([model.a.as_ref(), filtered.as_ref(), model.a.transpose()]) + &model.q;
    }
    (gain, predicted)
}

#[test]
fn the_exact_filter_is_the_dense_one_and_tends_to_the_steady_one() {
    let text = markov_text(3000, 15, 3);
    let moments = moments::<f64>(&text, 15, 7, 1.0);
    let model = first_model(&moments, 3);
    let (dynamics, mu) = (model.dynamics(), moments.mu());
    let steady = Steady::of(&dynamics).unwrap();
    let part = &text[100..160];
    let (gain, state, _) = exact(&dynamics, &model.c, mu, part);
    let (expected, predicted) = dense_gain(&dynamics, &model.c, mu, part);
    assert!((gain - expected).abs() < 1e-10, "{gain} {expected}");
    let own = product([dynamics.a.as_ref(), state.as_ref()]);
    let [filtered, _] = states(&dynamics, &steady, &model.c, mu, part);
    for i in 0..3 {
        assert!((own[(i, 0)] - predicted[(i, 0)]).abs() < 1e-10);
        assert!((filtered[59 * 3 + i] - state[(i, 0)]).abs() < 1e-6, "the start is forgotten");
    }
}

#[test]
fn long_texts_in_runs_score_as_in_one_piece() {
    let text = markov_text(5000, 30, 4);
    let moments = moments::<f64>(&text, 30, 7, 1.0);
    let model = first_model(&moments, 4);
    let dynamics = model.dynamics();
    let steady = Steady::of(&dynamics).unwrap();
    let words: Vec<WordId> = text.iter().map(|&word| WordId::from(word)).collect();
    let scorer = TextGain::new(&dynamics, &steady, &model.c, moments.mu());
    let whole = scorer.of(&words, &[Run::whole(words.len())]);
    let in_runs = text_gain(&dynamics, &steady, &model.c, moments.mu(), &text);
    assert!((whole - in_runs).abs() < 1e-8 * whole.abs(), "{whole} {in_runs}");
}

fn at_horizon(
    moments: &Moments<f64>,
    model: &crate::canonical::Canonical<f64>,
    horizon: usize,
) -> crate::asos::Expectations<f64> {
    let dynamics = model.dynamics();
    let steady = Steady::of(&dynamics).unwrap();
    expectations(moments, &dynamics, &steady, &model.c, horizon, false).unwrap()
}

#[test]
fn expectations_from_counts_are_those_over_the_text() {
    // Without pseudo-counts the covariances are exactly those of the text, edges aside. Bounds are those of the
    // design note, for a text that forgets as fast as the one there.
    let (n, n_types) = (60_000, 50);
    let text = sharp_markov_text(n, n_types, [1.0, 2.0], 11);
    let moments = moments::<f64>(&text, n_types, 8, 0.0);
    let model = first_model(&moments, 5);
    let (dynamics, mu) = (model.dynamics(), moments.mu());
    let steady = Steady::of(&dynamics).unwrap();
    let gain = text_gain(&dynamics, &steady, &model.c, mu, &text) / n as f64;
    assert!(gain > 0.05, "there is something to predict: {gain}");
    let [_, smoothed] = states(&dynamics, &steady, &model.c, mu, &text);
    let smoothed = Panel::from_rows(n, 5, &smoothed);
    let moment = crate::sums::cross(smoothed.view(), smoothed.view());
    let moment = Scale(1.0 / n as f64) * &moment;
    let bounds =
        [(1, 1e-3, 2e-3), (2, 2e-4, 2e-3), (3, 2e-4, 2e-3), (5, 2e-5, 2e-4), (8, 6e-6, 1e-5)];
    for (horizon, gain_bound, moment_bound) in bounds {
        let found = at_horizon(&moments, &model, horizon);
        let difference = (found.gain - gain).abs();
        assert!(difference < gain_bound, "gain at {horizon}: {difference:e}");
        let moved = &found.moments.smoothed - &moment;
        let moved = to_rows(&moved).into_iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        assert!(moved < moment_bound, "moment at {horizon}: {moved:e}");
    }
}

#[test]
fn what_follows_a_word_is_raised_and_what_precedes_it_is_not() {
    let moments = golden();
    let psi = dense(&moments, 1);
    assert!(psi[(1, 0)] > 0.0 && psi[(0, 1)] < 0.0, "dog follows the, not the other way round");
    let sketch = crate::subspace::Sketch { n_extra: 20, n_powers: 2, seed: 1 };
    let found =
        crate::subspace::decompose(&moments, 2, 2, sketch, &mut super::invariants::go_on).unwrap();
    let model = found.identify(moments.null_vector()).unwrap().model;
    let steady = Steady::of(&model.dynamics()).unwrap();
    let u = vector(&model.c, moments.mu(), 1);
    let p = product([model.a.as_ref(), steady.b.as_ref(), u.as_ref()]);
    let seen = product([to_mat(&model.c).as_ref(), p.as_ref()]);
    let expected = [
        -0.074778542953,
        -0.244484295462,
        0.280128369474,
        -0.265212715464,
        0.253888623722,
        -0.093292136344,
        0.301227585944,
        -0.218389342416,
    ];
    let read_out = [
        0.155119941072,
        0.038561748393,
        0.194577709148,
        0.018569630817,
        0.297436998938,
        0.074056759134,
        0.201387451982,
        0.020289760517,
    ];
    for i in 0..8 {
        assert!((seen[(i, 0)] - expected[i]).abs() < 1e-9);
        let mu = moments.mu()[i];
        let prob = mu * (1.0 + seen[(i, 0)] / mu.sqrt());
        assert!((prob - read_out[i]).abs() < 1e-9);
        // Types 2, 4 and 6 are `saw`, `.` and `ran`.
        assert_eq!(seen[(i, 0)] > 0.0, [2, 4, 6].contains(&i));
    }
}
