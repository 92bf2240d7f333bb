//! The steady-state filter and likelihood, compared with the time-varying and the dense filter.

use super::fixtures::{
    dense_covariance, fixed_model, initial_model, keep_going, states, text_gain, to_mat, vector,
};
use super::toy::{golden, golden_tokens, markov_text, moments, sharp_markov_text};
use crate::learn::e_step::{Expectations, WordTerms, expectations};
use crate::learn::likelihood::{Run, TextGain, warm_up};
use crate::learn::moments::covariances::Covariances;
use crate::learn::moments::text_moments::Moments;
use crate::learn::subspace::{Sketch, decompose};
use crate::linalg::dense::{cholesky, identity, product, to_row_major};
use crate::linalg::lu::inverse;
use crate::linalg::panel::{Panel, times};
use crate::linalg::solvers::lyapunov;
use crate::system::canonical::Canonical;
use crate::system::steady_state::{Dynamics, MeasurementUpdate, SteadyState};
use latens_corpus::WordId;
use latens_math::linalg::{Mat, Scale};

/// The time-varying filter of a sequence that starts with the stationary covariance: the gain, the last state and the
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
        let update = MeasurementUpdate::new(model, &factor, &covariance).unwrap();
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
fn states_and_gains_of_text_agree_with_golden_numbers() {
    let moments = golden();
    let (model, c) = fixed_model(&moments);
    let (steady, mu, text) = (SteadyState::of(&model).unwrap(), moments.mu(), golden_tokens());
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
    // The constant that turns a gain into a density: ln pdet Ψ_0 = Σ ln μ + ln V.
    let constant: f64 = mu.iter().map(|mu| mu.ln()).sum::<f64>() + 8f64.ln();
    assert!((constant + 14.879911910827).abs() < 1e-9);
}

/// The gain of a text and the last predicted state, by dense matrices of words by words.
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
        let log_det = crate::linalg::dense::log_det(&cholesky(&s, "S").unwrap());
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
fn the_time_varying_filter_agrees_with_the_dense_one_and_converges_to_the_steady_state() {
    let text = markov_text(3000, 15, 3);
    let moments = moments::<f64>(&text, 15, 7, 1.0);
    let model = initial_model(&moments, 3);
    let (dynamics, mu) = (model.dynamics(), moments.mu());
    let steady = SteadyState::of(&dynamics).unwrap();
    let part = &text[100..160];
    let (gain, state, _) = exact(&dynamics, &model.c, mu, part);
    let (expected, predicted) = dense_gain(&dynamics, &model.c, mu, part);
    assert!((gain - expected).abs() < 1e-10, "{gain} {expected}");
    let own = product([dynamics.a.as_ref(), state.as_ref()]);
    let [filtered, _] = states(&dynamics, &steady, &model.c, mu, part);
    for i in 0..3 {
        assert!((own[(i, 0)] - predicted[(i, 0)]).abs() < 1e-10);
        assert!((filtered[59 * 3 + i] - state[(i, 0)]).abs() < 1e-6, "not converged");
    }
}

#[test]
fn scoring_in_runs_agrees_with_a_single_run() {
    let text = markov_text(5000, 30, 4);
    let moments = moments::<f64>(&text, 30, 7, 1.0);
    let model = initial_model(&moments, 4);
    let dynamics = model.dynamics();
    let steady = SteadyState::of(&dynamics).unwrap();
    let words: Vec<WordId> = text.iter().map(|&word| WordId::from(word)).collect();
    let scorer = TextGain::new(&dynamics, &steady, &model.c, moments.mu());
    let whole = scorer.of(&words, &[Run::whole(words.len())]);
    let in_runs = text_gain(&dynamics, &steady, &model.c, moments.mu(), &text);
    assert!((whole - in_runs).abs() < 1e-8 * whole.abs(), "{whole} {in_runs}");
}

