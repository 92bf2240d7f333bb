//! The logarithm of the gamma function and its derivative.

/// Argument from which the series below are accurate to the last digits.
const LARGE: f64 = 12.0;

/// Returns ln Γ(x) for x > 0 by Stirling's series.
///
/// The error is a few units in the last place of max(1, |ln Γ|).
///
/// # Panics
/// If `x` is not positive.
pub fn ln_gamma(x: f64) -> f64 {
    assert!(x > 0.0, "`ln_gamma` needs a positive argument, got {x}");
    // Γ(x) = Γ(x + n) / (x (x + 1) … (x + n − 1)).
    let (mut x, mut product) = (x, 1.0);
    while x < LARGE {
        product *= x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = 1.0 / 12.0
        - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y * (1.0 / 1188.0))));
    let half_ln_tau = 0.5 * std::f64::consts::TAU.ln();
    (x - 0.5) * x.ln() - x + half_ln_tau + series / x - product.ln()
}

/// Returns ψ(x), the derivative of ln Γ, for x > 0.
///
/// # Panics
/// If `x` is not positive.
pub fn digamma(x: f64) -> f64 {
    assert!(x > 0.0, "`digamma` needs a positive argument, got {x}");
    let (mut x, mut sum) = (x, 0.0);
    while x < LARGE {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = y
        * (1.0 / 12.0
            - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y * (1.0 / 132.0)))));
    sum + x.ln() - 0.5 / x - series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_gamma_agrees_with_factorials_and_half_integers() {
        let mut factorial = 1.0f64;
        for n in 1..30 {
            assert!(
                (ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-13 * factorial.ln().max(1.0)
            );
            factorial *= f64::from(n);
        }
        // Γ(1/2) = √π, Γ(5/2) = 3/4 √π.
        let half = 0.5 * std::f64::consts::PI.ln();
        assert!((ln_gamma(0.5) - half).abs() < 1e-14);
        assert!((ln_gamma(2.5) - half - 0.75f64.ln()).abs() < 1e-14);
    }

    #[test]
    fn recurrences_hold() {
        for x in [1e-8, 0.02, 0.7, 3.3, 11.9, 12.1, 500.25, 1e6] {
            let (step, scale) = (ln_gamma(x + 1.0) - ln_gamma(x), ln_gamma(x + 1.0).abs().max(1.0));
            assert!((step - f64::ln(x)).abs() < 4e-15 * scale, "{x}: {step}");
            assert!((digamma(x + 1.0) - digamma(x) - 1.0 / x).abs() < 1e-13 / x.min(1.0), "{x}");
        }
        // ψ(1) = −γ, the Euler–Mascheroni constant.
        assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-14);
    }

    #[test]
    fn digamma_agrees_with_finite_differences_of_ln_gamma() {
        for x in [0.3, 1.5, 8.0, 40.0] {
            let h = 1e-5;
            let slope = (ln_gamma(x + h) - ln_gamma(x - h)) / (2.0 * h);
            assert!((digamma(x) - slope).abs() < 1e-8, "{x}");
        }
    }
}
