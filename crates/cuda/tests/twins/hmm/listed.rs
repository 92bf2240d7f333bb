//! The recursions where each word has its own list of states.

use super::transition::SMALLEST;
use crate::kit::{
    Done, EXACT, Framed, ROUNDED, Rng, SINGLE, Sum, assert_near, device, framed, get, holes, put,
    sums, twice,
};
use latens_cuda::{Blocks, Device, Listed, Sequences, StateTokens};
use std::ops::Range;

/// Lower bound of emission probabilities, as in the kernels.
const SMALLEST_EMISSION: f32 = 1e-33;

/// Padding of shorter lists.
const NONE: u32 = u32::MAX;

/// Number of states, largest length of a list, and number of lists. Blocks have up to 256 threads, and warps 32.
const SHAPES: &[(usize, usize, usize)] =
    &[(1, 1, 1), (6, 3, 4), (40, 32, 7), (90, 33, 5), (300, 65, 12), (600, 257, 6)];

/// Lists of states, and sentences whose tokens have these lists.
#[derive(Debug)]
struct Text {
    n: usize,
    k: usize,
    states: Vec<u32>,
    offsets: Vec<u32>,
    groups: Vec<u32>,
    slots: Vec<u32>,
    block_of_pair: Vec<u32>,
    from: Vec<u32>,
    to: Vec<u32>,
}

impl Text {
    /// Sentences, and lists of random states. The first list is the longest, and the second is empty.
    fn draw((n, k, n_groups): (usize, usize, usize), rng: &mut Rng) -> Text {
        let mut states = vec![];
        for group in 0..n_groups {
            let len = [k, 0, 1 + rng.below(k)][group.min(2)];
            let mut list = rng.shuffled(n)[..len].to_vec();
            list.sort_unstable();
            list.resize(k, NONE);
            states.extend(list);
        }
        let (mut offsets, mut groups) = (vec![0], vec![]);
        // With short lists, a long sentence gives a state more tokens than a warp has threads.
        for length in [3, 0, 1, 5, 4, 2, if k < 4 { 90 } else { 0 }] {
            groups.extend(rng.idxs(length, n_groups));
            offsets.push(groups.len() as u32);
        }
        let slots = groups.iter().map(|group| group + 1).collect();
        let (mut from, mut to, mut block_of_pair) = (vec![], vec![], vec![0; groups.len()]);
        for ends in offsets.windows(2) {
            for t in ends[0] as usize + 1..ends[1] as usize {
                block_of_pair[t] = from.len() as u32;
                from.push(groups[t - 1]);
                to.push(groups[t]);
            }
        }
        Text { n, k, states, offsets, groups, slots, block_of_pair, from, to }
    }

    fn n_groups(&self) -> usize {
        self.states.len() / self.k
    }

    fn n_tokens(&self) -> usize {
        self.groups.len()
    }

    /// State number j of a token.
    fn state(&self, t: usize, j: usize) -> Option<usize> {
        let state = self.states[self.groups[t] as usize * self.k + j];
        (state != NONE).then_some(state as usize)
    }

    fn is_last(&self, t: usize) -> bool {
        self.offsets[1..].contains(&(t as u32 + 1))
    }

    fn is_first(&self, t: usize) -> bool {
        // An empty sentence begins where the next one does.
        self.offsets.contains(&(t as u32))
    }

    fn put(&self, device: &Device) -> Uploaded {
        let mut ints = vec![];
        let mut push = |values: &[u32]| {
            let begin = ints.len() + 3;
            ints.extend_from_slice(values);
            begin..begin + values.len()
        };
        let (states, offsets) = (push(&self.states), push(&self.offsets));
        let (clusters, slots) = (push(&self.groups), push(&self.slots));
        let (block_of_pair, from, to) =
            (push(&self.block_of_pair), push(&self.from), push(&self.to));
        let (mut begins, mut entries) = (vec![0], vec![]);
        for state in 0..self.n {
            for at in 0..self.n_tokens() * self.k {
                if self.state(at / self.k, at % self.k) == Some(state) {
                    entries.push(at as u32);
                }
            }
            begins.push(entries.len() as u32);
        }
        let end = |t: usize| {
            u32::from(self.is_first(t)) * StateTokens::FIRST
                + u32::from(self.is_last(t)) * StateTokens::LAST
        };
        let ends: Vec<u32> = (0..self.n_tokens()).map(end).collect();
        let (begins, entries, ends) = (push(&begins), push(&entries), push(&ends));
        let ints = framed(device, &ints);
        let ranges =
            [states, offsets, clusters, slots, block_of_pair, from, to, begins, entries, ends];
        Uploaded { ints, ranges, k: self.k }
    }
}

/// A text on the device.
struct Uploaded {
    ints: Framed<u32>,
    ranges: [Range<usize>; 10],
    k: usize,
}