#[test]
fn a_slow_system_has_a_longer_warm_up() {
    let text = markov_text(20_000, 30, 4);
    let moments = moments::<f64>(&text, 30, 7, 1.0);
    let fast = initial_model(&moments, 4);
    assert_eq!(warm_up(&SteadyState::of(&fast.dynamics()).unwrap()), 128);
    // Words say little about the state, so the filter forgets at the rate of A: 0.97^128 is 0.02.
    let c = times(fast.c.view(), &(Scale(0.05) * identity(4)));
    let slow = Canonical::restored(Scale(0.97) * identity(4), c);
    let dynamics = slow.dynamics();
    let steady = SteadyState::of(&dynamics).unwrap();
    assert_eq!(warm_up(&steady), 1024);
    let words: Vec<WordId> = text.iter().map(|&word| WordId::from(word)).collect();
    let scorer = TextGain::new(&dynamics, &steady, &slow.c, moments.mu());
    let whole = scorer.of(&words, &[Run::whole(words.len())]);
    let in_runs = text_gain(&dynamics, &steady, &slow.c, moments.mu(), &text);
    assert!((whole - in_runs).abs() < 1e-10 * whole.abs(), "{whole} {in_runs}");
}

fn at_horizon(moments: &Moments<f64>, model: &Canonical<f64>, horizon: usize) -> Expectations<f64> {
    let dynamics = model.dynamics();
    let steady = SteadyState::of(&dynamics).unwrap();
    expectations(moments, &dynamics, &steady, &model.c, horizon, WordTerms::Skip).unwrap()
}

#[test]
fn expectations_from_counts_agree_with_averages_over_the_text() {
    // Without pseudo-counts the covariances are exactly those of the text, except for its ends.
    let (n, n_types) = (60_000, 50);
    let text = sharp_markov_text(n, n_types, [1.0, 2.0], 11);
    let moments = moments::<f64>(&text, n_types, 8, 0.0);
    let model = initial_model(&moments, 5);
    let (dynamics, mu) = (model.dynamics(), moments.mu());
    let steady = SteadyState::of(&dynamics).unwrap();
    let gain = text_gain(&dynamics, &steady, &model.c, mu, &text) / n as f64;
    assert!(gain > 0.05, "the text must be predictable: {gain}");
    let [_, smoothed] = states(&dynamics, &steady, &model.c, mu, &text);
    let smoothed = Panel::from_rows(n, 5, &smoothed);
    let moment = crate::linalg::sums::cross(smoothed.view(), smoothed.view());
    let moment = Scale(1.0 / n as f64) * &moment;
    let bounds =
        [(1, 1e-3, 2e-3), (2, 2e-4, 2e-3), (3, 2e-4, 2e-3), (5, 2e-5, 2e-4), (8, 6e-6, 1e-5)];
    for (horizon, gain_bound, moment_bound) in bounds {
        let found = at_horizon(&moments, &model, horizon);
        let difference = (found.gain - gain).abs();
        assert!(difference < gain_bound, "gain at {horizon}: {difference:e}");
        let moved = &found.moments.smoothed - &moment;
        let moved =
            to_row_major::<f64>(&moved).into_iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        assert!(moved < moment_bound, "moment at {horizon}: {moved:e}");
    }
}

#[test]
fn a_word_raises_the_words_that_follow_it_not_those_that_precede_it() {
    let moments = golden();
    let psi = dense_covariance(&moments, 1);
    assert!(psi[(1, 0)] > 0.0 && psi[(0, 1)] < 0.0, "`dog` follows `the`, not the reverse");
    let sketch = Sketch { n_oversamples: 20, n_power_iterations: 2, seed: 1 };
    let found = decompose(&moments, 2, 2, sketch, &mut keep_going).unwrap();
    let model = found.identify(moments.null_vector()).unwrap().model;
    let steady = SteadyState::of(&model.dynamics()).unwrap();
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
