//! Draws of an index in proportion to weights.

use super::Rng;
use crate::log_space::max_or_nan;

/// Draws `i` with probability wᵢ / Σⱼ wⱼ in two passes over the weights.
///
/// An index of weight zero is never drawn.
///
/// # Panics
/// If a weight is negative or NaN, or the sum is zero or infinite.
pub fn sample_index(weights: &[f64], rng: &mut Rng) -> usize {
    draw(weights.iter().copied(), rng)
}

/// Draws `i` with probability exp(lᵢ) / Σⱼ exp(lⱼ); −∞ is a weight of zero.
///
/// # Panics
/// If a logarithm is NaN or +∞, or all are −∞.
pub fn sample_log_index(log_weights: &[f64], rng: &mut Rng) -> usize {
    let max = max_or_nan(log_weights);
    assert!(max.is_finite(), "the largest log weight must be finite, got {max}");
    draw(log_weights.iter().map(|log| (log - max).exp()), rng)
}

fn draw(weights: impl Iterator<Item = f64> + Clone, rng: &mut Rng) -> usize {
    let mut total = 0.0;
    for weight in weights.clone() {
        assert!(weight >= 0.0, "weights must not be negative, got {weight}");
        total += weight;
    }
    assert!(total > 0.0 && total.is_finite(), "the sum of weights must be positive, got {total}");
    let mut rest = rng.uniform() * total;
    let mut drawn = None;
    for (i, weight) in weights.enumerate() {
        if weight > 0.0 {
            drawn = Some(i);
            if rest < weight {
                break;
            }
            rest -= weight;
        }
    }
    // The subtractions round, so `rest` may exceed the last weight; then the last positive one is drawn.
    drawn.expect("a positive sum has a positive term")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: [f64; 5] = [0.0, 3.0, 0.0, 1.0, 0.0];
    const N: usize = 100_000;

    fn assert_three_to_one(draw: impl Fn(&mut Rng) -> usize) {
        let mut rng = Rng::new(5);
        let mut counts = [0usize; WEIGHTS.len()];
        (0..N).for_each(|_| counts[draw(&mut rng)] += 1);
        assert_eq!(counts[1] + counts[3], N, "an index of weight zero was drawn");
        // Four standard deviations of a binomial with p = 3/4.
        let allowed = 4.0 * (N as f64 * 0.75 * 0.25).sqrt();
        assert!((counts[1] as f64 - 0.75 * N as f64).abs() < allowed, "{counts:?}");
    }

    #[test]
    fn indices_are_drawn_in_proportion_to_their_weights() {
        assert_three_to_one(|rng| sample_index(&WEIGHTS, rng));
    }

    #[test]
    fn log_weights_may_be_far_below_the_smallest_exponent() {
        let logs = WEIGHTS.map(|weight| weight.ln() - 5000.0);
        assert_three_to_one(|rng| sample_log_index(&logs, rng));
    }

    #[test]
    fn an_index_is_where_the_cumulative_weight_exceeds_one_uniform_number() {
        let (mut rng, mut same) = (Rng::new(1), Rng::new(1));
        let weights: Vec<f64> = (0..50).map(|i| f64::from(i % 7)).collect();
        let total: f64 = weights.iter().sum();
        for _ in 0..1000 {
            let target = same.uniform() * total;
            let mut sum = 0.0;
            let expected = weights.iter().position(|weight| {
                sum += weight;
                target < sum
            });
            assert_eq!(Some(sample_index(&weights, &mut rng)), expected);
        }
    }

    #[test]
    #[should_panic(expected = "sum of weights")]
    fn all_zero_weights_panic() {
        sample_index(&[0.0, 0.0], &mut Rng::new(1));
    }

    #[test]
    #[should_panic(expected = "must not be negative")]
    fn a_negative_weight_panics() {
        sample_index(&[2.0, -1.0], &mut Rng::new(1));
    }

    #[test]
    #[should_panic(expected = "log weight must be finite")]
    fn a_nan_log_weight_panics() {
        sample_log_index(&[0.0, f64::NAN], &mut Rng::new(1));
    }
}
