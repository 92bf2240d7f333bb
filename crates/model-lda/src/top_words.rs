//! Words in the order of some score.

use latens_corpus::WordId;

/// The `n` words of the highest scores, best first; words of equal scores in the order of their ids.
pub(crate) fn best(scores: impl Iterator<Item = (WordId, f32)>, n: usize) -> Vec<(WordId, f32)> {
    let mut words: Vec<(WordId, f32)> = scores.filter(|(_, score)| !score.is_nan()).collect();
    let by_score = |a: &(WordId, f32), b: &(WordId, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if n < words.len() {
        words.select_nth_unstable_by(n, by_score);
        words.truncate(n);
    }
    words.sort_unstable_by(by_score);
    words
}

/// By what the words of a topic are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ranking {
    /// The density of the topic at the word's vector, for words that were seen often enough; of LDA, the probability
    /// of the word.
    Density,
    /// How often the word is in the topic.
    #[default]
    Count,
    /// The same, times the share of all the word's tokens that this is: words that are in no other topic.
    Distinctive,
}
