//! Cholesky factors of positive definite matrices, in double precision.
//!
//! Factors are column-major; entries above the diagonal are ignored. All loops run down the contiguous columns.

/// Replaces the lower triangle of a matrix A by its factor L with A = L Lᵀ. Returns `false` if A is not positive
/// definite.
#[inline(always)]
pub(crate) fn factorize(a: &mut [f64], dim: usize) -> bool {
    for j in 0..dim {
        let (left, rest) = a.split_at_mut(j * dim);
        let column = &mut rest[j..dim];
        for k in 0..j {
            let earlier = &left[k * dim + j..(k + 1) * dim];
            let factor = earlier[0];
            column.iter_mut().zip(earlier).for_each(|(a, &l)| *a -= factor * l);
        }
        if !(column[0] > 0.0 && column[0].is_finite()) {
            return false;
        }
        let root = column[0].sqrt();
        column.iter_mut().for_each(|a| *a /= root);
    }
    true
}

/// Updates L to the factor of L Lᵀ + v vᵀ in O(M²). Overwrites `v`.
#[inline(always)]
pub(crate) fn update(l: &mut [f64], v: &mut [f64]) {
    let dim = v.len();
    for j in 0..dim {
        let column = &mut l[j * dim + j..(j + 1) * dim];
        let (diagonal, v_j) = (column[0], v[j]);
        let r = diagonal.hypot(v_j);
        let (c, t) = (r / diagonal, v_j / diagonal);
        column[0] = r;
        let inverse = 1.0 / c;
        for (l, v) in column[1..].iter_mut().zip(&mut v[j + 1..]) {
            *l = (*l + t * *v) * inverse;
            *v = c * *v - t * *l;
        }
    }
}

/// Updates L to the factor of L Lᵀ − v vᵀ in O(M²). Overwrites `v`. Returns `false` if the result is not numerically
/// positive definite, and leaves L in an invalid state.
#[inline(always)]
#[must_use]
pub(crate) fn downdate(l: &mut [f64], v: &mut [f64]) -> bool {
    let dim = v.len();
    for j in 0..dim {
        let column = &mut l[j * dim + j..(j + 1) * dim];
        let (diagonal, v_j) = (column[0], v[j]);
        let square = (diagonal - v_j) * (diagonal + v_j);
        if !(square > 0.0 && square.is_finite()) {
            return false;
        }
        let r = square.sqrt();
        let (c, t) = (r / diagonal, v_j / diagonal);
        column[0] = r;
        let inverse = 1.0 / c;
        for (l, v) in column[1..].iter_mut().zip(&mut v[j + 1..]) {
            *l = (*l - t * *v) * inverse;
            *v = c * *v - t * *l;
        }
    }
    true
}

/// Returns |L⁻¹ d|² and overwrites `d` with L⁻¹ d.
#[inline(always)]
pub(crate) fn squared_length(l: &[f64], d: &mut [f64]) -> f64 {
    let dim = d.len();
    let mut sum = 0.0;
    for j in 0..dim {
        let column = &l[j * dim + j..(j + 1) * dim];
        let y = d[j] / column[0];
        d[j] = y;
        sum += y * y;
        d[j + 1..].iter_mut().zip(&column[1..]).for_each(|(d, &l)| *d -= y * l);
    }
    sum
}

/// Σ ln L_jj, half the log determinant of L Lᵀ.
#[inline(always)]
pub(crate) fn half_log_det(l: &[f64], dim: usize) -> f64 {
    (0..dim).map(|j| l[j * dim + j].ln()).sum()
}

/// L⁻¹, lower triangular and column-major, with zeros above the diagonal.
#[inline(always)]
pub(crate) fn inverse(l: &[f64], dim: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; dim * dim];
    for i in 0..dim {
        let column = &mut inverse[i * dim + i..(i + 1) * dim];
        column[0] = 1.0;
        for j in i..dim {
            let of_l = &l[j * dim + j..(j + 1) * dim];
            let y = column[j - i] / of_l[0];
            column[j - i] = y;
            column[j - i + 1..].iter_mut().zip(&of_l[1..]).for_each(|(x, &l)| *x -= y * l);
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    fn random_factor(dim: usize, rng: &mut Rng) -> Vec<f64> {
        let mut l = vec![0.0; dim * dim];
        for j in 0..dim {
            (j..dim).for_each(|i| l[j * dim + i] = rng.normal());
            l[j * dim + j] = 1.0 + rng.uniform();
        }
        l
    }

    /// L Lᵀ + s v vᵀ by its definition.
    fn product(l: &[f64], dim: usize, s: f64, v: &[f64]) -> Vec<f64> {
        let mut a = vec![0.0; dim * dim];
        for (i, j) in (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j))) {
            let dot = (0..=i.min(j)).map(|k| l[k * dim + i] * l[k * dim + j]).sum::<f64>();
            a[j * dim + i] = dot + s * v[i] * v[j];
        }
        a
    }

    fn assert_close(a: &[f64], b: &[f64], tolerance: f64) {
        let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst <= tolerance, "{worst}");
    }

    #[test]
    fn a_factor_times_its_transpose_equals_the_matrix() {
        let mut rng = Rng::new(1);
        for dim in [1, 2, 5, 17] {
            let l = random_factor(dim, &mut rng);
            let mut a = product(&l, dim, 0.0, &vec![0.0; dim]);
            assert!(factorize(&mut a, dim));
            for j in 0..dim {
                assert_close(&a[j * dim + j..(j + 1) * dim], &l[j * dim + j..(j + 1) * dim], 1e-9);
            }
        }
        assert!(!factorize(&mut [1.0, 2.0, 2.0, 1.0], 2));
        assert!(!factorize(&mut [f64::NAN], 1));
    }

    #[test]
    fn updates_and_downdates_agree_with_the_product() {
        let mut rng = Rng::new(2);
        for dim in [1, 3, 9] {
            let l = random_factor(dim, &mut rng);
            let v: Vec<f64> = (0..dim).map(|_| rng.normal()).collect();
            let mut updated = l.clone();
            update(&mut updated, &mut v.clone());
            let expected = product(&l, dim, 1.0, &v);
            assert_close(&product(&updated, dim, 0.0, &v), &expected, 1e-12);
            assert!(downdate(&mut updated, &mut v.clone()));
            assert_close(&product(&updated, dim, 0.0, &v), &product(&l, dim, 0.0, &v), 1e-11);
        }
        assert!(!downdate(&mut [1.0], &mut [1.0]));
    }

    #[test]
    fn norms_and_inverses_agree_with_their_definitions() {
        let (mut rng, dim) = (Rng::new(3), 7);
        let l = random_factor(dim, &mut rng);
        let inverse = inverse(&l, dim);
        for (i, j) in (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j))) {
            let dot: f64 =
                (0..dim).filter(|&k| k <= i).map(|k| l[k * dim + i] * inverse[j * dim + k]).sum();
            assert!((dot - f64::from(i == j)).abs() < 1e-10, "{i} {j}: {dot}");
        }
        let d: Vec<f64> = (0..dim).map(|_| rng.normal()).collect();
        let y = (0..dim).map(|i| (0..dim).map(|j| inverse[j * dim + i] * d[j]).sum::<f64>());
        let expected: f64 = y.map(|y| y * y).sum();
        assert!((squared_length(&l, &mut d.clone()) / expected - 1.0).abs() < 1e-11);
    }
}
