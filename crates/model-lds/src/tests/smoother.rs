//! The time-varying smoother, compared with the joint distribution of all states, and as the limit of the
//! steady-state smoother and of the expectations from counts.

use super::fixtures::{initial_model, states, to_mat, vector};
use super::toy::{markov_text, moments, sharp_markov_text};
use crate::learn::e_step::{WordTerms, expectations};
use crate::linalg::dense::{cholesky, frobenius, identity, product, symmetric};
use crate::linalg::lu::inverse;
use crate::linalg::panel::Panel;
use crate::linalg::solvers::{lyapunov, smoother_gain};
use crate::system::steady_state::{Dynamics, MeasurementUpdate, SteadyState};
use latens_math::linalg::{Mat, Scale};

/// Posterior means and covariances of all states given all words.
struct Smoothed {
    means: Vec<Mat<f64>>,
    covariances: Vec<Mat<f64>>,
    /// Cov(x_{t+1}, x_t | all words).
    with_before: Vec<Mat<f64>>,
}

/// The Rauch–Tung–Striebel smoother of a sequence that starts with the stationary covariance.
fn exact_smoother(model: &Dynamics, c: &Panel<f64>, mu: &[f64], text: &[usize]) -> Smoothed {
    let a = &model.a;
    let factor = cholesky(&model.g, "G").unwrap();
    let (mut means, mut covariances, mut gains) = (Vec::new(), Vec::new(), Vec::new());
    let (mut predictions, mut prediction) = (Vec::new(), Mat::zeros(model.dim(), 1));
    let mut predicted = lyapunov(a, &model.q).unwrap();
    for &word in text {
        let update = MeasurementUpdate::new(model, &factor, &predicted).unwrap();
        let innovation = vector(c, mu, word) - product([model.g.as_ref(), prediction.as_ref()]);
        let state = &prediction + product([update.b.as_ref(), innovation.as_ref()]);
        let next =
            symmetric(&(product([a.as_ref(), update.filtered.as_ref(), a.transpose()]) + &model.q));
        gains.push(smoother_gain(a, &update.filtered, &next).unwrap());
        prediction = product([a.as_ref(), state.as_ref()]);
        predictions.push((prediction.clone(), next.clone()));
        means.push(state);
        covariances.push(update.filtered);
        predicted = next;
    }
    let mut with_before = Vec::new();
    for t in (0..text.len().saturating_sub(1)).rev() {
        let (gain, (mean, covariance)) = (&gains[t], &predictions[t]);
        with_before.push(product([covariances[t + 1].as_ref(), gain.transpose()]));
        let (mean, covariance) = (&means[t + 1] - mean, &covariances[t + 1] - covariance);
        means[t] = &means[t] + product([gain.as_ref(), mean.as_ref()]);
        covariances[t] =
            &covariances[t] + product([gain.as_ref(), covariance.as_ref(), gain.transpose()]);
    }
    with_before.reverse();
    Smoothed { means, covariances, with_before }
}

/// Posterior mean and covariance of the joint vector of all states given all words.
///
/// The precision is Λ = Π⁻¹ + blocks of Cᵀ D⁻¹ C, where Π is the prior covariance of all states, with blocks A^{s−t} Π,
/// and D the noise covariance of words as a dense matrix.
fn joint(model: &Dynamics, c: &Panel<f64>, mu: &[f64], text: &[usize]) -> [Mat<f64>; 2] {
    let (n, dim, c) = (text.len(), model.dim(), to_mat(c));
    let stationary = lyapunov(&model.a, &model.q).unwrap();
    let mut prior = Mat::zeros(n * dim, n * dim);
    for t in 0..n {
        let mut block = stationary.clone();
        for s in t..n {
            prior.as_mut().submatrix_mut(s * dim, t * dim, dim, dim).copy_from(&block);
            prior.as_mut().submatrix_mut(t * dim, s * dim, dim, dim).copy_from(block.transpose());
            block = product([model.a.as_ref(), block.as_ref()]);
        }
    }
    let noise = identity(mu.len()) - product([c.as_ref(), model.e.as_ref(), c.transpose()]);
    let weights = product([c.transpose(), inverse(&noise, "D").unwrap().as_ref()]);
    let seen = product([weights.as_ref(), c.as_ref()]);
    let mut precision = inverse(&prior, "Pi").unwrap();
    let mut information = Mat::zeros(n * dim, 1);
    for (t, &word) in text.iter().enumerate() {
        let own = f64::sqrt;
        let w = Mat::from_fn(mu.len(), 1, |i, _| {
            f64::from(u8::from(i == word)) / own(mu[i]) - own(mu[i])
        });
        let said = product([weights.as_ref(), w.as_ref()]);
        for i in 0..dim {
            information[(t * dim + i, 0)] = said[(i, 0)];
            (0..dim).for_each(|j| precision[(t * dim + i, t * dim + j)] += seen[(i, j)]);
        }
    }
    let covariance = inverse(&precision, "the precision").unwrap();
    [product([covariance.as_ref(), information.as_ref()]), covariance]
}

