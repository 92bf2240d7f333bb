//! Properties that hold for every text and every model, checked with dense matrices of words by words.

use super::fixtures::{
    SKETCH, assert_near, fixed_model, from_compact, initial_model, keep_going, to_compact, to_mat,
};
use super::toy::{golden, markov_text, moments};
use crate::learn::e_step::{WordTerms, expectations};
use crate::learn::m_step::m_step;
use crate::learn::moments::covariances::{Covariances, Side};
use crate::learn::moments::text_moments::Moments;
use crate::learn::subspace::{Sketch, decompose};
use crate::linalg::compact_panel::CompactPanel;
use crate::linalg::dense::{
    cholesky, eigen, frobenius, identity, product, spectral_radius, symmetric, to_row_major,
};
use crate::linalg::lu::inverse;
use crate::linalg::panel::Panel;
use crate::linalg::solvers::{lyapunov, riccati, riccati_by_filtering};
use crate::linalg::sums::cross;
use crate::system::canonical::Canonical;
use crate::system::steady_state::{Dynamics, SteadyState, precision};
use latens_math::linalg::{Mat, Scale};
use latens_math::{Csr, Rng};

#[test]
fn the_steady_state_solves_its_equations() {
    let moments = moments::<f64>(&markov_text(4000, 50, 5), 50, 7, 0.7);
    let model = initial_model(&moments, 5);
    let dynamics = model.dynamics();
    let Dynamics { a, q, e, g } = &dynamics;
    let steady = SteadyState::of(&dynamics).unwrap();
    let r = precision(&cholesky(g, "G").unwrap(), e).unwrap();
    let predicted = riccati(a, q, &r).unwrap();
    assert_near(&predicted, &riccati_by_filtering(a, q, g, e).unwrap(), 1e-11, "two solvers");
    let filtered = inverse(&(inverse(&predicted, "S").unwrap() + &r), "S").unwrap();
    let residual = product([a.as_ref(), filtered.as_ref(), a.transpose()]) + q;
    assert_near(&residual, &predicted, 1e-10, "Riccati");
    assert_near(&filtered, &steady.filtered, 1e-10, "the measurement update");
    let least = |x: &Mat<f64>, y: &Mat<f64>| eigen(&symmetric(&(x - y)), "d").unwrap().least();
    let pi = lyapunov(a, q).unwrap();
    assert!(least(&predicted, &steady.filtered) > -1e-10 && least(&pi, &predicted) > -1e-10);
    let radius = spectral_radius(&steady.h, "H").unwrap();
    assert!(radius < 1.0 && (radius - spectral_radius(&steady.j, "J").unwrap()).abs() < 1e-8);
    // The same with matrices of words by words.
    let c = to_mat(&model.c);
    let eye = identity(50);
    let s = &eye + product([c.as_ref(), (&predicted - e).as_ref(), c.transpose()]);
    let inverse_s = inverse(&s, "S").unwrap();
    let n_c = product([steady.n.as_ref(), c.transpose()]);
    assert_near(&n_c, &product([c.transpose(), inverse_s.as_ref()]), 1e-10, "N C^T");
    let theta = product([c.as_ref(), steady.theta.as_ref(), c.transpose()]);
    assert_near(&(&eye - theta), &inverse_s, 1e-10, "the inverse of S");
    let log_det: f64 = eigen(&symmetric(&s), "S").unwrap().values.iter().map(|x| x.ln()).sum();
    assert!((log_det - steady.log_det).abs() < 1e-10);
}

/// Covariances given as dense matrices.
struct Dense {
    psi: Vec<Mat<f64>>,
    v: Vec<f64>,
}

