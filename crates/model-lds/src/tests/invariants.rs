//! What must hold for any text and any model, against dense matrices of words by words.

use super::golden::{dense, fixed};
use super::toy::{golden, lag_counts, markov_text, moments};
use crate::asos::expectations;
use crate::canonical::Canonical;
use crate::covariances::{Covariances, Side, Weights};
use crate::dense::{
    NumericError, cholesky, eigen, frobenius, identity, product, spectral_radius, symmetric,
};
use crate::lu::inverse;
use crate::moments::Moments;
use crate::packed::Packed;
use crate::packed_products::times;
use crate::packing::Packing;
use crate::panel::Panel;
use crate::solvers::{lyapunov, riccati, riccati_by_filtering};
use crate::steady::{Dynamics, Steady, precision};
use crate::subspace::{Sketch, decompose};
use crate::sums::cross;
use latens_math::linalg::{Mat, Scale};
use latens_math::{Csr, Real, Rng};

pub(super) const SKETCH: Sketch = Sketch { n_extra: 20, n_powers: 3, seed: 1 };

pub(super) fn go_on() -> Result<(), NumericError> {
    Ok(())
}

pub(super) fn first_model(moments: &Moments<f64>, dim: usize) -> Canonical<f64> {
    let decomposition = decompose(moments, 3, dim, SKETCH, &mut go_on).unwrap();
    decomposition.identify(moments.null_vector()).unwrap().model
}

fn assert_near(a: &Mat<f64>, b: &Mat<f64>, tolerance: f64, what: &str) {
    let difference = frobenius(&(a - b));
    assert!(difference < tolerance, "{what}: {difference:e}");
}

pub(super) fn to_mat<T: Real>(panel: &Panel<T>) -> Mat<f64> {
    Mat::from_fn(panel.n_rows(), panel.n_cols(), |i, j| panel.row(i)[j].wide())
}

/// Whitened words: a row a token.
fn whitened(text: &[usize], mu: &[f64]) -> Mat<f64> {
    let entry =
        |t: usize, j: usize| f64::from(u8::from(text[t] == j)) / mu[j].sqrt() - mu[j].sqrt();
    Mat::from_fn(text.len(), mu.len(), entry)
}

#[test]
fn covariances_are_those_of_centred_words() {
    let text = markov_text(400, 20, 1);
    let moments = moments::<f64>(&text, 20, 5, 0.7);
    let words = whitened(&text, moments.mu());
    let n_tokens = 400.0 + 0.7 * 20.0;
    for lag in 1..=5 {
        let (later, earlier) = (words.subrows(lag, 400 - lag), words.subrows(0, 400 - lag));
        let expected = Scale(1.0 / n_tokens) * product([later.transpose(), earlier]);
        assert_near(&dense(&moments, lag), &expected, 1e-12, "later");
        let eye = Panel::from_rows(20, 20, &to_rows(&identity(20)));
        let transposed = to_mat(&moments.product(lag, Side::Earlier, &eye));
        assert_near(&transposed, &expected.transpose().to_owned(), 1e-12, "earlier");
        let v = Mat::from_fn(20, 1, |i, _| moments.null_vector()[i]);
        assert!(frobenius(&product([expected.as_ref(), v.as_ref()])) < 1e-13);
        let psi = dense(&moments, lag);
        assert!(frobenius(&product([psi.as_ref(), v.as_ref()])) < 1e-14);
        assert!(frobenius(&product([v.transpose(), psi.as_ref()])) < 1e-14);
    }
}

fn to_rows(x: &Mat<f64>) -> Vec<f64> {
    crate::learner::to_rows(x)
}

#[test]
fn covariances_at_all_lags_are_those_of_some_process() {
    let text = markov_text(300, 12, 2);
    let sentences: Vec<&[usize]> = text.chunks(30).collect();
    let unigrams = super::toy::unigrams(&text, 12);
    for pseudo_counts in [0.0, 0.5, 20.0] {
        let streamed = moments::<f64>(&text, 12, 4, pseudo_counts);
        let bounded = (1..=4).map(|lag| {
            let parts = sentences.iter().map(|part| lag_counts::<f64>(part, 12, lag));
            super::toy::sum(parts.collect())
        });
        let bounded = Moments::new(&unigrams, bounded, pseudo_counts);
        for moments in [streamed, bounded] {
            let block = |i: usize, j: usize| match i.cmp(&j) {
                std::cmp::Ordering::Equal => {
                    let v = moments.null_vector();
                    Mat::from_fn(12, 12, |i, j| f64::from(u8::from(i == j)) - v[i] * v[j])
                }
                std::cmp::Ordering::Greater => dense(&moments, i - j),
                std::cmp::Ordering::Less => dense(&moments, j - i).transpose().to_owned(),
            };
            let mut toeplitz = Mat::zeros(60, 60);
            for (i, j) in (0..5).flat_map(|i| (0..5).map(move |j| (i, j))) {
                toeplitz.as_mut().submatrix_mut(12 * i, 12 * j, 12, 12).copy_from(block(i, j));
            }
            assert!(eigen(&symmetric(&toeplitz), "T").unwrap().least() > -1e-12);
        }
    }
}

