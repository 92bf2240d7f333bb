//! Interpolated modified Kneser–Ney smoothing (Chen & Goodman 1998, §3; in the form of Heafield et
//! al. 2013, "Scalable modified Kneser-Ney language model estimation").
//!
//! Let a(u) be the *adjusted* count of an n-gram u: its count if u has the highest order or is
//! at the start of a sentence, otherwise the number of distinct words that precede u. With the
//! history h of the word w, and h′ the history without its first word,
//!
//! ```text
//! p(w | h) = (a(h w) − D(a(h w))) / A(h) + γ(h) p(w | h′)      A(h) = Σ_x a(h x)
//! γ(h)     = Σ_x D(a(h x)) / A(h)
//! ```
//!
//! and below the empty history p = 1/V. The discounts D(1), D(2), D(3 or more) of each order are
//! estimated from the numbers of n-grams with adjusted counts 1 to 4. A pruned n-gram has D = a: its
//! whole mass goes to the shorter history, so that all sums stay 1.

use crate::discounts::Discounts;
use crate::params::NgramParams;
use crate::trie::{Level, Trie};
use latens_corpus::WordId;

/// n-grams of one order under estimation, sorted as in [`Level`].
#[derive(Default)]
struct CountedLevel {
    words: Vec<u32>,
    /// Raw counts.
    counts: Vec<u64>,
    /// Adjusted counts a(u).
    adjusted: Vec<u64>,
    children: Vec<u64>,
}

/// Collects n-grams of the highest order, in ascending order of the reversed n-grams.
pub(crate) struct Estimator {
    levels: Vec<CountedLevel>,
    /// Reversed words of the last n-gram.
    path: Vec<u32>,
    begin: u32,
}

impl Estimator {
    pub(crate) fn new(order: usize, n_words: usize) -> Estimator {
        let mut levels: Vec<CountedLevel> = (0..order).map(|_| CountedLevel::default()).collect();
        // Order 1 has all words of the vocabulary, and the start of the sentence.
        levels[0].counts = vec![0; n_words + 1];
        levels[0].adjusted = vec![0; n_words + 1];
        levels[0].children = vec![0; n_words + 1];
        Estimator { levels, path: Vec::new(), begin: WordId::from(n_words).0 }
    }

    /// Adds an n-gram of the highest order, given from last word to first and padded with the start
    /// of the sentence.
    pub(crate) fn add(&mut self, reversed: &[WordId], count: u64) {
        let order = self.levels.len();
        debug_assert_eq!(reversed.len(), order);
        let begins = reversed.iter().position(|word| word.0 == self.begin);
        let length = begins.map_or(order, |at| at + 1);
        let old = self.path.iter().zip(reversed).take_while(|(a, b)| **a == b.0).count();
        debug_assert!(old < length || self.path.is_empty(), "n-grams are distinct");
        self.path.clear();
        self.path.extend(reversed[..length].iter().map(|word| word.0));
        for (depth, &word) in self.path.iter().enumerate() {
            let new = depth >= old;
            let next_begin = self.levels.get(depth + 1).map(|next| next.words.len() as u64);
            let level = &mut self.levels[depth];
            let node = if depth == 0 {
                word as usize
            } else {
                if new {
                    level.words.push(word);
                    level.counts.push(0);
                    level.adjusted.push(0);
                    level.children.extend(next_begin);
                }
                level.words.len() - 1
            };
            if depth == 0 && new && order > 1 {
                level.children[node] = next_begin.expect("the order is above 1");
            }
            level.counts[node] += count;
            if depth + 1 == order || word == self.begin {
                level.adjusted[node] += count;
            } else if depth + 1 >= old {
                // The next step of the path is new: one more word precedes this n-gram.
                level.adjusted[node] += 1;
            }
        }
    }

    /// The number of n-grams of the order that has most. Numbers of n-grams are stored as `u32`.
    pub(crate) fn largest_order(&self) -> usize {
        self.levels.iter().map(|level| level.counts.len()).max().unwrap_or(0)
    }