impl Uploaded {
    fn listed(&self) -> Listed<'_> {
        Listed { ints: &self.ints.array, states: self.ranges[0].clone(), k: self.k }
    }

    fn sequences(&self) -> Sequences<'_> {
        let [_, offsets, clusters, slots, block_of_pair, ..] = self.ranges.clone();
        Sequences { ints: &self.ints.array, offsets, clusters, slots, block_of_pair }
    }

    fn blocks(&self) -> Blocks<'_> {
        let [_, _, _, _, _, from, to, ..] = self.ranges.clone();
        Blocks { ints: &self.ints.array, from, to }
    }

    fn state_tokens(&self) -> StateTokens<'_> {
        let [.., begins, entries, ends] = self.ranges.clone();
        StateTokens { ints: &self.ints.array, begins, entries, ends }
    }
}

#[test]
fn values_of_states_are_gathered_and_scattered() {
    let Some(device) = device(&["gather_listed", "scatter_listed"]) else { return };
    let mut rng = Rng::new(90);
    for &shape in SHAPES {
        let (text, what) = (Text::draw(shape, &mut rng), format!("gather, scatter: {shape:?}"));
        let (n, k, n_groups) = (text.n, text.k, text.n_groups());
        let (values, before) = (rng.normals(n), rng.normals(n_groups * n));
        let (gathered, scattered) = twice(&what, || {
            let (numbers, of_states) = (text.put(&device), put(&device, &values));
            let mut out = holes(&device, n_groups * k);
            let listed = numbers.listed();
            device.gather_listed(&mut out.array, &of_states.array, &listed).done(&what);
            let mut rows = put(&device, &before);
            device.scatter_listed(&mut rows.array, &out.array, &listed, n).done(&what);
            (get(&device, &what, &out), get(&device, &what, &rows))
        });
        let value = |&state: &u32| values.get(state as usize).copied().unwrap_or(0.0).into();
        let expected: Vec<Sum> = text.states.iter().map(value).collect();
        assert_near(&what, &gathered, &expected, EXACT);
        let mut rows = sums(&before);
        for (at, &state) in text.states.iter().enumerate().filter(|(_, state)| **state != NONE) {
            rows[at / k * n + state as usize] = expected[at];
        }
        assert_near(&what, &scattered, &rows, EXACT);
    }
}

#[test]
fn tokens_get_the_emissions_of_their_listed_states() {
    let Some(device) = device(&["place_listed"]) else { return };
    let mut rng = Rng::new(91);
    for &shape in SHAPES {
        let (text, what) = (Text::draw(shape, &mut rng), format!("place_listed: {shape:?}"));
        let (n, k) = (text.n, text.k);
        let mut emission = rng.positives((text.n_groups() + 1) * n);
        emission.iter_mut().step_by(7).for_each(|b| *b = 0.0);
        let got = twice(&what, || {
            let (numbers, table) = (text.put(&device), put(&device, &emission));
            let mut local = holes(&device, text.n_tokens() * k);
            let (sequences, listed) = (numbers.sequences(), numbers.listed());
            let out = &mut local.array;
            device.place_listed(out, &table.array, &sequences, &listed, n).done(&what);
            get(&device, &what, &local)
        });
        let b = |t: usize, state| emission[text.slots[t] as usize * n + state];
        let expected = (0..text.n_tokens() * k).map(|at| {
            let b = text.state(at / k, at % k).map(|state| b(at / k, state).max(SMALLEST_EMISSION));
            Sum::from(b.unwrap_or(0.0))
        });
        assert_near(&what, &got, &expected.collect::<Vec<_>>(), EXACT);
    }
}

/// Rows of logits, and ln Σ exp of each row. Some transitions are below the lower bound.
fn logits(n: usize, rng: &mut Rng) -> (Vec<f32>, Vec<f32>) {
    let mut logits = rng.logits(n, n);
    logits.iter_mut().skip(1).step_by(11).for_each(|logit| *logit -= 100.0);
    let log_sum = |row: &[f32]| row.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln() as f32;
    let log_sums = logits.chunks(n).map(log_sum).collect();
    (logits, log_sums)
}

