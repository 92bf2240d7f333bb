//! Comparison of two taggers, with a test of significance.

use super::tagged::{EvaluateError, correct_tokens};
use latens_corpus::TaggedSentences;
use latens_model::Tagger;

/// Agreement of two taggers on a text, and the significance of their difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Number of tokens.
    pub tokens: usize,
    /// Number of tokens that both taggers tag correctly.
    pub both: usize,
    /// Number of tokens that only the first tagger tags correctly.
    pub first_only: usize,
    /// Number of tokens that only the second tagger tags correctly.
    pub second_only: usize,
    /// Two-sided p-value of McNemar's exact test: the probability of a difference at least as large if both taggers
    /// were equally good.
    pub p_value: f64,
}

impl Comparison {
    /// Compares two taggers by whether each of them tags each token correctly.
    pub fn of(correct: impl IntoIterator<Item = (bool, bool)>) -> Comparison {
        let (mut tokens, mut both, mut first_only, mut second_only) = (0, 0, 0, 0);
        for (first, second) in correct {
            tokens += 1;
            both += usize::from(first && second);
            first_only += usize::from(first && !second);
            second_only += usize::from(!first && second);
        }
        let p_value = sign_test(first_only as u64, second_only as u64);
        Comparison { tokens, both, first_only, second_only, p_value }
    }
}

/// Tags a text with two taggers and compares them. `column` has the true tags, counted from 0.
pub fn compare(
    taggers: [&dyn Tagger; 2],
    text: &TaggedSentences,
    column: usize,
) -> Result<Comparison, EvaluateError> {
    let [first, second] = taggers.map(|tagger| correct_tokens(tagger, text, column));
    Ok(Comparison::of(first?.into_iter().zip(second?)))
}

/// min(1, 2 Pr(X ≤ min(a, b))) for X ~ Binomial(a + b, ½).
fn sign_test(a: u64, b: u64) -> f64 {
    let (n, least) = (a + b, a.min(b));
    if a == b {
        return 1.0;
    }
    // Terms in decreasing order, relative to the largest: C(n, i − 1)/C(n, i) = i/(n − i + 1).
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
    fn p_values_agree_with_enumeration() {
        // By hand: 2 · Σ_{i ≤ least} C(n, i)/2ⁿ.
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
        // Enumeration of all sequences of 20 coins.
        let extreme = (0..1u32 << 20).filter(|coins| coins.count_ones() <= 6).count();
        let expected = 2.0 * extreme as f64 / f64::from(1 << 20);
        assert!((sign_test(14, 6) - expected).abs() < 1e-12);
    }

    #[test]
    fn p_values_of_many_tokens_are_exact() {
        // Computed with exact fractions in Python.
        let p = sign_test(5100, 4900);
        assert!((p - 0.046_585_527_704_947_39).abs() < 1e-12, "{p}");
        assert!(sign_test(2_000_000, 1_000_000) < 1e-300);
    }

    #[test]
    fn only_disagreements_matter() {
        let correct =
            [(true, true); 90].into_iter().chain([(true, false); 2]).chain([(false, false); 8]);
        let found = Comparison::of(correct);
        let expected =
            Comparison { tokens: 100, both: 90, first_only: 2, second_only: 0, p_value: 0.5 };
        assert_eq!(found, expected);
    }
}