    /// Returns the trie of all probabilities, and the discounts of each order. No order may have more than
    /// `u32::MAX` n-grams.
    ///
    /// `None` if the history of an n-gram was never added, which cannot happen with n-grams of a text.
    pub(crate) fn finish(mut self, params: &NgramParams) -> Option<(Trie, Vec<Discounts>)> {
        self.close_children();
        let order = self.levels.len();
        let n_words = self.begin as usize;
        let discounts: Vec<Discounts> =
            self.levels.iter().map(|level| Discounts::of(&level.adjusted)).collect();
        let mut estimated = Vec::with_capacity(order);
        let mut probs = unigram_probs(&self.levels[0].adjusted[..n_words], &discounts[0]);
        let mut histories: Vec<u32> = Vec::new();
        for (n, discounts) in discounts.iter().enumerate().skip(1) {
            let (below, level) = (&self.levels[n - 1], &self.levels[n]);
            let rule = Rule { discounts, min_count: params.min_count(n + 1) };
            let next = Histories::of(&self.levels, n, &histories)?;
            let (totals, gammas) = next.masses(level, below.counts.len(), &rule);
            let next_probs = next.probs(level, &rule, &totals, &gammas, &probs);
            estimated.push((std::mem::replace(&mut probs, next_probs), gammas));
            histories = next.of_node;
        }
        estimated.push((probs, Vec::new()));
        Some((assemble(self.levels, estimated, params), discounts))
    }

    /// Completes the child offsets: those of unseen words equal those of the next word.
    fn close_children(&mut self) {
        for n in 1..self.levels.len() {
            let end = self.levels[n].words.len() as u64;
            let level = &mut self.levels[n - 1];
            level.children.push(end);
            if n == 1 {
                for word in (0..level.counts.len()).rev() {
                    if level.counts[word] == 0 {
                        level.children[word] = level.children[word + 1];
                    }
                }
            }
        }
    }
}

/// p(w) of all words, and 0 for the start of the sentence, which is never predicted. The history is empty, and the
/// remaining mass is distributed uniformly.
pub(crate) fn unigram_probs(a_1: &[u64], discounts: &Discounts) -> Vec<f64> {
    let total = a_1.iter().sum::<u64>() as f64;
    let left = a_1.iter().map(|&a| discounts.of_count(a)).sum::<f64>();
    let uniform = if total > 0.0 { left / total } else { 1.0 } / a_1.len() as f64;
    let total = total.max(1.0);
    let probs = a_1.iter().map(|&a| (a as f64 - discounts.of_count(a)) / total + uniform);
    probs.chain([0.0]).collect()
}

/// Discounting and pruning of one order.
struct Rule<'a> {
    discounts: &'a Discounts,
    min_count: u64,
}

impl Rule<'_> {
    /// D(a(u)), the mass taken from an n-gram: all of it if the n-gram is pruned.
    #[inline]
    fn taken(&self, level: &CountedLevel, node: usize) -> f64 {
        let a = level.adjusted[node];
        if level.counts[node] < self.min_count { a as f64 } else { self.discounts.of_count(a) }
    }
}

/// Histories of the n-grams of one order, as nodes of the order below.
struct Histories {
    of_node: Vec<u32>,
    /// The n-gram without its first word, as a node of the order below.
    parents: Vec<u32>,
}

impl Histories {
    /// Finds the histories of the n-grams of order n + 1, given those of order n.
    ///
    /// The history of `x u` is `x u⁻`, with u⁻ the history of u: the child of u⁻ by `x`. Both lists of
    /// children are sorted by `x`, so each search continues where the last one ended. `None` if a
    /// history is missing.
    fn of(levels: &[CountedLevel], n: usize, below: &[u32]) -> Option<Histories> {
        let (parents, nodes) = (&levels[n - 1], &levels[n]);
        let mut of_node = Vec::with_capacity(nodes.words.len());
        let mut parent_of = Vec::with_capacity(nodes.words.len());
        for (parent, bounds) in parents.children.windows(2).enumerate() {
            let children = &nodes.words[bounds[0] as usize..bounds[1] as usize];
            parent_of.extend(std::iter::repeat_n(parent as u32, children.len()));
            if n == 1 {
                of_node.extend_from_slice(children);
                continue;
            }
            if children.is_empty() {
                continue;
            }
            let history = below[parent] as usize;
            let grand = &levels[n - 2].children;
            let mut at = grand[history] as usize;
            let end = grand[history + 1] as usize;
            for &word in children {
                at += parents.words[at..end].partition_point(|&w| w < word);
                if parents.words[..end].get(at) != Some(&word) {
                    return None;
                }
                of_node.push(at as u32);
            }
        }
        Some(Histories { of_node, parents: parent_of })
    }

