//! The gamma function, and random numbers that follow the gamma distribution.

use crate::rng::Rng;

/// From here on the series below are exact to the last digits.
const LARGE: f64 = 12.0;

/// ln Γ(x) for x > 0, by Stirling's series.
///
/// The error is a few units in the last place of max(1, |ln Γ|).
///
/// # Panics
/// If `x` is not positive.
pub fn ln_gamma(x: f64) -> f64 {
    assert!(x > 0.0, "the gamma function is taken of a positive number, not {x}");
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

/// ψ(x), the derivative of ln Γ, for x > 0.
///
/// # Panics
/// If `x` is not positive.
pub fn digamma(x: f64) -> f64 {
    assert!(x > 0.0, "the digamma function is taken of a positive number, not {x}");
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

impl Rng {
    /// A number from the gamma distribution of this shape and scale one (Marsaglia and Tsang 2000).
    /// Twice the number of shape ν / 2 follows the χ² distribution of ν degrees of freedom.
    ///
    /// # Panics
    /// If `shape` is not positive.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        assert!(shape > 0.0, "the shape of a gamma distribution is positive, not {shape}");
        if shape < 1.0 {
            let power = (1.0 - self.uniform()).powf(1.0 / shape);
            return self.gamma(shape + 1.0) * power;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            // In (0, 1], so that the logarithm is finite.
            let u = 1.0 - self.uniform();
            if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_factorial_of_whole_numbers_and_known_halves() {
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
    fn it_grows_by_the_logarithm_of_its_argument() {
        for x in [1e-8, 0.02, 0.7, 3.3, 11.9, 12.1, 500.25, 1e6] {
            let (step, scale) = (ln_gamma(x + 1.0) - ln_gamma(x), ln_gamma(x + 1.0).abs().max(1.0));
            assert!((step - f64::ln(x)).abs() < 4e-15 * scale, "{x}: {step}");
            assert!((digamma(x + 1.0) - digamma(x) - 1.0 / x).abs() < 1e-13 / x.min(1.0), "{x}");
        }
        // ψ(1) = −γ, the constant of Euler and Mascheroni.
        assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-14);
    }

    #[test]
    fn digamma_is_the_slope_of_ln_gamma() {
        for x in [0.3, 1.5, 8.0, 40.0] {
            let h = 1e-5;
            let slope = (ln_gamma(x + h) - ln_gamma(x - h)) / (2.0 * h);
            assert!((digamma(x) - slope).abs() < 1e-8, "{x}");
        }
    }

    #[test]
    fn gamma_numbers_have_the_moments_of_their_distribution() {
        let n = 100_000;
        for shape in [0.3, 1.0, 4.5, 60.0] {
            let mut rng = Rng::new(3);
            let draws: Vec<f64> = (0..n).map(|_| rng.gamma(shape)).collect();
            let mean = draws.iter().sum::<f64>() / f64::from(n);
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
            // Mean and variance are the shape; the fourth central moment is 3 k² + 6 k.
            let allowed = 5.0 * (shape / f64::from(n)).sqrt();
            assert!((mean - shape).abs() < allowed, "{shape}: mean {mean}");
            let allowed = 5.0 * ((2.0 * shape * shape + 6.0 * shape) / f64::from(n)).sqrt();
            assert!((variance - shape).abs() < allowed, "{shape}: variance {variance}");
        }
    }
}
