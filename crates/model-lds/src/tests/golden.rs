//! Golden numbers from an independent dense implementation in another language.

use super::fixtures::{dense_covariance, fixed_model, keep_going, text_gain};
use super::toy::{golden, golden_tokens};
use crate::learn::e_step::{WordTerms, expectations};
use crate::learn::m_step::m_step;
use crate::learn::moments::covariances::Covariances;
use crate::learn::subspace::{Sketch, decompose};
use crate::linalg::dense::{eigenvalues, identity, product, singular};
use crate::linalg::sums::cross;
use crate::system::canonical::Canonical;
use crate::system::steady_state::{Dynamics, SteadyState};
use latens_math::linalg::{Mat, Scale};

fn assert_close(found: &Mat<f64>, expected: &[f64], tolerance: f64, what: &str) {
    let (n, m) = (found.nrows(), found.ncols());
    assert_eq!(expected.len(), n * m, "{what}");
    for i in 0..n {
        for j in 0..m {
            let difference = (found[(i, j)] - expected[i * m + j]).abs();
            assert!(
                difference < tolerance,
                "{what}[{i}, {j}] is {}, not {}",
                found[(i, j)],
                expected[i * m + j]
            );
        }
    }
}

#[test]
fn covariances_agree_with_golden_numbers() {
    let moments = golden();
    let expected = [
        (1.310552641182, -0.812500000000, 0.827465913801),
        (1.117029377246, -0.791666666667, 0.780051608281),
        (1.222929877208, 0.240277777778, 0.763389239420),
        (1.053792387077, -0.105555555556, 0.591466986504),
        (0.862186828097, -0.729166666667, 0.580659233908),
        (1.064936385975, 0.297222222222, 0.644104173393),
        (0.959750361382, -0.215277777778, 0.599110854626),
    ];
    for (i, (norm, trace, largest)) in expected.into_iter().enumerate() {
        let psi = dense_covariance(&moments, i + 1);
        assert!((crate::linalg::dense::frobenius(&psi) - norm).abs() < 1e-11);
        assert!((crate::linalg::dense::trace(&psi) - trace).abs() < 1e-11);
        assert!((singular(&psi, "psi").unwrap().values[0] - largest).abs() < 1e-11);
    }
    // Rows are later words: `dog` after `the`, not before it.
    let psi = dense_covariance(&moments, 1);
    assert!((psi[(1, 0)] - 0.405058850695).abs() < 1e-11);
    assert!((psi[(0, 1)] + 0.122261857821).abs() < 1e-11);
    let row = |word: usize| -> Vec<f64> {
        let root = |i: usize| moments.mu()[i].sqrt();
        (0..8).map(|j| psi[(word, j)] * root(word) * root(j)).collect()
    };
    let the = [
        -0.030029296875,
        -0.018717447917,
        0.047553168403,
        -0.014946831597,
        0.057210286458,
        -0.014946831597,
        -0.014946831597,
        -0.011176215278,
    ];
    let dog = [
        0.062011718750,
        -0.013346354167,
        -0.010687934028,
        -0.010687934028,
        -0.018717447917,
        0.010145399306,
        -0.010687934028,
        -0.008029513889,
    ];
    for (found, expected) in row(0).iter().chain(&row(1)).zip(the.iter().chain(&dog)) {
        assert!((found - expected).abs() < 1e-11);
    }
}

