//! Comparison of gradients with finite differences, for tests.

use latens_math::Rng;

/// Step sizes h, powers of two so that x ± h does not round.
///
/// For the first, h² and 10⁻¹⁶/h are both far below 10⁻⁸ in double precision. A kink of a ReLU or a maximum within a step
/// invalidates the difference; then the second step, within which kinks are much rarer, is tried.
const STEPS: [f64; 2] = [1.0 / (1u64 << 19) as f64, 1.0 / (1u64 << 24) as f64];

/// Maximum number of coordinates checked one by one.
const MAX_COORDINATES: usize = 300;

/// Number of random directions checked, which involve all coordinates.
const N_DIRECTIONS: usize = 4;

/// Asserts that `gradient` is the gradient of `f` at `point`.
///
/// Along a direction u, (f(x + hu) − f(x − hu))/2h must equal ∇f·u up to `tolerance` times the larger of |∇f·u| and the
/// root mean square of ∇f. Double precision allows 1e-7 for a loss of a few hundred terms of order one.
///
/// # Panics
/// If the gradient differs.
pub fn assert_gradient(
    f: &mut dyn FnMut(&[f64]) -> f64,
    point: &[f64],
    gradient: &[f64],
    tolerance: f64,
) {
    assert_eq!(point.len(), gradient.len(), "there must be one derivative per coordinate");
    let n = point.len();
    let mut rng = Rng::new(n as u64);
    let stride = n.div_ceil(MAX_COORDINATES).max(1);
    for start in (0..n).step_by(stride) {
        let coordinate = (start + (rng.uniform() * stride as f64) as usize).min(n - 1);
        let mut direction = vec![0.0; n];
        direction[coordinate] = 1.0;
        assert_slope(f, point, gradient, &direction, tolerance, &format!("∂{coordinate}"));
    }
    for i in 0..N_DIRECTIONS {
        let direction: Vec<f64> = (0..n).map(|_| 2.0 * rng.uniform() - 1.0).collect();
        assert_slope(f, point, gradient, &direction, tolerance, &format!("direction {i}"));
    }
}

fn assert_slope(
    f: &mut dyn FnMut(&[f64]) -> f64,
    point: &[f64],
    gradient: &[f64],
    direction: &[f64],
    tolerance: f64,
    name: &str,
) {
    let mut at = |step: f64| {
        let moved: Vec<f64> = point.iter().zip(direction).map(|(x, u)| x + step * u).collect();
        f(&moved)
    };
    let derived: f64 = gradient.iter().zip(direction).map(|(g, u)| g * u).sum();
    let typical = (gradient.iter().map(|g| g * g).sum::<f64>() / gradient.len() as f64).sqrt();
    let scale = derived.abs().max(typical).max(f64::MIN_POSITIVE);
    let mut measured = f64::NAN;
    let agrees = STEPS.iter().any(|step| {
        measured = (at(*step) - at(-step)) / (2.0 * step);
        (measured - derived).abs() <= tolerance * scale
    });
    assert!(agrees, "{name}: derived {derived}, measured {measured}, of order {scale}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f(x: &[f64]) -> f64 {
        x[0].sin() * x[1] + x[1] * x[1]
    }

    #[test]
    fn a_correct_gradient_passes() {
        let x = [0.3, -2.0];
        assert_gradient(&mut f, &x, &[x[0].cos() * x[1], x[0].sin() + 2.0 * x[1]], 1e-8);
        assert_gradient(&mut |_| 1.0, &[], &[], 1e-8);
    }

    #[test]
    #[should_panic(expected = "derived")]
    fn a_slightly_wrong_gradient_fails() {
        let x = [0.3, -2.0];
        assert_gradient(&mut f, &x, &[x[0].cos() * x[1], x[0].sin() + 2.00001 * x[1]], 1e-7);
    }
}
