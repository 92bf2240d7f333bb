//! A character bigram model of words, the base measure for out-of-vocabulary words.

use std::collections::HashMap;

/// Marks the beginning and end of words. No word contains it.
const EDGE: char = '\0';

/// A character bigram model with add-one smoothing.
pub(super) struct Spelling {
    pairs: HashMap<(char, char), u32>,
    firsts: HashMap<char, u32>,
    /// Number of symbols: seen characters, the end of a word, and one for all other characters.
    n_letters: f64,
}

impl Spelling {
    /// Estimates the model from words.
    pub(super) fn new<'a>(words: impl Iterator<Item = &'a str>) -> Spelling {
        let (mut pairs, mut firsts) = (HashMap::new(), HashMap::new());
        for word in words {
            for pair in steps(word) {
                *pairs.entry(pair).or_default() += 1;
                *firsts.entry(pair.0).or_default() += 1;
            }
        }
        // Every character precedes another one or the end.
        let n_letters = firsts.len().max(1) as f64 + 1.0;
        Spelling { pairs, firsts, n_letters }
    }

    pub(super) fn prob(&self, word: &str) -> f64 {
        let step = |pair: (char, char)| {
            let n = self.pairs.get(&pair).copied().unwrap_or(0);
            let of = self.firsts.get(&pair.0).copied().unwrap_or(0);
            (f64::from(n) + 1.0) / (f64::from(of) + self.n_letters)
        };
        steps(word).map(step).product()
    }
}

fn steps(word: &str) -> impl Iterator<Item = (char, char)> + '_ {
    std::iter::once(EDGE).chain(word.chars()).zip(word.chars().chain(std::iter::once(EDGE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_smoothed_bigram_frequencies() {
        let spelling = Spelling::new(["ab", "aab"].into_iter());
        // Four symbols: a, b, the end, and others. After the edge: a twice. After a: b twice, a once.
        // After b: the end twice.
        let expected = 3.0 / 6.0 * (3.0 / 7.0) * (3.0 / 6.0);
        assert!((spelling.prob("ab") - expected).abs() < 1e-12);
        // An unseen character has probability 1/6 after the edge, and every symbol 1/4 after it.
        let expected = 1.0 / 6.0 * (1.0 / 4.0);
        assert!((spelling.prob("x") - expected).abs() < 1e-12);
    }

    #[test]
    fn the_probabilities_of_all_strings_sum_to_one() {
        let spelling = Spelling::new(["ab", "aab"].into_iter());
        let mut strings = vec![String::new()];
        let mut sum = 0.0;
        // `x` stands for all other characters.
        for _ in 0..9 {
            sum += strings.iter().map(|s| spelling.prob(s)).sum::<f64>();
            strings =
                strings.iter().flat_map(|s| ['a', 'b', 'x'].map(|c| format!("{s}{c}"))).collect();
        }
        let tail: f64 = strings.iter().map(|s| spelling.prob(s)).sum();
        assert!(sum < 1.0 && sum > 0.93 && tail < 0.03, "{sum} {tail}");
    }
}