#[test]
fn products_with_the_hankel_matrix_are_those_of_its_blocks() {
    let text = markov_text(300, 12, 3);
    let moments = moments::<f64>(&text, 12, 5, 1.0);
    // Few columns, and more than a strip of them, the last one not full.
    for n in [4, 70] {
        check_hankel(&moments, n);
    }
}

fn check_hankel(moments: &Moments<f64>, n: usize) {
    let mut rng = Rng::new(1);
    let x: Vec<Mat<f64>> = (0..3).map(|_| Mat::from_fn(12, n, |_, _| rng.normal())).collect();
    let packed: Vec<Packed<f64>> = x.iter().map(pack).collect();
    let (mut y, mut z) = (packed.clone(), packed.clone());
    moments.hankel(Side::Later, &mut y);
    moments.hankel(Side::Earlier, &mut z);
    for i in 0..3 {
        let (mut sum, mut transposed) = (Mat::zeros(12, n), Mat::zeros(12, n));
        for (j, x) in x.iter().enumerate() {
            sum += &product([dense(moments, 3 + i - j).as_ref(), x.as_ref()]);
            transposed += &product([dense(moments, 3 + j - i).transpose(), x.as_ref()]);
        }
        assert_near(&unpack(&y[i]), &sum, 1e-13, "H x");
        assert_near(&unpack(&z[i]), &transposed, 1e-13, "H^T x");
        let alone = moments.hankel_block(Side::Earlier, &packed, i);
        assert_near(&unpack(&alone), &transposed, 1e-13, "a block of H^T x");
    }
}

fn pack(x: &Mat<f64>) -> Packed<f64> {
    let rows = |row: usize, out: &mut [f64]| {
        out.iter_mut().enumerate().for_each(|(j, out)| *out = x[(row, j)]);
    };
    Packed::side_by_side(1, (x.nrows(), x.ncols()), 64, rows).remove(0)
}

fn unpack(x: &Packed<f64>) -> Mat<f64> {
    to_mat(&times(std::slice::from_ref(x), &[identity(x.n_cols())]))
}

#[test]
fn one_pass_finds_what_single_products_find() {
    fn check<T: Packing>(n: usize, tolerance: f64) {
        let text = markov_text(2000, 150, 4);
        let moments = moments::<T>(&text, 150, 4, 0.5);
        let mut rng = Rng::new(2);
        let values: Vec<T> = (0..150 * n).map(|_| T::of(0.1 * rng.normal())).collect();
        let c = Panel::from_rows(150, n, &values);
        let mut random = || (0..4).map(|_| Mat::from_fn(n, n, |_, _| rng.normal())).collect();
        let weights = Weights { right: random(), left: random() };
        let fast = moments.pass(&c, 4, Some(&weights));
        let slow = Plain(&moments).pass(&c, 4, Some(&weights));
        assert_near(&to_mat(&fast.sum), &to_mat(&slow.sum), tolerance, "sum");
        let only_r = moments.pass(&c, 4, None);
        for (i, slow) in slow.r.iter().enumerate() {
            assert_near(&fast.r[i], slow, tolerance, "R_k");
            assert_near(&only_r.r[i], slow, tolerance, "R_k alone");
        }
    }
    // More columns than a strip has, too, the last strip not full.
    check::<f64>(7, 1e-12);
    check::<f64>(70, 1e-11);
    check::<f32>(7, 1e-4);
    check::<f32>(70, 1e-3);
}

/// The same covariances without a pass of their own.
struct Plain<'a, T>(&'a Moments<T>);

impl<T: Packing> Covariances<T> for Plain<'_, T> {
    fn n_types(&self) -> usize {
        self.0.n_types()
    }
    fn null_vector(&self) -> &[T] {
        self.0.null_vector()
    }
    fn hankel(&self, side: Side, x: &mut [Packed<T>]) {
        self.0.hankel(side, x);
    }
    fn hankel_block(&self, side: Side, x: &[Packed<T>], block: usize) -> Packed<T> {
        self.0.hankel_block(side, x, block)
    }
    fn product(&self, lag: usize, side: Side, x: &Panel<T>) -> Panel<T> {
        self.0.product(lag, side, x)
    }
}