impl Covariances<f64> for Dense {
    fn n_types(&self) -> usize {
        self.v.len()
    }
    fn null_vector(&self) -> &[f64] {
        &self.v
    }
    fn hankel_product(&self, side: Side, x: &mut [CompactPanel<f64>]) {
        let product: Vec<_> = (0..x.len()).map(|i| self.hankel_block(side, x, i)).collect();
        x.clone_from_slice(&product);
    }
    fn hankel_block(&self, side: Side, x: &[CompactPanel<f64>], i: usize) -> CompactPanel<f64> {
        let mut out = Mat::zeros(x[0].n_rows(), x[0].n_cols());
        for (j, block) in x.iter().enumerate() {
            let n = x.len();
            out += &match side {
                Side::Later => {
                    product([self.psi[n + i - j - 1].as_ref(), from_compact(block).as_ref()])
                }
                Side::Earlier => {
                    product([self.psi[n + j - i - 1].transpose(), from_compact(block).as_ref()])
                }
            };
        }
        to_compact(&out)
    }
    fn product(&self, lag: usize, side: Side, x: &Panel<f64>) -> Panel<f64> {
        let psi = match side {
            Side::Later => self.psi[lag - 1].as_ref(),
            Side::Earlier => self.psi[lag - 1].transpose(),
        };
        let out = product([psi, to_mat(x).as_ref()]);
        Panel::from_rows(x.n_rows(), x.n_cols(), &to_row_major::<f64>(&out))
    }
}

/// The covariances that a model implies: Ψ_k = C A^k Cᵀ.
fn own_covariances(model: &Canonical<f64>, v: &[f64], n_lags: usize) -> Dense {
    let c = to_mat(&model.c);
    let mut power = identity(model.a.nrows());
    let mut psi = Vec::new();
    for _ in 0..n_lags {
        power = product([power.as_ref(), model.a.as_ref()]);
        psi.push(product([c.as_ref(), power.as_ref(), c.transpose()]));
    }
    Dense { psi, v: v.to_vec() }
}

#[test]
fn a_model_is_a_fixed_point_of_em_at_its_own_covariances() {
    let moments = moments::<f64>(&markov_text(4000, 30, 6), 30, 7, 0.7);
    let model = initial_model(&moments, 4);
    let own = own_covariances(&model, moments.null_vector(), 7);
    let dynamics = model.dynamics();
    let steady = SteadyState::of(&dynamics).unwrap();
    for horizon in [1, 2, 4, 7] {
        let found =
            expectations(&own, &dynamics, &steady, &model.c, horizon, WordTerms::Compute).unwrap();
        assert_near(&found.state, &identity(4), 1e-11, "Exx = Pi");
        assert_near(&found.next_state, &model.a, 1e-11, "Ex1 = A Pi");
        let filtered = identity(4) - &steady.filtered;
        assert_near(&found.moments.filtered, &filtered, 1e-11, "X_0 = Pi - Sigma_0");
        assert!((found.gain + 0.5 * steady.log_det).abs() < 1e-11);
        let next = m_step(&model, found, moments.null_vector()).unwrap();
        assert_near(&next.a, &model.a, 1e-10, "A");
        assert_near(&to_mat(&next.c), &to_mat(&model.c), 1e-10, "C");
    }
}

#[test]
fn a_model_is_recovered_from_its_own_covariances() {
    let moments = moments::<f64>(&markov_text(4000, 30, 7), 30, 7, 0.7);
    let model = initial_model(&moments, 4);
    let own = own_covariances(&model, moments.null_vector(), 7);
    let found = decompose(&own, 3, 4, SKETCH, &mut keep_going).unwrap();
    let found = found.identify(moments.null_vector()).unwrap().model;
    // The state is determined up to a rotation, and the ridge leaves a small error.
    let (c, d) = (to_mat(&model.c), to_mat(&found.c));
    let psi = |c: &Mat<f64>, a: &Mat<f64>| product([c.as_ref(), a.as_ref(), c.transpose()]);
    let expected = psi(&c, &model.a);
    let error = frobenius(&(psi(&d, &found.a) - &expected)) / frobenius(&expected);
    assert!(error < 0.03, "{error}");
}

/// Counts of words whose transitions depend only on three classes, so that covariances have rank 2.
fn counts_of_classes(n_types: usize, n_lags: usize) -> Moments<f32> {
    let mut rng = Rng::new(9);
    let unigrams: Vec<u64> = (0..n_types).map(|_| 100 + (1000.0 * rng.uniform()) as u64).collect();
    let lag = |_| {
        let of_classes: Vec<f64> = (0..9).map(|_| 1e-5 * rng.uniform()).collect();
        let count = |i: usize, j: usize| {
            (unigrams[i] * unigrams[j]) as f64 * of_classes[3 * (i % 3) + j % 3]
        };
        let offsets = (0..=n_types).map(|row| (row * n_types) as u64).collect();
        let columns = (0..n_types * n_types).map(|i| (i % n_types) as u32).collect();
        let counts = (0..n_types * n_types).map(|i| count(i / n_types, i % n_types) as f32);
        Csr::new(n_types, offsets, columns, counts.collect()).unwrap()
    };
    let lags: Vec<Csr<f32>> = (0..n_lags).map(lag).collect();
    Moments::new(&unigrams, lags, 0.0)
}

