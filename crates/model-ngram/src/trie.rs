//! Trie of n-grams and their probabilities, keyed by reversed n-grams.
//!
//! A path from the root spells an n-gram from its last word to its first. The parent of `a b c` is
//! thus `b c`, the n-gram to back off to, and one descent along the history finds the longest known
//! n-gram, which is all that a prediction needs.

use latens_store::FlatArray;

/// n-grams of all orders up to the model's. Arrays are in memory or in a mapped model file.
#[derive(Clone, Debug)]
pub(crate) struct Trie {
    /// `levels[n - 1]` has the n-grams of order n.
    pub(crate) levels: Vec<Level>,
}

/// All n-grams of one order, sorted by their reversed words.
///
/// Order 1 has one node per word and one for the start of the sentence; `words` is empty there.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// The first word of each n-gram, which is the last step of its path.
    pub(crate) words: FlatArray<u32>,
    /// ln p(last word | words before it).
    pub(crate) log_probs: FlatArray<f32>,
    /// ln γ, the back-off weight of this n-gram as a history. Empty for the highest order, whose
    /// n-grams are never histories.
    pub(crate) backoffs: FlatArray<f32>,
    /// Offsets of the children of each node in the next level, with the final end. Empty for the
    /// highest order.
    pub(crate) children: FlatArray<u64>,
}

impl Trie {
    pub(crate) fn order(&self) -> usize {
        self.levels.len()
    }

    /// Number of words that can be predicted; as a word id, the start of the sentence.
    pub(crate) fn n_words(&self) -> usize {
        self.levels[0].log_probs.len() - 1
    }

    /// Child of `node`, of order `order`, whose first word is `word`.
    #[inline]
    pub(crate) fn child(&self, order: usize, node: usize, word: u32) -> Option<usize> {
        let children = &self.levels[order - 1].children;
        let (begin, end) = (children[node] as usize, children[node + 1] as usize);
        let words = &self.levels[order].words[begin..end];
        find(words, word).map(|at| begin + at)
    }

    /// Calls `visit` with the words, from first to last, and the node of every n-gram of `order`.
    pub(crate) fn for_each(&self, order: usize, mut visit: impl FnMut(&[u32], usize)) {
        let mut words = vec![0; order];
        for word in 0..=self.n_words() {
            words[order - 1] = word as u32;
            self.descend(1, word, order, &mut words, &mut visit);
        }
    }

    fn descend(
        &self,
        depth: usize,
        node: usize,
        order: usize,
        words: &mut [u32],
        visit: &mut impl FnMut(&[u32], usize),
    ) {
        if depth == order {
            return visit(words, node);
        }
        let children = &self.levels[depth - 1].children;
        for child in children[node] as usize..children[node + 1] as usize {
            words[order - 1 - depth] = self.levels[depth].words[child];
            self.descend(depth + 1, child, order, words, visit);
        }
    }
}

/// Position of `word` in sorted `words`.
#[inline]
fn find(words: &[u32], word: u32) -> Option<usize> {
    // Most nodes have few children, where a branch-free linear count is faster than a binary search.
    if words.len() <= 16 {
        let at = words.iter().map(|&w| usize::from(w < word)).sum::<usize>();
        return (words.get(at) == Some(&word)).then_some(at);
    }
    words.binary_search(&word).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_agrees_with_a_linear_search() {
        for n in [0u32, 1, 2, 16, 17, 100] {
            let words: Vec<u32> = (0..n).map(|i| 2 * i + 1).collect();
            for word in 0..2 * n + 2 {
                let expected = words.iter().position(|&w| w == word);
                assert_eq!(find(&words, word), expected);
            }
        }
    }
}