#[test]
fn the_steady_state_of_the_fixed_model_agrees_with_golden_numbers() {
    let moments = golden();
    let (model, c) = fixed_model(&moments);
    for (row, expected) in [
        (0, [0.190168081126, -0.168880931262]),
        (1, [0.221943361475, -0.240189990401]),
        (7, [0.255291997776, -0.261223850411]),
    ] {
        assert!(c.row(row).iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-9));
    }
    let steady = SteadyState::of(&model).unwrap();
    let factor = crate::linalg::dense::cholesky(&model.g, "G").unwrap();
    let r = crate::system::steady_state::precision(&factor, &model.e).unwrap();
    let pi = crate::linalg::solvers::lyapunov(&model.a, &model.q).unwrap();
    let check = |found: &Mat<f64>, expected: [f64; 4], what| {
        assert_close(found, &expected, 1e-9, what);
    };
    let s = |a: f64, b: f64, c: f64| [a, b, b, c];
    check(&pi, s(1.598655409631, -0.169050969356, 1.592792370231), "Pi");
    check(&model.g, s(0.387524284486, -0.381728239782, 0.382153743307), "G");
    check(&r, s(3.287660077836, -3.258442103308, 3.235664151586), "R");
    check(&steady.predicted, s(1.430168033121, 0.077255312511, 1.066611145452), "Sigma_1");
    check(&steady.filtered, s(0.731137280834, 0.579268074974, 0.698356850676), "Sigma_0");
    check(&steady.b, [1.403856017397, 0.072850082198, 0.097017162022, 1.070697173073], "B");
    check(&steady.h, [0.137852914544, 0.350781904405, 0.034312327198, 0.388155397109], "H");
    check(&steady.j, [0.385690916733, 0.037967145857, 0.333102083036, 0.140317394920], "J");
    check(&steady.p, [0.779975593717, -0.096121756275, -0.157766031346, 0.863220885933], "P");
    check(&steady.smoothed, s(0.622856948973, 0.501609191244, 0.640050103038), "Vs");
    check(&steady.theta, s(-0.070919315053, -0.123013793023, -0.133526665018), "Theta");
    assert!((steady.log_det - 0.015538569082).abs() < 1e-9);
}

#[test]
fn expectations_under_the_fixed_model_agree_with_golden_numbers() {
    let moments = golden();
    let (model, c) = fixed_model(&moments);
    let steady = SteadyState::of(&model).unwrap();
    let at =
        |horizon| expectations(&moments, &model, &steady, &c, horizon, WordTerms::Compute).unwrap();
    let s = |a: f64, b: f64, c: f64| [a, b, b, c];
    for (horizon, gain, x) in [
        (1, -0.233997191577, s(0.743329206129, -0.451789102226, 0.364340115737)),
        (3, -0.236596923601, s(0.736406179935, -0.454661747611, 0.364682301783)),
        (7, -0.236591122351, s(0.736361978656, -0.454598498852, 0.364830656121)),
    ] {
        let found = at(horizon);
        assert!((found.gain - gain).abs() < 1e-9, "{horizon}: {}", found.gain);
        assert_close(&found.moments.filtered, &x, 1e-9, "X_0");
    }
    let found = at(3);
    assert_close(&found.state, &s(1.104070398363, 0.113567758390, 1.197225949680), 1e-9, "Exx");
    let ex1 = [0.308971750396, 0.527913590082, 0.011741167001, 0.273888999208];
    assert_close(&found.next_state, &ex1, 1e-9, "Ex1");
    let y = |row: usize| -> Vec<f64> {
        (0..2)
            .map(|j| {
                let from_c = (0..2).map(|i| c.row(row)[i] * found.words_from_c[(i, j)]);
                found.words.row(row)[j] + from_c.sum::<f64>()
            })
            .collect()
    };
    for (row, expected) in
        [(1, [0.218438045949, -0.293446063523]), (6, [0.075631587145, -0.208117662162])]
    {
        assert!(y(row).iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-9), "{:?}", y(row));
    }
}

