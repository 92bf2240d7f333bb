//! The sentences of a dense model in lanes.
//!
//! All tokens of a dense model share one matrix of transitions, so that a step of many sentences is one matrix product. The
//! sentences of a part of a batch follow each other in lanes of nearly the same length. In this way all steps have about the
//! same number of rows, and those of a step lie next to each other in memory.

use std::cmp::Reverse;
use std::ops::Range;

/// Number of values of a part, and bounds of its number of tokens. With this many values, the buffers of a part take about
/// two megabytes, and with this many tokens, its matrix products are fast. The parts depend on the batch alone, so that the
/// result does not depend on the number of threads.
const PART_VALUES: usize = 1 << 17;
const PART_TOKENS: [usize; 2] = [1024, 2048];
/// The transitions of more states are too many to be read again for every part.
const MAX_STATES: usize = 512;
/// More lanes make matrix products little faster, and the rows of a step leave the cache.
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
        let [min, max] = PART_TOKENS;
        let (size, max_lanes) = match k <= MAX_STATES {
            true => ((PART_VALUES / k.max(1)).clamp(min, max), MAX_LANES),
            false => (n_tokens.max(1), usize::MAX),
        };
        let n_parts = ((n_tokens + size / 2) / size).max(1);
        let (mut begin, mut n_before) = (0, 0);
        for part in 1..=n_parts {
            let (mut end, mut n) = (begin, n_before);
            while end < self.order.len() && n < part * n_tokens / n_parts {
                n += len(self.order[end]);
                end += 1;
            }
            if begin < end {
                let n_lanes = ((n - n_before) / len(self.order[begin])).clamp(1, max_lanes);
                self.arrange_part(begin..end, n_lanes, sentence_starts);
            }
            (begin, n_before) = (end, n);
        }
    }

    fn arrange_part(&mut self, sentences: Range<usize>, n_lanes: usize, starts: &[usize]) {
        /// The sentences of a lane, by their places, and its number of tokens.
        #[derive(Clone, Default)]
        struct Lane {
            places: Vec<usize>,
            len: usize,
        }
        let tokens = |place: usize| {
            let sentence = self.order[place] as usize;
            starts[sentence]..starts[sentence + 1]
        };
        let mut lanes = vec![Lane::default(); n_lanes];
        for place in sentences.clone() {
            let lane = lanes.iter_mut().min_by_key(|lane| lane.len).expect("at least one lane");
            lane.places.push(place);
            lane.len += tokens(place).len();
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

    #[test]
    fn sentences_follow_each_other_in_lanes() {
        for lens in [
            vec![],
            vec![0, 0],
            vec![3],
            vec![1, 0, 5, 2, 2, 9, 1],
            (0..900).map(|i| i * i % 31).collect::<Vec<usize>>(),
        ] {
            let mut starts = vec![0];
            lens.iter().for_each(|len| starts.push(starts[starts.len() - 1] + len));
            let mut lanes = Lanes::default();
            // Arranges twice, since buffers are reused.
            lanes.arrange(&[0, 7], 64);
            lanes.arrange(&starts, 64);
            let n_tokens = starts[lens.len()];
            let mut tokens = lanes.tokens.clone();
            tokens.sort_unstable();
            assert!(tokens.into_iter().eq(0..n_tokens as u32), "every token has one row");
            // Parts of about 2,048 tokens.
            let n_parts = if n_tokens == 10_788 { 5 } else { usize::from(n_tokens > 0) };
            assert_eq!(lanes.parts.len(), n_parts);
            for part in &lanes.parts {
                assert_eq!(part.rows.len(), part.steps.iter().sum::<usize>());
                assert!(part.steps.is_sorted_by(|a, b| a >= b));
                assert!(part.steps[0] <= MAX_LANES);
                let (mut before, mut begin) = (0, part.rows.start);
                for &n in &part.steps {
                    for row in begin..begin + n {
                        let (token, place) = (lanes.tokens[row], lanes.places[row] as usize);
                        let sentence = lanes.order[place] as usize;
                        assert!(
                            (starts[sentence]..starts[sentence + 1]).contains(&(token as usize))
                        );
                        assert!(part.sentences.contains(&place));
                        if token as usize != starts[sentence] {
                            let above = before + row - begin;
                            assert_eq!(lanes.tokens[above], token - 1, "in the same lane");
                        }
                    }
                    (before, begin) = (begin, begin + n);
                }
            }
        }
    }
}
