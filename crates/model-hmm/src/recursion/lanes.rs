//! The sentences of a dense model in lanes.
//!
//! All tokens of a dense model share one matrix of transitions, so that a step of many sentences is one matrix product. The
//! sentences of a part of a batch follow each other in lanes of nearly the same length. In this way all steps have about the
//! same number of rows, and those of a step lie next to each other in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Number of values of a part, and bounds of its number of tokens. With this many values, the buffers of a part take about
/// two megabytes, and with this many tokens, its matrix products are fast. The parts depend on the batch alone, so that the
/// result does not depend on the number of threads.
const PART_VALUES: usize = 1 << 17;
const PART_TOKENS: [usize; 2] = [1024, 2048];
/// The transitions of more states are too many to be read again for every part.
const MAX_STATES: usize = 512;
/// About the largest number of lanes. More make matrix products little faster, and the rows of a step leave the cache.
const MAX_LANES: usize = 64;

/// Where the tokens of a batch lie: part by part, step by step, lane by lane.
#[derive(Default)]
pub(crate) struct Lanes {
    /// The sentences that have tokens, in the order of the parts.
    pub(crate) order: Vec<u32>,
    /// The token of each row.
    pub(crate) tokens: Vec<u32>,
    /// The place in `order` of the sentence of each row.
    pub(crate) places: Vec<u32>,
    pub(crate) parts: Vec<Part>,
}

/// Sentences whose recursion runs on one thread, unless they are the only part.
pub(crate) struct Part {
    pub(crate) rows: Range<usize>,
    /// The range of its sentences in `order`.
    pub(crate) sentences: Range<usize>,
    /// The number of rows of each step. It never grows: longer lanes come first.
    pub(crate) steps: Vec<usize>,
}

/// Number of parts of a batch with some tokens, for a model with k states.
pub(crate) fn n_parts(n_tokens: usize, k: usize) -> usize {
    if k > MAX_STATES {
        return 1;
    }
    let [min, max] = PART_TOKENS;
    let size = (PART_VALUES / k.max(1)).clamp(min, max);
    ((n_tokens + size / 2) / size).max(1)
}

impl Lanes {
    /// Arranges sentences with these first tokens, for a model with k states.
    pub(crate) fn arrange(&mut self, sentence_starts: &[usize], k: usize) {
        let len = |s: u32| sentence_starts[s as usize + 1] - sentence_starts[s as usize];
        let n_tokens = sentence_starts[sentence_starts.len() - 1];
        self.order = (0..sentence_starts.len() as u32 - 1).filter(|&s| len(s) > 0).collect();
        self.order.sort_by_key(|&s| Reverse(len(s)));
        self.tokens.clear();
        self.places.clear();
        self.parts.clear();
        let n_parts = n_parts(n_tokens, k);
        let max_lanes = if k <= MAX_STATES { MAX_LANES } else { usize::MAX };
        let (mut begin, mut n_before) = (0, 0);
        for part in 1..=n_parts {
            let (mut end, mut n) = (begin, n_before);
            while end < self.order.len() && n < part * n_tokens / n_parts {
                n += len(self.order[end]);
                end += 1;
            }
            if begin < end {
                let len = (n - n_before).div_ceil(max_lanes).max(len(self.order[begin]));
                self.arrange_part(begin..end, len, sentence_starts);
            }
            (begin, n_before) = (end, n);
        }
    }

    /// Arranges the sentences of a part, which are sorted by length, in lanes of at most `max_len` tokens.
    fn arrange_part(&mut self, sentences: Range<usize>, max_len: usize, starts: &[usize]) {
        /// The sentences of a lane, by their places, and its number of tokens.
        #[derive(Default)]
        struct Lane {
            places: Vec<usize>,
            len: usize,
        }
        let tokens = |place: usize| {
            let sentence = self.order[place] as usize;
            starts[sentence]..starts[sentence + 1]
        };
        let mut lanes: Vec<Lane> = vec![];
        // The length and the index of each lane; the shortest is the first.
        let mut shortest: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
        for place in sentences.clone() {
            let n = tokens(place).len();
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
            lanes[at].places.push(place);
            lanes[at].len += n;
            shortest.push(Reverse((lanes[at].len, at)));
        }
        lanes.sort_by_key(|lane| Reverse(lane.len));
        let mut steps = vec![0; lanes[0].len];
        lanes.iter().for_each(|lane| steps[..lane.len].iter_mut().for_each(|n| *n += 1));
        let first = self.tokens.len();
        let n_rows: usize = steps.iter().sum();
        let mut rows = vec![(0, 0); n_rows];
        for (i, lane) in lanes.iter().enumerate() {
            let mut row = i;
            let of_lane =
                lane.places.iter().flat_map(|&place| tokens(place).map(move |t| (t, place)));
            for ((token, place), n) in of_lane.zip(&steps) {
                rows[row] = (token as u32, place as u32);
                row += n;
            }
        }
        self.tokens.extend(rows.iter().map(|&(token, _)| token));
        self.places.extend(rows.iter().map(|&(_, place)| place));
        self.parts.push(Part { rows: first..first + n_rows, sentences, steps });
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
        for part in &lanes.parts {
            assert_eq!(part.rows.len(), part.steps.iter().sum::<usize>());
            assert!(part.steps.is_sorted_by(|a, b| a >= b));
            let (mut before, mut begin) = (0, part.rows.start);
            for &n in &part.steps {
                for row in begin..begin + n {
                    let (token, place) = (lanes.tokens[row], lanes.places[row] as usize);
                    let sentence = lanes.order[place] as usize;
                    assert!((starts[sentence]..starts[sentence + 1]).contains(&(token as usize)));
                    assert!(part.sentences.contains(&place));
                    if token as usize != starts[sentence] {
                        let above = before + row - begin;
                        assert_eq!(lanes.tokens[above], token - 1, "in the same lane");
                    }
                }
                (before, begin) = (begin, begin + n);
            }
        }
        lanes
    }

    #[test]
    fn sentences_follow_each_other_in_lanes() {
        assert!(arranged(&[], 64).parts.is_empty());
        assert!(arranged(&[0, 0], 64).parts.is_empty());
        for k in [64, 1000] {
            assert_eq!(arranged(&[3], k).parts[0].steps, [1, 1, 1]);
            // 9 | 5 2 2 | 1 1
            let lanes = arranged(&[1, 0, 5, 2, 2, 9, 1], k);
            assert_eq!(lanes.parts[0].steps, [3, 3, 2, 2, 2, 2, 2, 2, 2]);
        }
        // 10,788 tokens in parts of about 2,048, or in a single one.
        let many: Vec<usize> = (0..900).map(|i| i * i % 31).collect();
        assert_eq!(arranged(&many, 64).parts.len(), 5);
        assert_eq!(arranged(&many, 1000).parts.len(), 1);
    }

    #[test]
    fn sentences_of_nearly_the_same_length_are_side_by_side() {
        let lanes = arranged(&[[60; 10], [59; 10], [58; 10]].concat(), 64);
        assert_eq!(lanes.parts[0].steps.len(), 60);
        assert_eq!(lanes.parts[0].steps[0], 30);
        // Short sentences fill about 64 lanes.
        let lanes = arranged(&[8; 250], 64);
        assert_eq!(lanes.parts[0].steps, [[63; 16], [62; 16]].concat());
    }
}