#[test]
fn the_steady_state_solves_its_equations() {
    let moments = moments::<f64>(&markov_text(4000, 50, 5), 50, 7, 0.7);
    let model = first_model(&moments, 5);
    let dynamics = model.dynamics();
    let Dynamics { a, q, e, g } = &dynamics;
    let steady = Steady::of(&dynamics).unwrap();
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

/// Covariances that are given as matrices.
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
    fn hankel(&self, side: Side, x: &mut [Packed<f64>]) {
        let product: Vec<_> = (0..x.len()).map(|i| self.hankel_block(side, x, i)).collect();
        x.clone_from_slice(&product);
    }
    fn hankel_block(&self, side: Side, x: &[Packed<f64>], i: usize) -> Packed<f64> {
        let mut out = Mat::zeros(x[0].n_rows(), x[0].n_cols());
        for (j, block) in x.iter().enumerate() {
            let n = x.len();
            out += &match side {
                Side::Later => product([self.psi[n + i - j - 1].as_ref(), unpack(block).as_ref()]),
                Side::Earlier => {
                    product([self.psi[n + j - i - 1].transpose(), unpack(block).as_ref()])
                }
            };
        }
        pack(&out)
    }
    fn product(&self, lag: usize, side: Side, x: &Panel<f64>) -> Panel<f64> {
        let psi = match side {
            Side::Later => self.psi[lag - 1].as_ref(),
            Side::Earlier => self.psi[lag - 1].transpose(),
        };
        let out = product([psi, to_mat(x).as_ref()]);
        Panel::from_rows(x.n_rows(), x.n_cols(), &to_rows(&out))
    }
}

/// The covariances that a model has itself: Ψ_k = C A^k Cᵀ.
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
    let model = first_model(&moments, 4);
    let own = own_covariances(&model, moments.null_vector(), 7);
    let dynamics = model.dynamics();
    let steady = Steady::of(&dynamics).unwrap();
    for horizon in [1, 2, 4, 7] {
        let found = expectations(&own, &dynamics, &steady, &model.c, horizon, true).unwrap();
        assert_near(&found.state, &identity(4), 1e-11, "Exx = Pi");
        assert_near(&found.next_state, &model.a, 1e-11, "Ex1 = A Pi");
        let filtered = identity(4) - &steady.filtered;
        assert_near(&found.moments.filtered, &filtered, 1e-11, "X_0 = Pi - Sigma_0");
        assert!((found.gain + 0.5 * steady.log_det).abs() < 1e-11);
        let next = model.m_step(found, moments.null_vector()).unwrap();
        assert_near(&next.a, &model.a, 1e-10, "A");
        assert_near(&to_mat(&next.c), &to_mat(&model.c), 1e-10, "C");
    }
}

#[test]
fn a_model_is_found_again_from_its_own_covariances() {
    let moments = moments::<f64>(&markov_text(4000, 30, 7), 30, 7, 0.7);
    let model = first_model(&moments, 4);
    let own = own_covariances(&model, moments.null_vector(), 7);
    let found = decompose(&own, 3, 4, SKETCH, &mut go_on).unwrap();
    let found = found.identify(moments.null_vector()).unwrap().model;
    // The state is known up to a rotation, and the pull to the singular values leaves a trace.
    let (c, d) = (to_mat(&model.c), to_mat(&found.c));
    let psi = |c: &Mat<f64>, a: &Mat<f64>| product([c.as_ref(), a.as_ref(), c.transpose()]);
    let expected = psi(&c, &model.a);
    let error = frobenius(&(psi(&d, &found.a) - &expected)) / frobenius(&expected);
    assert!(error < 0.03, "{error}");
}

/// Counts of words in three classes, which decide alone who follows whom: covariances have the rank 2.
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
    let sketch = Sketch { n_powers: 0, ..SKETCH };
    let found = decompose(&moments, 3, 12, sketch, &mut go_on).unwrap();
    // Three blocks of rank 2 have six dimensions. Packed numbers are rounded, which leaves others of no meaning:
    // some 1e-5 of the largest.
    assert_eq!(found.rank(), 6, "{:?}", found.values);
    assert!(found.values[6] > 2e-6 * found.values[0], "{:?}", found.values);
}