#[test]
fn the_time_varying_smoother_agrees_with_the_joint_distribution_of_all_states() {
    let text = markov_text(3000, 15, 3);
    let moments = moments::<f64>(&text, 15, 7, 1.0);
    let model = initial_model(&moments, 3);
    let (dynamics, mu) = (model.dynamics(), moments.mu());
    for part in [&text[100..101], &text[200..207]] {
        let found = exact_smoother(&dynamics, &model.c, mu, part);
        let [mean, covariance] = joint(&dynamics, &model.c, mu, part);
        let block = |s: usize, t: usize| covariance.submatrix(3 * s, 3 * t, 3, 3).to_owned();
        for t in 0..part.len() {
            let mean = mean.subrows(3 * t, 3).to_owned();
            assert!(frobenius(&(&found.means[t] - mean)) < 1e-10);
            assert!(frobenius(&(&found.covariances[t] - block(t, t))) < 1e-10);
        }
        for (t, found) in found.with_before.iter().enumerate() {
            assert!(frobenius(&(found - block(t + 1, t))) < 1e-10);
        }
    }
}

#[test]
fn far_from_the_ends_the_time_varying_smoother_agrees_with_the_steady_state() {
    let text = markov_text(3000, 15, 3);
    let moments = moments::<f64>(&text, 15, 7, 1.0);
    let model = initial_model(&moments, 3);
    let (dynamics, mu, part) = (model.dynamics(), moments.mu(), &text[100..300]);
    let steady = SteadyState::of(&dynamics).unwrap();
    let found = exact_smoother(&dynamics, &model.c, mu, part);
    let [_, smoothed] = states(&dynamics, &steady, &model.c, mu, part);
    for t in [80, 100, 120] {
        assert!(frobenius(&(&found.covariances[t] - &steady.smoothed)) < 1e-9);
        let mean = Mat::from_fn(3, 1, |i, _| smoothed[3 * t + i]);
        assert!(frobenius(&(&found.means[t] - mean)) < 1e-9);
    }
}

#[test]
fn expectations_from_counts_converge_to_those_of_the_time_varying_smoother() {
    let (n, n_types, dim) = (20_000, 30, 4);
    let text = sharp_markov_text(n, n_types, [1.0, 2.0], 12);
    let moments = moments::<f64>(&text, n_types, 8, 0.0);
    let model = initial_model(&moments, dim);
    let dynamics = model.dynamics();
    let steady = SteadyState::of(&dynamics).unwrap();
    let exact = exact_smoother(&dynamics, &model.c, moments.mu(), &text);
    let (mut state, mut next) = (Mat::zeros(dim, dim), Mat::zeros(dim, dim));
    for (mean, covariance) in exact.means.iter().zip(&exact.covariances) {
        state += product([mean.as_ref(), mean.transpose()]) + covariance;
    }
    for (pair, covariance) in exact.means.windows(2).zip(&exact.with_before) {
        next += product([pair[1].as_ref(), pair[0].transpose()]) + covariance;
    }
    let (state, next) = (Scale(1.0 / n as f64) * &state, Scale(1.0 / (n - 1) as f64) * &next);
    // The bounds are the errors of an independent dense implementation, with some room for the ends of the text.
    let bounds =
        [(1, 1e-3, 4e-3), (2, 5e-4, 1.2e-3), (3, 2e-4, 4e-4), (5, 2e-5, 6e-5), (8, 1e-5, 6e-5)];
    for (horizon, state_bound, next_bound) in bounds {
        let found =
            expectations(&moments, &dynamics, &steady, &model.c, horizon, WordTerms::Compute)
                .unwrap();
        let error =
            |found: &Mat<f64>, exact: &Mat<f64>| frobenius(&(found - exact)) / frobenius(exact);
        let (of_state, of_next) = (error(&found.state, &state), error(&found.next_state, &next));
        assert!(
            of_state < state_bound && of_next < next_bound,
            "{horizon}: {of_state:e} {of_next:e}"
        );
    }
}