#[test]
fn the_m_step_before_the_change_of_gauge_agrees_with_golden_numbers() {
    let moments = golden();
    let (model, c) = fixed_model(&moments);
    let steady = SteadyState::of(&model).unwrap();
    let found = expectations(&moments, &model, &steady, &c, 3, WordTerms::Compute).unwrap();
    let divide = |x: &Mat<f64>| crate::linalg::lu::solve_right(x, &found.state, "Exx").unwrap();
    let a = divide(&found.next_state);
    let expected = [0.236801381623, 0.418484571038, -0.013024536667, 0.230005177147];
    assert_close(&a, &expected, 1e-9, "A");
    close_pair(pair(&a), (0.233403279385, 0.073749715532), 1e-9);
    let q = &found.state - product([a.as_ref(), found.next_state.transpose()]);
    let expected = [0.809981768696, -0.003830886523, -0.003830886523, 1.134382985159];
    assert_close(&crate::linalg::dense::symmetric(&q), &expected, 1e-9, "Q");
    let words = Mat::from_fn(8, 2, |i, j| found.words.row(i)[j]);
    let old = Mat::from_fn(8, 2, |i, j| c.row(i)[j]);
    let y = words + product([old.as_ref(), found.words_from_c.as_ref()]);
    let new = divide(&y);
    assert!((new[(1, 0)] - 0.225258064754).abs() < 1e-9);
    assert!((new[(1, 1)] + 0.266472771561).abs() < 1e-9);
    let low_rank = product([new.as_ref(), found.state.as_ref(), new.transpose()]);
    let largest = crate::linalg::dense::eigen(&low_rank, "C E C^T").unwrap().greatest();
    assert!((largest - 0.865139729625).abs() < 1e-9);
    let diagonal = [
        0.740570786533,
        0.747599682650,
        0.894817270551,
        0.741171553913,
        0.540783677099,
        0.834469159085,
        0.851335696518,
        0.765069589548,
    ];
    for (i, expected) in diagonal.into_iter().enumerate() {
        assert!((1.0 - moments.mu()[i] - low_rank[(i, i)] - expected).abs() < 1e-9);
    }
}

#[test]
fn the_gauge_of_the_paper_gives_a_lower_initial_gain() {
    let moments = golden();
    let sketch = Sketch { n_oversamples: 20, n_power_iterations: 2, seed: 1 };
    let found = decompose(&moments, 2, 2, sketch, &mut keep_going).unwrap();
    let a = found.transition().unwrap();
    let c = found.observation(&a).unwrap();
    let g = crate::linalg::dense::symmetric(&cross(c.view(), c.view()));
    let pi = crate::linalg::solvers::lyapunov(&a, &identity(2)).unwrap();
    let largest = eigenvalues(&product([g.as_ref(), pi.as_ref()]), "G Pi").unwrap();
    let largest = largest.into_iter().map(|(re, _)| re).fold(0.0, f64::max);
    assert!((largest - 3.845561775615).abs() < 1e-9);
    let model = Dynamics { a, q: identity(2), e: Scale(0.98 / largest) * &pi, g };
    let steady = SteadyState::of(&model).unwrap();
    let gain = expectations(&moments, &model, &steady, &c, 3, WordTerms::Skip).unwrap().gain;
    assert!((gain - 0.492866026184).abs() < 1e-9, "{gain}");
    assert!((steady.log_det - 0.021284927139).abs() < 1e-9);
}

/// The complex pair of eigenvalues of a 2 × 2 matrix.
fn pair(x: &Mat<f64>) -> (f64, f64) {
    let (re, im) = eigenvalues(x, "x").unwrap()[0];
    (re, im.abs())
}

fn close_pair((re, im): (f64, f64), (expected_re, expected_im): (f64, f64), tolerance: f64) {
    let fine = (re - expected_re).abs() < tolerance && (im - expected_im).abs() < tolerance;
    assert!(fine, "{re} +- {im} i");
}

