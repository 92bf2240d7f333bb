//! Sums over groups of tokens: ratios of blocks, differences and visits.

use super::transition::Pairs;
use crate::kit::{
    BF16, Done, Framed, Rng, SINGLE, Sum, assert_near, device, framed, get, holes, put, sums, twice,
};
use latens_cuda::{BlockShape, Device, Groups, bf16};

/// Groups of tokens.
#[derive(Debug)]
struct Members {
    rows: Vec<u32>,
    begins: Vec<u32>,
    tokens: Vec<u32>,
    n_tokens: usize,
}

impl Members {
    /// Groups of up to `most` tokens from `first` on, some of them empty. Their rows are in random order, with gaps.
    fn draw(n: usize, most: usize, (first, n_tokens): (usize, usize), rng: &mut Rng) -> Members {
        let (mut begins, mut tokens) = (vec![0], vec![]);
        for g in 0..n {
            let size = if g % 5 == 3 { 0 } else { 1 + rng.below(most) };
            tokens.extend((0..size).map(|_| (first + rng.below(n_tokens - first)) as u32));
            begins.push(tokens.len() as u32);
        }
        let rows = rng.shuffled(n + 2)[..n].to_vec();
        Members { rows, begins, tokens, n_tokens }
    }

    fn of(&self, group: usize) -> impl Iterator<Item = usize> {
        let (begin, end) = (self.begins[group] as usize, self.begins[group + 1] as usize);
        self.tokens[begin..end].iter().map(|&t| t as usize)
    }

    fn put(&self, device: &Device) -> Framed<u32> {
        framed(device, &[&self.rows[..], &self.begins, &self.tokens].concat())
    }

    /// The groups that [`Members::put`] has uploaded.
    fn groups<'a>(&self, ints: &'a Framed<u32>) -> Groups<'a> {
        let rows = ints.range.start..ints.range.start + self.rows.len();
        let begins = rows.end..rows.end + self.begins.len();
        let tokens = begins.end..begins.end + self.tokens.len();
        Groups { ints: &ints.array, rows, begins, tokens, n_tokens: self.n_tokens }
    }

    /// Σ α_{t−1}(i) v_t(j) over the tokens of a group.
    fn ratio(&self, alpha: &[f32], weighted: &[f32], k: usize, at: usize) -> Sum {
        let (u, i, j) = (at / (k * k), at / k % k, at % k);
        let term = |t: usize| f64::from(alpha[(t - 1) * k + i]) * f64::from(weighted[t * k + j]);
        Sum::of(self.of(u).map(term))
    }
}

/// Number of groups, and states per token.
const SHAPES: &[(usize, usize)] =
    &[(0, 4), (1, 1), (2, 5), (7, 16), (5, 17), (30, 33), (4, 64), (3, 100), (2, 515)];

#[test]
fn ratios_agree_with_the_cpu() {
    let Some(device) = device(&["collect_ratios"]) else { return };
    let mut rng = Rng::new(70);
    for &(n, k) in SHAPES {
        let (what, n_tokens) = (format!("collect_ratios: {n} groups, {k} states"), 23);
        let (alpha, weighted) = (rng.positives(n_tokens * k), rng.positives(n_tokens * k));
        let members = Members::draw(n, 9, (1, n_tokens), &mut rng);
        let got = twice(&what, || {
            let (alpha, weighted) = (put(&device, &alpha), put(&device, &weighted));
            let (ints, mut ratios) = (members.put(&device), holes(&device, n * k * k));
            let inputs = (&alpha.array, &weighted.array);
            let groups = members.groups(&ints);
            device.collect_ratios(&mut ratios.array, inputs, &groups, k).done(&what);
            get(&device, &what, &ratios)
        });
        let ratio = |at| members.ratio(&alpha, &weighted, k, at);
        let expected: Vec<Sum> = (0..n * k * k).map(ratio).collect();
        assert_near(&what, &got, &expected, SINGLE);
    }
}

#[test]
fn differences_agree_with_the_cpu() {
    let Some(device) = device(&["collect_differences"]) else { return };
    let mut rng = Rng::new(71);
    for (n_blocks, k, m) in
        [(0, 4, 2), (1, 1, 1), (2, 5, 3), (7, 16, 4), (25, 17, 5), (4, 64, 3), (2, 515, 2)]
    {
        let (n, n_tokens) = (k * m, 23);
        let what = format!("collect_differences: {n_blocks} blocks of {k} of {n} states");
        let pairs = Pairs::draw(n_blocks, 0, m, &mut rng);
        let members = Members::draw(n_blocks, 9, (1, n_tokens), &mut rng);
        let (alpha, weighted) = (rng.positives(n_tokens * k), rng.positives(n_tokens * k));
        let (blocks, mut left) = (rng.positives(n_blocks * k * k), rng.positives(n));
        // No transitions leave these states.
        left.iter_mut().step_by(7).for_each(|left| *left = 0.0);
        let row_sums = rng.positives(n);
        let before: Vec<bf16> = rng.normals(n * n).into_iter().map(bf16::from_f32).collect();
        let got = twice(&what, || {
            let (alpha, weighted) = (put(&device, &alpha), put(&device, &weighted));
            let (blocks, left) = (put(&device, &blocks), put(&device, &left));
            let (of_pairs, of_members) = (pairs.put(&device), members.put(&device));
            let (mut out, row_sums) = (put(&device, &before), put(&device, &row_sums));
            let used = (&blocks.array, &left.array, &row_sums.array);
            let inputs = (&alpha.array, &weighted.array);
            let places = (&pairs.blocks(&of_pairs), &members.groups(&of_members));
            device
                .collect_differences(&mut out.array, used, inputs, places, BlockShape { k, n })
                .done(&what);
            get(&device, &what, &out)
        });
        let mut expected = sums(&before);
        for (at, (i, j)) in pairs.places(k).enumerate() {
            let share = if left[i] > 0.0 { 1.0 / f64::from(left[i]) } else { 0.0 };
            let a = f64::from(blocks[at]);
            let mut difference = members.ratio(&alpha, &weighted, k, at).times(a * share);
            difference += -a;
            expected[i * n + j] = difference.times(f64::from(row_sums[i]));
        }
        assert_near(&what, &got, &expected, BF16);
    }
}

#[test]
fn sums_of_groups_agree_with_the_cpu() {
    let Some(device) = device(&["sum_groups"]) else { return };
    let mut rng = Rng::new(72);
    for &(n, k) in SHAPES {
        let (what, n_tokens) = (format!("sum_groups: {n} groups, {k} states"), 40);
        let (nodes, before) = (rng.positives(n_tokens * k), rng.normals((n + 2) * k));
        let members = Members::draw(n, 35, (0, n_tokens), &mut rng);
        let got = twice(&what, || {
            let (nodes, ints) = (put(&device, &nodes), members.put(&device));
            let mut out = put(&device, &before);
            let groups = members.groups(&ints);
            device.sum_groups(&mut out.array, &nodes.array, &groups, k).done(&what);
            get(&device, &what, &out)
        });
        let mut expected = sums(&before);
        for (g, j) in (0..n * k).map(|at| (at / k, at % k)) {
            let terms = members.of(g).map(|t| f64::from(nodes[t * k + j]));
            expected[members.rows[g] as usize * k + j] = Sum::of(terms);
        }
        assert_near(&what, &got, &expected, SINGLE);
    }
}
