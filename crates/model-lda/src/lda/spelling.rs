//! How probable a string of letters is as a word: a base measure for words that are not known.

use std::collections::HashMap;

/// Where words begin and end. No word has it.
const EDGE: char = '\0';

/// Letter by letter given the one before, with one added to every count.
pub(super) struct Spelling {
    pairs: HashMap<(char, char), u32>,
    firsts: HashMap<char, u32>,
    /// Letters that were seen, the end of a word, and one for all others.
    n_letters: f64,
}

impl Spelling {
    /// As these words are spelled.
    pub(super) fn new<'a>(words: impl Iterator<Item = &'a str>) -> Spelling {
        let (mut pairs, mut firsts) = (HashMap::new(), HashMap::new());
        for word in words {
            for pair in steps(word) {
                *pairs.entry(pair).or_default() += 1;
                *firsts.entry(pair.0).or_default() += 1;
            }
        }
        // Every letter comes before another or before the end.
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
    fn letters_follow_as_they_did_and_any_other_has_a_chance() {
        let spelling = Spelling::new(["ab", "aab"].into_iter());
        // Letters a, b, the end, and others: four. After the edge: a twice. After a: b twice, a once.
        // After b: the end twice.
        let expected = 3.0 / 6.0 * (3.0 / 7.0) * (3.0 / 6.0);
        assert!((spelling.prob("ab") - expected).abs() < 1e-12);
        // A letter that never was: once after the edge, and then anything.
        let expected = 1.0 / 6.0 * (1.0 / 4.0);
        assert!((spelling.prob("x") - expected).abs() < 1e-12);
    }

    #[test]
    fn all_strings_share_one() {
        let spelling = Spelling::new(["ab", "aab"].into_iter());
        let mut strings = vec![String::new()];
        let mut sum = 0.0;
        // `x` stands for all other letters.
        for _ in 0..9 {
            sum += strings.iter().map(|s| spelling.prob(s)).sum::<f64>();
            strings =
                strings.iter().flat_map(|s| ['a', 'b', 'x'].map(|c| format!("{s}{c}"))).collect();
        }
        let tail: f64 = strings.iter().map(|s| spelling.prob(s)).sum();
        assert!(sum < 1.0 && sum > 0.93 && tail < 0.03, "{sum} {tail}");
    }
}
