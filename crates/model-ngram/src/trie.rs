//! n-grams with their probabilities, found from the last word backwards.
//!
//! A path from the root spells an n-gram from its last word to its first. The parent of `a b c` is
//! thus `b c`, the n-gram to back off to, and one descent along the history finds the longest n-gram
//! that is known, which is all that a prediction needs.

use latens_store::FlatArray;

/// n-grams of all orders up to one. Arrays lie in memory or in a mapped model file.
#[derive(Clone, Debug)]
pub(crate) struct Trie {
    /// `levels[n - 1]` has the n-grams of order n.
    pub(crate) levels: Vec<Level>,
}

/// All n-grams of one order, sorted by their words from last to first.
///
/// Order 1 has one node a word, and one more for the begin of the sentence; `words` is empty there.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// The first word of each n-gram, which is the last step of its path.
    pub(crate) words: FlatArray<u32>,
    /// ln p(last word | words before it).
    pub(crate) log_probs: FlatArray<f32>,
    /// ln of the mass left to shorter histories when this n-gram is the history. Empty for the
    /// highest order, whose n-grams are nobody's history.
    pub(crate) backoffs: FlatArray<f32>,
    /// Where each node's children begin in the next level, and where the last one's end. Empty for
    /// the highest order.
    pub(crate) children: FlatArray<u64>,
}

impl Trie {
    pub(crate) fn order(&self) -> usize {
        self.levels.len()
    }

    /// The number of words that can be predicted; as a word, the begin of the sentence.
    pub(crate) fn n_words(&self) -> usize {
        self.levels[0].log_probs.len() - 1
    }

    /// The child of `node` of order `order` that has `word` before it.
    #[inline]
    pub(crate) fn child(&self, order: usize, node: usize, word: u32) -> Option<usize> {
        let children = &self.levels[order - 1].children;
        let (begin, end) = (children[node] as usize, children[node + 1] as usize);
        let words = &self.levels[order].words[begin..end];
        find(words, word).map(|at| begin + at)
    }

    /// Calls `visit` with every n-gram of `order`, words from first to last, and its node.
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

/// Where `word` is in ascending `words`.
#[inline]
fn find(words: &[u32], word: u32) -> Option<usize> {
    // Most nodes have a handful of children, where counting without branches beats a search.
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
    fn words_are_found_in_short_and_long_lists() {
        for n in [0u32, 1, 2, 16, 17, 100] {
            let words: Vec<u32> = (0..n).map(|i| 2 * i + 1).collect();
            for word in 0..2 * n + 2 {
                let expected = words.iter().position(|&w| w == word);
                assert_eq!(find(&words, word), expected);
            }
        }
    }
}
