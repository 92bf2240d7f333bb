//! Random initial weights.

use latens_math::{Real, Rng};

/// Fills a slice with draws from the uniform distribution on [−bound, bound).
pub fn fill_uniform<T: Real>(weights: &mut [T], bound: f64, rng: &mut Rng) {
    weights.iter_mut().for_each(|weight| *weight = T::of(bound * (2.0 * rng.uniform() - 1.0)));
}

/// Fills a slice with draws from the normal distribution with mean 0 and the given standard deviation.
pub fn fill_normal<T: Real>(weights: &mut [T], deviation: f64, rng: &mut Rng) {
    for pair in weights.chunks_mut(2) {
        let draws = rng.normal_pair(deviation);
        pair.iter_mut().zip(draws).for_each(|(weight, draw)| *weight = T::of(draw));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_draws_have_the_moments_of_the_distribution() {
        let mut numbers = vec![0.0f64; 100_001];
        fill_normal(&mut numbers, 2.0, &mut Rng::new(1));
        let moment = |n| numbers.iter().map(|x| (x / 2.0).powi(n)).sum::<f64>() / 100_001.0;
        // Four standard deviations of the mean of 100,001 numbers of variance 1, 2, 15 and 96.
        for (n, expected, variance) in
            [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)]
        {
            let bound = 4.0 * f64::sqrt(variance / 100_001.0);
            assert!((moment(n) - expected).abs() < bound, "moment {n}: {}", moment(n));
        }
    }

    #[test]
    fn uniform_draws_stay_within_the_bound() {
        let mut numbers = vec![0.0f32; 1000];
        fill_uniform(&mut numbers, 0.5, &mut Rng::new(1));
        let max = numbers.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        assert!(max <= 0.5 && max > 0.49);
    }
}