    /// Computes A(h) and γ(h) of every history h.
    fn masses(
        &self,
        level: &CountedLevel,
        n_histories: usize,
        rule: &Rule<'_>,
    ) -> (Vec<u64>, Vec<f64>) {
        let mut totals = vec![0u64; n_histories];
        let mut gammas = vec![0f64; n_histories];
        for (node, &history) in self.of_node.iter().enumerate() {
            totals[history as usize] += level.adjusted[node];
            gammas[history as usize] += rule.taken(level, node);
        }
        for (gamma, &total) in gammas.iter_mut().zip(&totals) {
            // A node that is not a history leaves all mass to the shorter history.
            *gamma = if total == 0 { 1.0 } else { *gamma / total as f64 };
        }
        (totals, gammas)
    }

    /// Computes p(w | h) of every n-gram, given those of the order below.
    fn probs(
        &self,
        level: &CountedLevel,
        rule: &Rule<'_>,
        totals: &[u64],
        gammas: &[f64],
        below: &[f64],
    ) -> Vec<f64> {
        let nodes = self.of_node.iter().zip(&self.parents).enumerate();
        let probs = nodes.map(|(node, (&history, &parent))| {
            let history = history as usize;
            let kept = level.adjusted[node] as f64 - rule.taken(level, node);
            kept / totals[history] as f64 + gammas[history] * below[parent as usize]
        });
        probs.collect()
    }
}

/// Builds the trie from probabilities and structure, without pruned n-grams.
fn assemble(
    levels: Vec<CountedLevel>,
    estimated: Vec<(Vec<f64>, Vec<f64>)>,
    params: &NgramParams,
) -> Trie {
    let mut kept_levels: Vec<Vec<bool>> = Vec::new();
    for (i, level) in levels.iter().enumerate() {
        let min_count = if i == 0 { 0 } else { params.min_count(i + 1) };
        kept_levels.push(level.counts.iter().map(|&count| count >= min_count).collect());
    }
    let order = levels.len();
    let levels =
        levels.into_iter().zip(estimated).enumerate().map(|(i, (level, (probs, gammas)))| {
            let kept = &kept_levels[i];
            let ln = |values: &[f64]| -> Vec<f32> {
                let values = values.iter().zip(kept).filter(|(_, kept)| **kept);
                values.map(|(&value, _)| value.ln() as f32).collect()
            };
            let words = level.words.iter().zip(kept).filter(|(_, kept)| **kept).map(|(&w, _)| w);
            let children = if i + 1 < order {
                kept_children(&level, kept, &kept_levels[i + 1])
            } else {
                vec![]
            };
            Level {
                words: words.collect::<Vec<_>>().into(),
                log_probs: ln(&probs).into(),
                backoffs: ln(&gammas).into(),
                children: children.into(),
            }
        });
    Trie { levels: levels.collect() }
}

/// Offsets of the remaining children of the remaining nodes.
fn kept_children(level: &CountedLevel, kept: &[bool], next_kept: &[bool]) -> Vec<u64> {
    let mut begins = vec![0];
    let mut n_kept = 0;
    for (bounds, &kept) in level.children.windows(2).zip(kept) {
        if kept {
            let children = &next_kept[bounds[0] as usize..bounds[1] as usize];
            n_kept += children.iter().filter(|kept| **kept).count() as u64;
            begins.push(n_kept);
        }
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ngrams_without_their_history_are_detected() {
        let finish = |ngrams: &[[u32; 3]]| {
            let mut estimator = Estimator::new(3, /* n_words */ 4);
            ngrams.iter().for_each(|&ngram| estimator.add(&ngram.map(WordId), 1));
            estimator.finish(&NgramParams { order: 3, ..NgramParams::default() })
        };
        // Reversed n-grams of the sentence `2 3`; 4 is the start of the sentence.
        assert!(finish(&[[1, 3, 2], [2, 4, 4], [3, 2, 4]]).is_some());
        assert!(finish(&[[1, 3, 2], [2, 4, 4]]).is_none());
        assert!(finish(&[[1, 3, 2], [3, 2, 4]]).is_none());
        assert!(finish(&[[1, 3, 2], [2, 4, 4], [3, 1, 4]]).is_none());
        assert!(finish(&[]).is_some());
    }
}