#[test]
fn the_initial_model_agrees_with_golden_numbers() {
    let moments = golden();
    let sketch = Sketch { n_oversamples: 20, n_power_iterations: 2, seed: 1 };
    let keep_going = &mut keep_going;
    let all = decompose(&moments, 2, 6, sketch, keep_going).unwrap();
    let hankel = [
        1.499935498730,
        1.400625438356,
        0.738345204435,
        0.621193586403,
        0.517591683345,
        0.366761704733,
    ];
    for (found, expected) in all.values.iter().zip(hankel) {
        assert!((found - expected).abs() < 1e-9, "{found}");
    }
    let first = decompose(&moments, 2, 2, sketch, keep_going).unwrap();
    close_pair(pair(&first.transition().unwrap()), (-0.358231992125, 0.798882430040), 1e-9);
    let v = moments.null_vector();
    let identified = first.identify(v).unwrap();
    assert!((identified.least[0] - 0.873023913083).abs() < 1e-9);
    assert!((identified.least[1] - 0.025011142926).abs() < 1e-9);
    let model = identified.model;
    assert_singular(
        &model,
        [0.985924288479, 0.777486979645],
        [0.917196361104, 0.854579366033],
        1e-9,
    );
    let steady = SteadyState::of(&model.dynamics()).unwrap();
    let eigen = crate::linalg::dense::eigen(&steady.predicted, "Sigma_1").unwrap().values;
    assert!((eigen[0] - 0.165198653182).abs() < 1e-9 && (eigen[1] - 0.472372606399).abs() < 1e-9);
    close_pair(pair(&steady.h), (-0.135905195191, 0.378924936454), 1e-9);
    assert!((steady.log_det + 1.596926741941).abs() < 1e-9);
    let diagonal = [
        0.480383311925,
        0.687049879589,
        0.715496653032,
        0.671625953496,
        0.687354943681,
        0.734094261063,
        0.685330767578,
        0.767109171965,
    ];
    for (row, expected) in diagonal.into_iter().enumerate() {
        let square: f64 = model.c.row(row).iter().map(|x| x * x).sum();
        assert!((1.0 - moments.mu()[row] - square - expected).abs() < 1e-9);
    }
}

#[test]
fn fifty_iterations_of_em_agree_with_golden_numbers() {
    let moments = golden();
    let sketch = Sketch { n_oversamples: 20, n_power_iterations: 2, seed: 1 };
    let first = decompose(&moments, 2, 2, sketch, &mut keep_going).unwrap();
    let v = moments.null_vector();
    let mut model = first.identify(v).unwrap().model;
    let mut gains = Vec::new();
    for step in 0..=50 {
        let (dynamics, c) = (model.dynamics(), &model.c);
        let steady = SteadyState::of(&dynamics).unwrap();
        if step == 10 {
            check_tenth_step(&model, &steady, moments.mu());
        }
        let found = expectations(&moments, &dynamics, &steady, c, 3, WordTerms::Compute).unwrap();
        gains.push(found.gain);
        model = m_step(&model, found, v).unwrap();
    }
    let expected = [
        (0, 0.787555732305, 1e-9),
        (1, 0.862617700800, 1e-8),
        (2, 0.884124195867, 1e-8),
        (5, 0.899728124248, 1e-8),
        (10, 0.904630440006, 1e-8),
        (20, 0.906484889268, 1e-8),
        (50, 0.908144882233, 1e-8),
    ];
    for (step, gain, tolerance) in expected {
        assert!((gains[step] - gain).abs() < tolerance, "{step}: {}", gains[step]);
    }
}

fn check_tenth_step(model: &Canonical<f64>, steady: &SteadyState, mu: &[f64]) {
    close_pair(pair(&model.a), (-0.305340763767, 0.824231870232), 1e-8);
    assert_singular(
        model,
        [0.985191314897, 0.784204190841],
        [0.919423170932, 0.901746763198],
        1e-8,
    );
    assert!((steady.log_det + 1.810836026272).abs() < 1e-8);
    let gain = text_gain(&model.dynamics(), steady, &model.c, mu, &golden_tokens());
    // The sum over 40 tokens.
    assert!((gain - 57.133517982151).abs() < 40.0 * 1e-8, "{gain}");
}

fn assert_singular(model: &Canonical<f64>, a: [f64; 2], c: [f64; 2], tolerance: f64) {
    let found = singular(&model.a, "A").unwrap().values;
    let squares = crate::linalg::dense::eigen(&model.g, "G").unwrap().values;
    let of_c = [squares[1].sqrt(), squares[0].sqrt()];
    for (found, expected) in found.iter().chain(&of_c).zip(a.iter().chain(&c)) {
        assert!((found - expected).abs() < tolerance, "{found}, not {expected}");
    }
}