#[test]
fn rounding_adds_no_dimensions() {
    let moments = counts_of_classes(200, 5);
    let sketch = Sketch { n_power_iterations: 0, ..SKETCH };
    let found = decompose(&moments, 3, 12, sketch, &mut keep_going).unwrap();
    // Three blocks of rank 2 have six dimensions. Quantization adds spurious ones, some 1e-5 of the largest.
    assert_eq!(found.rank(), 6, "{:?}", found.values);
    assert!(found.values[6] > 2e-6 * found.values[0], "{:?}", found.values);
}

#[test]
fn observable_quantities_do_not_depend_on_the_gauge() {
    let moments = golden();
    let (model, c) = fixed_model(&moments);
    let mut rng = Rng::new(3);
    let m = Mat::from_fn(2, 2, |_, _| rng.normal());
    let back = inverse(&m, "M").unwrap();
    let outer = |x: &Mat<f64>| product([m.as_ref(), x.as_ref(), m.transpose()]);
    let d = crate::linalg::panel::times(c.view(), &back);
    let other = Dynamics {
        a: product([m.as_ref(), model.a.as_ref(), back.as_ref()]),
        q: outer(&model.q),
        e: outer(&model.e),
        g: cross(d.view(), d.view()),
    };
    let (s, t) = (SteadyState::of(&model).unwrap(), SteadyState::of(&other).unwrap());
    assert!((s.log_det - t.log_det).abs() < 1e-9);
    let gain = |model, steady, c| {
        expectations(&moments, model, steady, c, 3, WordTerms::Compute).unwrap().gain
    };
    assert!((gain(&model, &s, &c) - gain(&other, &t, &d)).abs() < 1e-9);
    let seen = |c: &Panel<f64>, model: &Dynamics, steady: &SteadyState| {
        let c = to_mat(c);
        product([c.as_ref(), model.a.as_ref(), steady.b.as_ref(), c.transpose()])
    };
    assert_near(&seen(&c, &model, &s), &seen(&d, &other, &t), 1e-9, "C A B C^T");
}

#[test]
fn em_never_lowers_the_gain_and_stays_in_the_canonical_gauge() {
    let moments = moments::<f64>(&markov_text(6000, 40, 8), 40, 7, 5.0);
    let mut model = initial_model(&moments, 5);
    let mut last = f64::NEG_INFINITY;
    for _ in 0..15 {
        let dynamics = model.dynamics();
        let steady = SteadyState::of(&dynamics).unwrap();
        let found =
            expectations(&moments, &dynamics, &steady, &model.c, 7, WordTerms::Compute).unwrap();
        assert!(found.gain > last - 1e-3 * last.abs(), "{last} to {}", found.gain);
        let x = &found.moments.filtered;
        assert_near(x, &x.transpose().to_owned(), 1e-10 * frobenius(x), "X_0 is symmetric");
        last = found.gain;
        model = m_step(&model, found, moments.null_vector()).unwrap();
        assert_eq!(model.n_clipped, 0);
        let norm = |x: &Mat<f64>| eigen(&symmetric(x), "x").unwrap().greatest();
        assert!(norm(&model.g) < 1.0);
        assert!(norm(&product([model.a.transpose(), model.a.as_ref()])) < 1.0);
        let v = Mat::from_fn(40, 1, |i, _| moments.null_vector()[i]);
        assert!(frobenius(&product([to_mat(&model.c).transpose(), v.as_ref()])) < 1e-12);
        let Dynamics { a, q, .. } = model.dynamics();
        assert_near(&lyapunov(&a, &q).unwrap(), &identity(5), 1e-11, "Pi");
    }
    assert!(last > 0.1, "{last}");
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    // Enough types that every pass over them is split into several parts.
    let n_types = 1600;
    let moments = moments::<f32>(&markov_text(20_000, n_types, 9), n_types, 7, 2.0);
    let gain = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let first = decompose(&moments, 3, 8, SKETCH, &mut keep_going).unwrap();
            let mut model = first.identify(moments.null_vector()).unwrap().model;
            let mut gain = 0.0;
            for _ in 0..3 {
                let dynamics = model.dynamics();
                let steady = SteadyState::of(&dynamics).unwrap();
                let found =
                    expectations(&moments, &dynamics, &steady, &model.c, 7, WordTerms::Compute)
                        .unwrap();
                gain = found.gain;
                model = m_step(&model, found, moments.null_vector()).unwrap();
            }
            (gain, model.c.to_rows())
        })
    };
    let one = gain(1);
    assert_eq!(one, gain(2));
    assert_eq!(one, gain(3));
}

