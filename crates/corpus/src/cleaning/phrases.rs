//! Phrases: pairs of words that occur together more often than by chance.

use latens_store::StringTable;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Minimum number of occurrences of a phrase: the association of rarer pairs is chance.
const MIN_COUNT: u64 = 10;

/// Pairs of words and the phrases that they form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(String, String)>", into = "Vec<(String, String)>")]
pub(crate) struct Phrases(BTreeMap<String, BTreeMap<String, String>>);

impl Phrases {
    /// The phrase that two words form, if they do.
    pub(crate) fn joined(&self, first: &str, second: &str) -> Option<&str> {
        Some(self.0.get(first)?.get(second)?)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|(first, seconds)| {
            seconds.keys().map(move |second| (first.as_str(), second.as_str()))
        })
    }
}

impl From<Vec<(String, String)>> for Phrases {
    fn from(pairs: Vec<(String, String)>) -> Phrases {
        let mut phrases = Phrases::default();
        for (first, second) in pairs {
            let joined = format!("{first}_{second}");
            phrases.0.entry(first).or_default().insert(second, joined);
        }
        phrases
    }
}

impl From<Phrases> for Vec<(String, String)> {
    fn from(phrases: Phrases) -> Vec<(String, String)> {
        phrases.pairs().map(|(first, second)| (first.to_owned(), second.to_owned())).collect()
    }
}

/// Counts of words and of pairs of neighbors.
#[derive(Default)]
pub(crate) struct PairCounts {
    words: Vec<u64>,
    pairs: HashMap<(u32, u32), u64>,
    n_tokens: u64,
}

impl PairCounts {
    /// Counts the tokens of a document. Pairs with a token that `keeps` refuses do not count.
    pub(crate) fn add(&mut self, document: &[u32], keeps: impl Fn(u32) -> bool) {
        let mut previous = None;
        for &token in document {
            if !keeps(token) {
                previous = None;
                continue;
            }
            if token as usize >= self.words.len() {
                self.words.resize(token as usize + 1, 0);
            }
            self.words[token as usize] += 1;
            self.n_tokens += 1;
            if let Some(previous) = previous {
                *self.pairs.entry((previous, token)).or_default() += 1;
            }
            previous = Some(token);
        }
    }

    /// The `n` pairs with the highest normalized pointwise mutual information (Bouma 2009), which must be
    /// positive. Ties are in the order of the words.
    pub(crate) fn best(&self, n: usize, words: &StringTable) -> Vec<(u32, u32)> {
        let frequent = self.pairs.iter().filter(|&(_, &count)| count >= MIN_COUNT);
        let scored = frequent.map(|(&(a, b), &count)| (self.npmi(a, b, count), (a, b)));
        let mut scored: Vec<(f64, (u32, u32))> = scored.filter(|(npmi, _)| *npmi > 0.0).collect();
        let spelled = |(a, b): (u32, u32)| (words.get(a), words.get(b));
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| spelled(a.1).cmp(&spelled(b.1))));
        scored.truncate(n);
        scored.into_iter().map(|(_, pair)| pair).collect()
    }

    /// ln(p(a, b) / (p(a) p(b))) / −ln p(a, b).
    fn npmi(&self, a: u32, b: u32, count: u64) -> f64 {
        let n = self.n_tokens as f64;
        let [of_a, of_b] = [a, b].map(|word| self.words[word as usize] as f64 / n);
        let both = count as f64 / n;
        (both / (of_a * of_b)).ln() / -both.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_ranked_by_npmi() {
        let words: StringTable = ["new", "york", "a", "b", "."].into_iter().collect();
        let mut counts = PairCounts::default();
        // `new york` 10 times, `a b` 10 times among 20 of `a`; `b .` does not count.
        for _ in 0..10 {
            counts.add(&[0, 1, 4, 2, 3, 4, 2], |token| token != 4);
        }
        // Tokens: 10 each of new, york and b, 20 of a.
        let both: f64 = 10.0 / 50.0;
        let expected = (both / (0.2 * 0.2)).ln() / -both.ln();
        assert!((counts.npmi(0, 1, 10) - expected).abs() < 1e-12);
        let expected = (both / (0.4 * 0.2)).ln() / -both.ln();
        assert!((counts.npmi(2, 3, 10) - expected).abs() < 1e-12);
        assert_eq!(counts.best(9, &words), [(0, 1), (2, 3)]);
        assert_eq!(counts.best(1, &words), [(0, 1)]);
    }

    #[test]
    fn phrases_are_stored_as_pairs() {
        let phrases = Phrases::from(vec![("new".to_owned(), "york".to_owned())]);
        assert_eq!(phrases.joined("new", "york"), Some("new_york"));
        assert_eq!(phrases.joined("york", "new"), None);
        let json = serde_json::to_string(&phrases).unwrap();
        assert_eq!(json, r#"[["new","york"]]"#);
        assert_eq!(serde_json::from_str::<Phrases>(&json).unwrap(), phrases);
    }
}
