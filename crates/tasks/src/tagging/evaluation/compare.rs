//! Whether one tagger is better than another, or was only lucky.

/// Of tokens that one of two taggers has right and the other wrong: how many are whose, and how likely that is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Tokens that were compared.
    pub tokens: usize,
    /// Tokens that both have right.
    pub both: usize,
    /// Tokens that the first one alone has right.
    pub first_only: usize,
    /// Tokens that the second one alone has right.
    pub second_only: usize,
    /// The probability of a difference as large, or larger, if both were as good: McNemar's test, by the exact
    /// binomial distribution, on both sides.
    pub p_value: f64,
}

impl Comparison {
    /// Compares by whether each has each token right.
    pub fn of(right: impl IntoIterator<Item = (bool, bool)>) -> Comparison {
        let (mut tokens, mut both, mut first_only, mut second_only) = (0, 0, 0, 0);
        for (first, second) in right {
            tokens += 1;
            both += usize::from(first && second);
            first_only += usize::from(first && !second);
            second_only += usize::from(!first && second);
        }
        let p_value = sign_test(first_only as u64, second_only as u64);
        Comparison { tokens, both, first_only, second_only, p_value }
    }
}

/// min(1, 2 Pr(X ≤ min(a, b))) for X ~ Binomial(a + b, ½).
fn sign_test(a: u64, b: u64) -> f64 {
    let (n, least) = (a + b, a.min(b));
    if a == b {
        return 1.0;
    }
    // Terms from the largest down, as multiples of it: C(n, i − 1)/C(n, i) = i/(n − i + 1).
    let (mut sum, mut term) = (0.0, 1.0);
    for i in (0..=least).rev() {
        sum += term;
        term *= i as f64 / (n - i + 1) as f64;
        if term < 1e-18 * sum {
            break;
        }
    }
    let log_choose = |n: u64, k: u64| -> f64 {
        (0..k).map(|i| ((n - i) as f64).ln() - ((i + 1) as f64).ln()).sum()
    };
    let log_largest = log_choose(n, least) - n as f64 * std::f64::consts::LN_2;
    (2.0 * sum * log_largest.exp()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_fair_coins() {
        // Counted by hand: 2 · Σ_{i ≤ least} C(n, i)/2ⁿ.
        for (a, b, expected) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (0, 2, 0.5),
            (5, 0, 0.0625),
            (1, 5, 2.0 * 7.0 / 64.0),
            (7, 3, 2.0 * (1.0 + 10.0 + 45.0 + 120.0) / 1024.0),
            (4, 4, 1.0),
        ] {
            assert!((sign_test(a, b) - expected).abs() < 1e-12, "{a} {b}: {}", sign_test(a, b));
        }
        // Each sequence of 20 coins, counted.
        let extreme = (0..1u32 << 20).filter(|coins| coins.count_ones() <= 6).count();
        let expected = 2.0 * extreme as f64 / f64::from(1 << 20);
        assert!((sign_test(14, 6) - expected).abs() < 1e-12);
    }

    #[test]
    fn many_coins_are_a_bell() {
        // By fractions of whole numbers, in another language.
        let p = sign_test(5100, 4900);
        assert!((p - 0.046_585_527_704_947_39).abs() < 1e-12, "{p}");
        assert!(sign_test(2_000_000, 1_000_000) < 1e-300);
    }

    #[test]
    fn only_differences_count() {
        let right =
            [(true, true); 90].into_iter().chain([(true, false); 2]).chain([(false, false); 8]);
        let found = Comparison::of(right);
        let expected =
            Comparison { tokens: 100, both: 90, first_only: 2, second_only: 0, p_value: 0.5 };
        assert_eq!(found, expected);
    }
}