/// The whitened covariances of a Gaussian text with eight numbers per token and a state of three dimensions, and the
/// true covariance at lag 1.
fn gaussian(n_tokens: usize) -> (Dense, Mat<f64>) {
    let mut rng = Rng::new(4);
    let (n, h) = (8, 3);
    let (cos, sin) = (0.92 * 0.6f64.cos(), 0.92 * 0.6f64.sin());
    let a = [[cos, -sin, 0.0], [sin, cos, 0.1], [0.0, 0.0, 0.7]];
    let a = Mat::from_fn(h, h, |i, j| a[i][j]);
    let c = Mat::from_fn(n, h, |_, _| 0.8 * rng.normal());
    let mut x = Mat::zeros(h, 1);
    let mut tokens = Panel::<f64>::zeros(n_tokens, n);
    for t in 0..n_tokens {
        x = product([a.as_ref(), x.as_ref()]) + Mat::from_fn(h, 1, |_, _| rng.normal());
        let word = product([c.as_ref(), x.as_ref()]);
        let token = tokens.row_mut(t);
        (0..n).for_each(|i| token[i] = word[(i, 0)] + rng.normal());
    }
    let covariance = |lag: usize| {
        let view = tokens.view();
        let sum = cross(view.subrows(lag, n_tokens - lag), view.subrows(0, n_tokens - lag));
        Scale(1.0 / n_tokens as f64) * &sum
    };
    let whitening = eigen(&symmetric(&covariance(0)), "Psi_0").unwrap().map(|x| 1.0 / x.sqrt());
    let whiten = |x: &Mat<f64>| product([whitening.as_ref(), x.as_ref(), whitening.as_ref()]);
    let state = lyapunov(&a, &identity(h)).unwrap();
    let truth = product([c.as_ref(), a.as_ref(), state.as_ref(), c.transpose()]);
    let psi = (1..=11).map(|lag| whiten(&covariance(lag))).collect();
    (Dense { psi, v: vec![0.0; n] }, whiten(&truth))
}

#[test]
fn a_gaussian_system_is_recovered_from_its_text() {
    let error = |n_tokens: usize| {
        let (covariances, truth) = gaussian(n_tokens);
        let sketch = Sketch { n_oversamples: 20, n_power_iterations: 4, seed: 1 };
        let first = decompose(&covariances, 6, 3, sketch, &mut keep_going).unwrap();
        let mut model = first.identify(covariances.null_vector()).unwrap().model;
        let error = |model: &Canonical<f64>| {
            let c = to_mat(&model.c);
            let found = product([c.as_ref(), model.a.as_ref(), c.transpose()]);
            frobenius(&(found - &truth)) / frobenius(&truth)
        };
        let (at_first, mut last) = (error(&model), f64::NEG_INFINITY);
        for _ in 0..20 {
            let dynamics = model.dynamics();
            let steady = SteadyState::of(&dynamics).unwrap();
            let found =
                expectations(&covariances, &dynamics, &steady, &model.c, 8, WordTerms::Compute)
                    .unwrap();
            assert!(found.gain > last - 1e-4, "{last} to {}", found.gain);
            last = found.gain;
            model = m_step(&model, found, covariances.null_vector()).unwrap();
        }
        [at_first, error(&model)]
    };
    let (short, long) = (error(4_000), error(64_000));
    assert!(short.iter().all(|&error| error < 0.2), "{short:?}");
    assert!(long.iter().all(|&error| error < 0.06), "{long:?}");
    assert!(long[1] < short[1], "more text should give a better model: {short:?} {long:?}");
}
