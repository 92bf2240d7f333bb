//! Ranking of words by a score.

use latens_corpus::WordId;

/// The `n` words with the highest scores, in descending order. Ties are in the order of word ids.
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

/// Score by which the words of a topic are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ranking {
    /// Gaussian LDA: the density of the topic at the word's vector, for words that are frequent enough. LDA: the
    /// probability of the word in the topic.
    Density,
    /// Number of the word's tokens in the topic.
    #[default]
    Count,
    /// The count times the fraction of the word's tokens that are in the topic. Favors words specific to the topic.
    Distinctive,
}