#[test]
fn blocks_between_lists_agree_with_the_cpu() {
    let Some(device) = device(&["gather_listed_blocks"]) else { return };
    let mut rng = Rng::new(92);
    for &shape in SHAPES {
        let (text, what) = (Text::draw(shape, &mut rng), format!("blocks of lists: {shape:?}"));
        let (n, k, n_blocks) = (text.n, text.k, text.from.len());
        let (logits, log_sums) = logits(n, &mut rng);
        let got = twice(&what, || {
            let (numbers, sums) = (text.put(&device), put(&device, &log_sums));
            let mut out = holes(&device, n_blocks * k * k);
            for rows in [0..n / 3, n / 3..n] {
                let part = put(&device, &logits[rows.start * n..rows.end * n]);
                let (blocks, listed) = (numbers.blocks(), numbers.listed());
                let (out, part) = (&mut out.array, (&part.array, rows));
                device
                    .gather_listed_blocks(out, part, &sums.array, &blocks, &listed, n)
                    .done(&what);
            }
            get(&device, &what, &out)
        });
        let state = |group: u32, j: usize| text.states[group as usize * k + j];
        let entry = |at: usize| {
            let (u, i, j) = (at / (k * k), at / k % k, at % k);
            match (state(text.from[u], i), state(text.to[u], j)) {
                (NONE, _) | (_, NONE) => Sum::default(),
                (i, j) => {
                    let logit = f64::from(logits[i as usize * n + j as usize]);
                    (logit - f64::from(log_sums[i as usize])).exp().max(SMALLEST).into()
                }
            }
        };
        let expected: Vec<Sum> = (0..n_blocks * k * k).map(entry).collect();
        assert_near(&what, &got, &expected, SINGLE);
    }
}

#[test]
fn sums_over_the_tokens_of_a_state_agree_with_the_cpu() {
    let Some(device) = device(&["sum_listed"]) else { return };
    let mut rng = Rng::new(93);
    for &shape in SHAPES {
        let (text, what) = (Text::draw(shape, &mut rng), format!("sum_listed: {shape:?}"));
        let (n, k) = (text.n, text.k);
        let nodes = rng.positives(text.n_tokens() * k);
        let got = twice(&what, || {
            let (numbers, nodes) = (text.put(&device), put(&device, &nodes));
            let [mut all, mut first, mut left] = [(); 3].map(|()| holes(&device, n));
            let out = (&mut all.array, &mut first.array, &mut left.array);
            device.sum_listed(out, &nodes.array, &numbers.state_tokens(), k).done(&what);
            let got = |out| get(&device, &what, out);
            (got(&all), got(&first), got(&left))
        });
        let mut expected = [(); 3].map(|()| vec![Sum::default(); n]);
        for (at, &node) in nodes.iter().enumerate() {
            let Some(state) = text.state(at / k, at % k) else { continue };
            let counts = [true, text.is_first(at / k), !text.is_last(at / k)];
            for (sums, _) in expected.iter_mut().zip(counts).filter(|(_, counts)| *counts) {
                sums[state] += f64::from(node);
            }
        }
        for (got, expected) in [got.0, got.1, got.2].iter().zip(&expected) {
            assert_near(&what, got, expected, ROUNDED);
        }
    }
}

#[test]
fn derivatives_of_transitions_between_lists_agree_with_the_cpu() {
    let Some(device) = device(&["listed_transition_gradient"]) else { return };
    let mut rng = Rng::new(94);
    for &shape in SHAPES {
        let (text, what) = (Text::draw(shape, &mut rng), format!("derivatives: {shape:?}"));
        let (n, k, n_values) = (text.n, text.k, text.n_tokens() * text.k);
        let (logits, log_sums) = logits(n, &mut rng);
        let (left, blocks) = (rng.positives(n), rng.positives(text.from.len() * k * k));
        let (alpha, weighted) = (rng.positives(n_values), rng.positives(n_values));
        let got = twice(&what, || {
            let (numbers, mut out) = (text.put(&device), put(&device, &logits));
            let [log_sums, left, blocks, alpha, weighted] =
                [&log_sums, &left, &blocks, &alpha, &weighted].map(|values| put(&device, values));
            let (sequences, listed, visits) =
                (numbers.sequences(), numbers.listed(), numbers.state_tokens());
            device
                .listed_transition_gradient(
                    (&mut out.array, &log_sums.array),
                    (&left.array, &blocks.array),
                    (&alpha.array, &weighted.array),
                    &sequences,
                    &listed,
                    &visits,
                )
                .done(&what);
            get(&device, &what, &out)
        });
        let mut expected = vec![Sum::default(); n * n];
        for (at, sum) in expected.iter_mut().enumerate() {
            let a = (f64::from(logits[at]) - f64::from(log_sums[at / n])).exp();
            *sum += -f64::from(left[at / n]) * a;
        }
        for t in (0..text.n_tokens()).filter(|&t| !text.is_last(t)) {
            for (i, j) in (0..k * k).map(|at| (at / k, at % k)) {
                let (Some(from), Some(to)) = (text.state(t, i), text.state(t + 1, j)) else {
                    continue;
                };
                let block = (text.block_of_pair[t + 1] as usize * k + i) * k + j;
                let factors = [alpha[t * k + i], weighted[(t + 1) * k + j], blocks[block]];
                expected[from * n + to] += factors.map(f64::from).iter().product::<f64>();
            }
        }
        assert_near(&what, &got, &expected, SINGLE);
    }
}