#[test]
fn the_gauge_changes_nothing_that_can_be_seen() {
    let moments = golden();
    let (model, c) = fixed(&moments);
    let mut rng = Rng::new(3);
    let m = Mat::from_fn(2, 2, |_, _| rng.normal());
    let back = inverse(&m, "M").unwrap();
    let outer = |x: &Mat<f64>| product([m.as_ref(), x.as_ref(), m.transpose()]);
    let d = crate::panel::times(c.view(), &back);
    let other = Dynamics {
        a: product([m.as_ref(), model.a.as_ref(), back.as_ref()]),
        q: outer(&model.q),
        e: outer(&model.e),
        g: cross(d.view(), d.view()),
    };
    let (s, t) = (Steady::of(&model).unwrap(), Steady::of(&other).unwrap());
    assert!((s.log_det - t.log_det).abs() < 1e-9);
    let gain = |model, steady, c| expectations(&moments, model, steady, c, 3, true).unwrap().gain;
    assert!((gain(&model, &s, &c) - gain(&other, &t, &d)).abs() < 1e-9);
    let seen = |c: &Panel<f64>, model: &Dynamics, steady: &Steady| {
        let c = to_mat(c);
        product([c.as_ref(), model.a.as_ref(), steady.b.as_ref(), c.transpose()])
    };
    assert_near(&seen(&c, &model, &s), &seen(&d, &other, &t), 1e-9, "C A B C^T");
}

#[test]
fn em_never_loses_and_stays_in_the_canonical_gauge() {
    let moments = moments::<f64>(&markov_text(6000, 40, 8), 40, 7, 5.0);
    let mut model = first_model(&moments, 5);
    let mut last = f64::NEG_INFINITY;
    for _ in 0..15 {
        let dynamics = model.dynamics();
        let steady = Steady::of(&dynamics).unwrap();
        let found = expectations(&moments, &dynamics, &steady, &model.c, 7, true).unwrap();
        assert!(found.gain > last - 1e-3 * last.abs(), "{last} to {}", found.gain);
        let x = &found.moments.filtered;
        assert_near(x, &x.transpose().to_owned(), 1e-10 * frobenius(x), "X_0 is symmetric");
        last = found.gain;
        model = model.m_step(found, moments.null_vector()).unwrap();
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
    // Enough types that every pass over them is cut into several parts.
    let n_types = 1600;
    let moments = moments::<f32>(&markov_text(20_000, n_types, 9), n_types, 7, 2.0);
    let gain = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let first = decompose(&moments, 3, 8, SKETCH, &mut go_on).unwrap();
            let mut model = first.identify(moments.null_vector()).unwrap().model;
            let mut gain = 0.0;
            for _ in 0..3 {
                let dynamics = model.dynamics();
                let steady = Steady::of(&dynamics).unwrap();
                let found = expectations(&moments, &dynamics, &steady, &model.c, 7, true).unwrap();
                gain = found.gain;
                model = model.m_step(found, moments.null_vector()).unwrap();
            }
            (gain, model.c.to_rows())
        })
    };
    let one = gain(1);
    assert_eq!(one, gain(2));
    assert_eq!(one, gain(3));
}

/// A Gaussian text of eight numbers a token from a state of three, and its covariances, whitened; also how the
/// model itself would have them at lag 1.
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
fn a_gaussian_system_is_found_again_from_its_text() {
    let error = |n_tokens: usize| {
        let (covariances, truth) = gaussian(n_tokens);
        let sketch = Sketch { n_extra: 20, n_powers: 4, seed: 1 };
        let first = decompose(&covariances, 6, 3, sketch, &mut go_on).unwrap();
        let mut model = first.identify(covariances.null_vector()).unwrap().model;
        let error = |model: &Canonical<f64>| {
            let c = to_mat(&model.c);
            let found = product([c.as_ref(), model.a.as_ref(), c.transpose()]);
            frobenius(&(found - &truth)) / frobenius(&truth)
        };
        let (at_first, mut last) = (error(&model), f64::NEG_INFINITY);
        for _ in 0..20 {
            let dynamics = model.dynamics();
            let steady = Steady::of(&dynamics).unwrap();
            let found = expectations(&covariances, &dynamics, &steady, &model.c, 8, true).unwrap();
            assert!(found.gain > last - 1e-4, "{last} to {}", found.gain);
            last = found.gain;
            model = model.m_step(found, covariances.null_vector()).unwrap();
        }
        [at_first, error(&model)]
    };
    let (short, long) = (error(4_000), error(64_000));
    assert!(short.iter().all(|&error| error < 0.2), "{short:?}");
    assert!(long.iter().all(|&error| error < 0.06), "{long:?}");
    assert!(long[1] < short[1], "more text, a better model: {short:?} {long:?}");
}
