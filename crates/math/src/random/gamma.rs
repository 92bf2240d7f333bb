//! Draws from the gamma distribution.
//!
//! They are written here rather than taken from `rand_distr`, so that a seed keeps its meaning across versions.

use super::Rng;

impl Rng {
    /// Draws from the gamma distribution with the given shape and scale 1 (Marsaglia and Tsang 2000).
    ///
    /// Twice a draw of shape ν/2 follows the χ² distribution with ν degrees of freedom.
    ///
    /// # Panics
    /// If `shape` is not positive.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        assert!(shape > 0.0, "`shape` must be positive, got {shape}");
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
    fn draws_have_the_moments_of_the_gamma_distribution() {
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
