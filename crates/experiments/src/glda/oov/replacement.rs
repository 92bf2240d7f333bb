//! Replaces words of test documents by synonyms that do not occur in the training text.

use super::models::Models;
use crate::corpora::topics::Document;
use latens::corpus::Vocab;
use latens::math::Rng;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The synonym of each word to replace.
pub(super) struct Replacement(HashMap<String, String>);

/// Documents with replaced words.
pub(super) struct Altered {
    pub(super) documents: Vec<Document>,
    /// How many tokens and types were replaced.
    pub(super) about: String,
}

impl Replacement {
    /// Chooses word types at random until the fraction `share` of the test tokens is replaced.
    pub(super) fn new(
        lists: &HashMap<String, Vec<String>>,
        models: &Models,
        train: &[Document],
        tests: &[Document],
        share: f64,
    ) -> Replacement {
        let seen: HashSet<&str> =
            train.iter().flat_map(|d| d.words.iter().map(String::as_str)).collect();
        let vocab: &Vocab = &models.own.vocab;
        let is_unseen = |word: &&String| {
            let has_vector = vocab.get(word).is_some_and(|id| models.vectors.get(id).is_some());
            has_vector && !seen.contains(word.as_str())
        };
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        tests.iter().flat_map(|d| &d.words).for_each(|word| *counts.entry(word).or_default() += 1);
        let mut found: Vec<(&str, &String)> = counts
            .keys()
            .filter_map(|&word| Some((word, lists.get(word)?.iter().find(is_unseen)?)))
            .collect();
        Rng::new(1).shuffle(&mut found);
        let n_tokens: usize = counts.values().sum();
        let (mut replaced, mut n) = (HashMap::new(), 0);
        for (word, synonym) in found {
            if n as f64 >= share * n_tokens as f64 {
                break;
            }
            // Skip a frequent word that would exceed the fraction.
            if (n + counts[word]) as f64 <= 1.02 * share * n_tokens as f64 {
                n += counts[word];
                replaced.insert(word.to_owned(), synonym.clone());
            }
        }
        Replacement(replaced)
    }

    /// Replaces words in documents.
    pub(super) fn apply(&self, documents: &[Document]) -> Altered {
        let (mut n_tokens, mut n_replaced) = (0, 0);
        let mut replace = |word: &String| {
            n_tokens += 1;
            match self.0.get(word) {
                Some(synonym) => {
                    n_replaced += 1;
                    synonym.clone()
                }
                None => word.clone(),
            }
        };
        let documents: Vec<Document> = documents
            .iter()
            .map(|d| Document { words: d.words.iter().map(&mut replace).collect(), ..d.clone() })
            .collect();
        let share = 100.0 * f64::from(n_replaced) / f64::from(n_tokens);
        let about = format!(
            "{n_replaced} of {n_tokens} tokens ({share:.1} %) of {} types replaced",
            self.0.len()
        );
        Altered { documents, about }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_of_a_word_is_replaced() {
        let replacement = Replacement([("a".to_owned(), "b".to_owned())].into());
        let words = ["a", "c", "a"].map(str::to_owned).to_vec();
        let document = Document { label: "x".into(), is_test: true, words };
        let altered = replacement.apply(&[document]);
        assert_eq!(altered.documents[0].words, ["b", "c", "b"]);
        assert!(altered.about.starts_with("2 of 3 tokens"), "{}", altered.about);
    }
}
