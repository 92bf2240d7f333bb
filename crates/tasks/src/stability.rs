//! Stability of topics: do two runs find the same ones?

use std::collections::BTreeSet;

/// A topic of one list, and the topic of another list that is matched to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicMatch {
    /// Index in the first list.
    pub first: usize,
    /// Index in the second list.
    pub second: usize,
    /// Jaccard similarity of their top words.
    pub similarity: f64,
}

/// Matches two lists of topics one to one, each given by its top words, most similar pairs first.
pub fn matches(a: &[Vec<String>], b: &[Vec<String>]) -> Vec<TopicMatch> {
    let sets = |topics: &[Vec<String>]| -> Vec<BTreeSet<String>> {
        topics.iter().map(|words| words.iter().cloned().collect()).collect()
    };
    let (a, b) = (sets(a), sets(b));
    let mut pairs: Vec<TopicMatch> = Vec::new();
    for (i, first) in a.iter().enumerate() {
        for (j, second) in b.iter().enumerate() {
            let common = first.intersection(second).count() as f64;
            let all = first.union(second).count().max(1) as f64;
            pairs.push(TopicMatch { first: i, second: j, similarity: common / all });
        }
    }
    // A stable sort keeps ties in the order of the topics.
    pairs.sort_by(|x, y| y.similarity.total_cmp(&x.similarity));
    let (mut used_a, mut used_b) = (vec![false; a.len()], vec![false; b.len()]);
    pairs.retain(|pair| {
        let is_free = !used_a[pair.first] && !used_b[pair.second];
        if is_free {
            (used_a[pair.first], used_b[pair.second]) = (true, true);
        }
        is_free
    });
    pairs
}

/// The stability of two lists of topics, each given by its top words: the mean Jaccard similarity of topics that are
/// matched one to one, most similar first. 1 for equal topics in any order, 0 for topics without a common word.
pub fn stability(a: &[Vec<String>], b: &[Vec<String>]) -> f64 {
    let sum: f64 = matches(a, b).iter().map(|pair| pair.similarity).sum();
    sum / a.len().max(b.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(words: &[&str]) -> Vec<Vec<String>> {
        words.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn topics_are_matched_whatever_their_order() {
        let a = topics(&["cat dog", "sun moon"]);
        assert_eq!(stability(&a, &topics(&["moon sun", "dog cat"])), 1.0);
        assert_eq!(stability(&a, &topics(&["pan pot", "law court"])), 0.0);
        // `sun star` and `sun moon` share one of three words.
        let found = stability(&a, &topics(&["sun star", "cat dog"]));
        assert!((found - (1.0 + 1.0 / 3.0) / 2.0).abs() < 1e-12);
        assert_eq!(stability(&[], &[]), 0.0);
    }
}
