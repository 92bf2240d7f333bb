//! Products with covariances, compared with dense matrices of words by words.

use super::fixtures::{assert_near, dense_covariance, from_compact, to_compact, to_mat};
use super::toy::{lag_counts, markov_text, moments, sum, unigrams};
use crate::learn::moments::covariances::{Covariances, LagWeights, Side};
use crate::learn::moments::text_moments::Moments;
use crate::linalg::compact_panel::CompactPanel;
use crate::linalg::dense::{eigen, frobenius, identity, product, symmetric, to_row_major};
use crate::linalg::panel::Panel;
use crate::linalg::quantization::Quantize;
use latens_math::Rng;
use latens_math::linalg::{Mat, Scale};

/// Whitened words, one row per token.
fn whitened(text: &[usize], mu: &[f64]) -> Mat<f64> {
    let entry =
        |t: usize, j: usize| f64::from(u8::from(text[t] == j)) / mu[j].sqrt() - mu[j].sqrt();
    Mat::from_fn(text.len(), mu.len(), entry)
}

#[test]
fn covariances_agree_with_those_of_centered_words() {
    let text = markov_text(400, 20, 1);
    let moments = moments::<f64>(&text, 20, 5, 0.7);
    let words = whitened(&text, moments.mu());
    let n_tokens = 400.0 + 0.7 * 20.0;
    for lag in 1..=5 {
        let (later, earlier) = (words.subrows(lag, 400 - lag), words.subrows(0, 400 - lag));
        let expected = Scale(1.0 / n_tokens) * product([later.transpose(), earlier]);
        assert_near(&dense_covariance(&moments, lag), &expected, 1e-12, "later");
        let eye = Panel::from_rows(20, 20, &to_row_major::<f64>(&identity(20)));
        let transposed = to_mat(&moments.product(lag, Side::Earlier, &eye));
        assert_near(&transposed, &expected.transpose().to_owned(), 1e-12, "earlier");
        let v = Mat::from_fn(20, 1, |i, _| moments.null_vector()[i]);
        assert!(frobenius(&product([expected.as_ref(), v.as_ref()])) < 1e-13);
        let psi = dense_covariance(&moments, lag);
        assert!(frobenius(&product([psi.as_ref(), v.as_ref()])) < 1e-14);
        assert!(frobenius(&product([v.transpose(), psi.as_ref()])) < 1e-14);
    }
}

#[test]
fn covariances_at_all_lags_form_a_positive_semidefinite_matrix() {
    let text = markov_text(300, 12, 2);
    let sentences: Vec<&[usize]> = text.chunks(30).collect();
    let unigrams = unigrams(&text, 12);
    for pseudo_counts in [0.0, 0.5, 20.0] {
        let streamed = moments::<f64>(&text, 12, 4, pseudo_counts);
        let bounded = (1..=4).map(|lag| {
            let parts = sentences.iter().map(|part| lag_counts::<f64>(part, 12, lag));
            sum(parts.collect())
        });
        let bounded = Moments::new(&unigrams, bounded, pseudo_counts);
        for moments in [streamed, bounded] {
            let block = |i: usize, j: usize| match i.cmp(&j) {
                std::cmp::Ordering::Equal => {
                    let v = moments.null_vector();
                    Mat::from_fn(12, 12, |i, j| f64::from(u8::from(i == j)) - v[i] * v[j])
                }
                std::cmp::Ordering::Greater => dense_covariance(&moments, i - j),
                std::cmp::Ordering::Less => {
                    dense_covariance(&moments, j - i).transpose().to_owned()
                }
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
fn products_with_the_hankel_matrix_agree_with_those_of_its_blocks() {
    let text = markov_text(300, 12, 3);
    let moments = moments::<f64>(&text, 12, 5, 1.0);
    // Less than one strip of columns, and two strips of which the last one is not full.
    for n in [4, 70] {
        check_hankel(&moments, n);
    }
}

fn check_hankel(moments: &Moments<f64>, n: usize) {
    let mut rng = Rng::new(1);
    let x: Vec<Mat<f64>> = (0..3).map(|_| Mat::from_fn(12, n, |_, _| rng.normal())).collect();
    let packed: Vec<CompactPanel<f64>> = x.iter().map(to_compact).collect();
    let (mut y, mut z) = (packed.clone(), packed.clone());
    moments.hankel_product(Side::Later, &mut y);
    moments.hankel_product(Side::Earlier, &mut z);
    for i in 0..3 {
        let (mut sum, mut transposed) = (Mat::zeros(12, n), Mat::zeros(12, n));
        for (j, x) in x.iter().enumerate() {
            sum += &product([dense_covariance(moments, 3 + i - j).as_ref(), x.as_ref()]);
            transposed += &product([dense_covariance(moments, 3 + j - i).transpose(), x.as_ref()]);
        }
        assert_near(&from_compact(&y[i]), &sum, 1e-13, "H x");
        assert_near(&from_compact(&z[i]), &transposed, 1e-13, "H^T x");
        let alone = moments.hankel_block(Side::Earlier, &packed, i);
        assert_near(&from_compact(&alone), &transposed, 1e-13, "a block of H^T x");
    }
}

#[test]
fn one_pass_agrees_with_single_products() {
    fn check<T: Quantize>(n: usize, tolerance: f64) {
        let text = markov_text(2000, 150, 4);
        let moments = moments::<T>(&text, 150, 4, 0.5);
        let mut rng = Rng::new(2);
        let values: Vec<T> = (0..150 * n).map(|_| T::of(0.1 * rng.normal())).collect();
        let c = Panel::from_rows(150, n, &values);
        let mut random = || (0..4).map(|_| Mat::from_fn(n, n, |_, _| rng.normal())).collect();
        let weights = LagWeights { right: random(), left: random() };
        let fast = moments.pass(&c, 4, Some(&weights));
        let slow = Plain(&moments).pass(&c, 4, Some(&weights));
        assert_near(&to_mat(&fast.sum), &to_mat(&slow.sum), tolerance, "sum");
        let only_r = moments.pass(&c, 4, None);
        for (i, slow) in slow.r.iter().enumerate() {
            assert_near(&fast.r[i], slow, tolerance, "R_k");
            assert_near(&only_r.r[i], slow, tolerance, "R_k alone");
        }
    }
    // Less than one strip of columns, and two strips of which the last one is not full.
    check::<f64>(7, 1e-12);
    check::<f64>(70, 1e-11);
    check::<f32>(7, 1e-4);
    check::<f32>(70, 1e-3);
}

/// The same covariances with the default implementation of `pass`.
struct Plain<'a, T>(&'a Moments<T>);

impl<T: Quantize> Covariances<T> for Plain<'_, T> {
    fn n_types(&self) -> usize {
        self.0.n_types()
    }
    fn null_vector(&self) -> &[T] {
        self.0.null_vector()
    }
    fn hankel_product(&self, side: Side, x: &mut [CompactPanel<T>]) {
        self.0.hankel_product(side, x);
    }
    fn hankel_block(&self, side: Side, x: &[CompactPanel<T>], block: usize) -> CompactPanel<T> {
        self.0.hankel_block(side, x, block)
    }
    fn product(&self, lag: usize, side: Side, x: &Panel<T>) -> Panel<T> {
        self.0.product(lag, side, x)
    }
}
