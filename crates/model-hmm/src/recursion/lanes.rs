//! The sentences of a dense model in lanes.
//!
//! All tokens of a dense model share one matrix of transitions, so that a step of many sentences is one matrix product. The
//! sentences follow each other in lanes of nearly the same length. In this way all steps have about the same number of
//! rows, and those of a step lie next to each other in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of values of a part of a batch, and bounds of its number of tokens. With this many values, the buffers of a part
/// take about two megabytes and stay in the caches of a core, and with this many tokens, its matrix products are fast. The
/// parts depend on the batch alone, so that the result does not depend on the number of threads.
const PART_VALUES: usize = 3 << 16;
const PART_TOKENS: [usize; 2] = [1024, 3072];
/// The transitions of more states are too many to be read again for every part.
const MAX_STATES: usize = 512;
/// About the largest number of lanes. More make matrix products little faster, and the rows of a step leave the cache.
const MAX_LANES: usize = 96;

/// Where tokens lie: step by step, lane by lane.
#[derive(Default)]
pub(crate) struct Lanes {
    /// The token of each row.
    pub(crate) tokens: Vec<u32>,
    /// The sentence of each row.
    pub(crate) sentences: Vec<u32>,
    /// The number of rows of each step. It never grows: longer lanes come first.
    pub(crate) steps: Vec<usize>,
}

/// Number of parts of a batch with some tokens, for a dense model with k states.
pub(crate) fn n_parts(n_tokens: usize, k: usize) -> usize {
    if k > MAX_STATES {
        return 1;
    }
    let [min, max] = PART_TOKENS;
    let size = (PART_VALUES / k.max(1)).clamp(min, max);
    ((n_tokens + size / 2) / size).max(1)
}

/// Number of tokens of a batch for Baum–Welch of a dense model with k states. Up to [`MAX_STATES`] states, it has several
/// parts, so that many threads have work.
pub(crate) fn batch_tokens(k: usize) -> usize {
    if k > MAX_STATES { (1 << 21) / k } else { (1 << 22) / k.max(128) }
}

impl Lanes {
    /// Arranges sentences with these first tokens, for a model with k states.
    pub(crate) fn arrange(&mut self, starts: &[usize], k: usize) {
        /// The sentences of a lane, and its number of tokens.
        #[derive(Default)]
        struct Lane {
            sentences: Vec<u32>,
            len: usize,
        }
        let tokens = |s: u32| starts[s as usize]..starts[s as usize + 1];
        let n_tokens = starts[starts.len() - 1];
        let mut order: Vec<u32> =
            (0..starts.len() as u32 - 1).filter(|&s| !tokens(s).is_empty()).collect();
        order.sort_by_key(|&s| Reverse(tokens(s).len()));
        let max_lanes = if k <= MAX_STATES { MAX_LANES } else { usize::MAX };
        let max_len =
            n_tokens.div_ceil(max_lanes).max(order.first().map_or(0, |&s| tokens(s).len()));
        let mut lanes: Vec<Lane> = vec![];
        // The length and the index of each lane; the shortest is the first.
        let mut shortest: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
        for sentence in order {
            let n = tokens(sentence).len();
            let at = match shortest.peek() {
                Some(&Reverse((len, at))) if len + n <= max_len => {
                    shortest.pop();
                    at
                }
                _ => {
                    lanes.push(Lane::default());
                    lanes.len() - 1
                }
            };
            lanes[at].sentences.push(sentence);
            lanes[at].len += n;
            shortest.push(Reverse((lanes[at].len, at)));
        }
        lanes.sort_by_key(|lane| Reverse(lane.len));
        self.steps.clear();
        self.steps.resize(lanes.first().map_or(0, |lane| lane.len), 0);
        for lane in &lanes {
            self.steps[..lane.len].iter_mut().for_each(|n| *n += 1);
        }
        self.tokens.resize(n_tokens, 0);
        self.sentences.resize(n_tokens, 0);
        for (i, lane) in lanes.iter().enumerate() {
            let mut row = i;
            let of_lane = lane.sentences.iter().flat_map(|&s| tokens(s).map(move |t| (t, s)));
            for ((token, sentence), n) in of_lane.zip(&self.steps) {
                (self.tokens[row], self.sentences[row]) = (token as u32, sentence);
                row += n;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arranges sentences of these lengths, and checks where every token is.
    fn arranged(lens: &[usize], k: usize) -> Lanes {
        let mut starts = vec![0];
        lens.iter().for_each(|len| starts.push(starts[starts.len() - 1] + len));
        let mut lanes = Lanes::default();
        // Arranges twice, since buffers are reused.
        lanes.arrange(&[0, 7], k);
        lanes.arrange(&starts, k);
        let mut tokens = lanes.tokens.clone();
        tokens.sort_unstable();
        assert!(tokens.into_iter().eq(0..starts[lens.len()] as u32), "every token has one row");
        assert_eq!(lanes.tokens.len(), lanes.steps.iter().sum::<usize>());
        assert!(lanes.steps.is_sorted_by(|a, b| a >= b));
        let (mut before, mut begin) = (0, 0);
        for &n in &lanes.steps {
            for row in begin..begin + n {
                let (token, sentence) = (lanes.tokens[row], lanes.sentences[row] as usize);
                assert!((starts[sentence]..starts[sentence + 1]).contains(&(token as usize)));
                if token as usize != starts[sentence] {
                    let above = before + row - begin;
                    assert_eq!(lanes.tokens[above], token - 1, "in the same lane");
                }
            }
            (before, begin) = (begin, begin + n);
        }
        lanes
    }

    #[test]
    fn sentences_follow_each_other_in_lanes() {
        assert!(arranged(&[], 64).steps.is_empty());
        assert!(arranged(&[0, 0], 64).steps.is_empty());
        for k in [64, 1000] {
            assert_eq!(arranged(&[3], k).steps, [1, 1, 1]);
            // 9 | 5 2 2 | 1 1
            let lanes = arranged(&[1, 0, 5, 2, 2, 9, 1], k);
            assert_eq!(lanes.steps, [3, 3, 2, 2, 2, 2, 2, 2, 2]);
        }
        arranged(&(0..900).map(|i| i * i % 31).collect::<Vec<_>>(), 64);
    }

    #[test]
    fn sentences_of_nearly_the_same_length_are_side_by_side() {
        let lanes = arranged(&[[60; 10], [59; 10], [58; 10]].concat(), 64);
        assert_eq!(lanes.steps.len(), 60);
        assert_eq!(lanes.steps[0], 30);
        // Short sentences fill about 96 lanes.
        let lanes = arranged(&[8; 350], 64);
        assert_eq!(lanes.steps, [vec![117; 16], vec![116; 8]].concat());
    }

    #[test]
    fn parts_have_about_three_thousand_tokens_unless_there_are_many_states() {
        assert_eq!([0, 1, 4607, 4608, 10_788].map(|n| n_parts(n, 64)), [1, 1, 1, 2, 4]);
        assert_eq!(n_parts(10_788, 1000), 1);
        assert_eq!([1, 64, 128, 512].map(|k| n_parts(batch_tokens(k), k)), [11, 11, 21, 8]);
    }
}
