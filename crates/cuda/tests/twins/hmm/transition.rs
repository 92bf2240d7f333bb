//! Transition probabilities, in single precision.

use crate::kit::{
    Done, Framed, Rng, SINGLE, Sum, Tolerance, assert_near, device, framed, get, holes, log_sums,
    put, sums, twice,
};
use latens_cuda::{BlockShape, Blocks, Device, Shape};

/// Lower bound of transition probabilities, as in the kernels.
pub(crate) const SMALLEST: f64 = 1e-30f32 as f64;

/// Tolerance of logarithms of sums. Leaving out one of a thousand terms exceeds it.
pub(crate) const LOGARITHM: Tolerance = Tolerance { of_value: 0.0, of_terms: 3e-6 };

/// Pairs of clusters.
#[derive(Debug)]
pub(crate) struct Pairs {
    pub(crate) from: Vec<u32>,
    pub(crate) to: Vec<u32>,
}

impl Pairs {
    /// n distinct pairs of clusters whose first cluster is at least `first`. One of them is the last pair.
    pub(crate) fn draw(n: usize, first: usize, m: usize, rng: &mut Rng) -> Pairs {
        let n_all = (m - first) * m;
        let mut idxs = rng.shuffled(n_all);
        let last = idxs.iter().position(|&idx| idx as usize == n_all - 1).unwrap();
        idxs.swap(0, last);
        idxs.truncate(n);
        let from = idxs.iter().map(|idx| first as u32 + idx / m as u32).collect();
        Pairs { from, to: idxs.iter().map(|idx| idx % m as u32).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.from.len()
    }

    pub(crate) fn put(&self, device: &Device) -> Framed<u32> {
        framed(device, &[&self.from[..], &self.to].concat())
    }

    /// The blocks whose clusters [`Pairs::put`] has uploaded.
    pub(crate) fn blocks<'a>(&self, ints: &'a Framed<u32>) -> Blocks<'a> {
        let (start, n) = (ints.range.start, self.len());
        Blocks { ints: &ints.array, from: start..start + n, to: start + n..start + 2 * n }
    }

    /// The number of the block of each pair, or `u32::MAX`.
    pub(crate) fn block_of(&self, m: usize) -> Vec<u32> {
        let mut block_of = vec![u32::MAX; m * m];
        for (u, (&from, &to)) in (0..).zip(self.from.iter().zip(&self.to)) {
            block_of[from as usize * m + to as usize] = u;
        }
        block_of
    }

    /// The pairs of states of all blocks, in order.
    pub(crate) fn places(&self, k: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..self.len() * k * k).map(move |at| {
            let (u, i, j) = (at / (k * k), at / k % k, at % k);
            (self.from[u] as usize * k + i, self.to[u] as usize * k + j)
        })
    }
}

#[test]
fn log_sums_of_rows_agree_with_the_cpu() {
    let Some(device) = device(&["row_log_sums"]) else { return };
    let mut rng = Rng::new(30);
    for n in [1, 3, 4, 5, 32, 100, 511, 512, 513, 2_047, 2_048, 2_052, 4_099, 20_000] {
        for n_rows in [1, 7] {
            let what = format!("row_log_sums: {n_rows} rows of {n}");
            let mut logits = rng.logits(n_rows, n);
            // The exponentials of the first row overflow.
            logits[..n].iter_mut().for_each(|x| *x += 300.0);
            let before = rng.normals(n_rows + 5);
            let got = twice(&what, || {
                let (logits, mut out) = (put(&device, &logits), put(&device, &before));
                let shape = Shape { rows: n_rows, columns: n };
                device.row_log_sums((&mut out.array, 2), &logits.array, shape).done(&what);
                get(&device, &what, &out)
            });
            let logits: Vec<f64> = logits.iter().map(|&x| x.into()).collect();
            let mut expected = sums(&before);
            expected[2..2 + n_rows].copy_from_slice(&log_sums(&logits, n));
            assert_near(&what, &got, &expected, LOGARITHM);
        }
    }
}

/// Number of states per cluster, number of clusters, first cluster, and number of blocks.
pub(crate) const BLOCKS: &[(usize, usize, usize, usize)] = &[
    (1, 1, 0, 1),
    (3, 5, 0, 7),
    (8, 4, 1, 12),
    (33, 4, 2, 5),
    (40, 9, 0, 81),
    (40, 9, 1, 64),
    (520, 2, 1, 2),
    (8, 3, 0, 0),
];

/// Logits of which a tenth have probabilities near 0.
pub(crate) fn steep_logits(n_rows: usize, n: usize, rng: &mut Rng) -> Vec<f32> {
    let mut logits = rng.logits(n_rows, n);
    for _ in 0..n_rows * n / 10 {
        logits[rng.below(n_rows * n)] = -90.0;
    }
    logits
}

/// The transition probabilities of blocks with their lower bound. `first_row` is the state of the first row of logits.
pub(crate) fn probabilities(
    pairs: &Pairs,
    (logits, first_row): (&[f64], usize),
    log_sums: &[f32],
    (k, n): (usize, usize),
) -> Vec<Sum> {
    let probability = |(i, j): (usize, usize)| {
        let logit = logits[(i - first_row) * n + j];
        (logit - f64::from(log_sums[i])).exp().max(SMALLEST).into()
    };
    pairs.places(k).map(probability).collect()
}

#[test]
fn gathered_blocks_agree_with_the_cpu() {
    let Some(device) = device(&["gather_blocks"]) else { return };
    let mut rng = Rng::new(31);
    for &(k, m, first, n_blocks) in BLOCKS {
        let (n, at) = (k * m, 2);
        let what = format!("gather_blocks: {n_blocks} of {k} states, {m} clusters from {first} on");
        let pairs = Pairs::draw(n_blocks, first, m, &mut rng);
        let logits = steep_logits(n - first * k, n, &mut rng);
        let log_sums: Vec<f32> = rng.normals(n).iter().map(|x| 9.0 + x).collect();
        let before = rng.normals((at + n_blocks) * k * k);
        let got = twice(&what, || {
            let (logits, log_sums) = (put(&device, &logits), put(&device, &log_sums));
            let (ints, mut out) = (pairs.put(&device), put(&device, &before));
            let (out_at, rows) = ((&mut out.array, at), (&logits.array, first * k));
            let blocks = pairs.blocks(&ints);
            device
                .gather_blocks(out_at, rows, &log_sums.array, &blocks, BlockShape { k, n })
                .done(&what);
            get(&device, &what, &out)
        });
        let mut expected = sums(&before[..at * k * k]);
        let logits: Vec<f64> = logits.iter().map(|&x| x.into()).collect();
        expected.extend(probabilities(&pairs, (&logits, first * k), &log_sums, (k, n)));
        assert_near(&what, &got, &expected, SINGLE);
    }
}

#[test]
fn derivatives_by_logits_of_transitions_agree_with_the_cpu() {
    let Some(device) = device(&["transition_gradient"]) else { return };
    let mut rng = Rng::new(32);
    for (k, m, n_blocks) in [(1, 1, 1), (1, 9, 20), (3, 5, 7), (8, 4, 16), (7, 11, 50), (40, 15, 3)]
    {
        // The last third of the clusters has no transitions.
        let (n, n_rows) = (k * m, k * (m - m / 3));
        let what =
            format!("transition_gradient: {n_blocks} blocks of {k} of {n} states, {n_rows} rows");
        let pairs = Pairs::draw(n_blocks, 0, m, &mut rng);
        let logits = steep_logits(n, n, &mut rng);
        let log_sums: Vec<f32> = rng.normals(n).iter().map(|x| 9.0 + x).collect();
        let (left, ratios) = (rng.positives(n), rng.positives(n_blocks * k * k));
        let block_of = pairs.block_of(m);
        let got = twice(&what, || {
            let (mut logits, log_sums) = (put(&device, &logits), put(&device, &log_sums));
            let (left, ratios) = (put(&device, &left), put(&device, &ratios));
            let block_of = framed(&device, &block_of);
            let inout = (&mut logits.array, &log_sums.array);
            let ratios = (&ratios.array, block_of.part());
            device
                .transition_gradient(inout, &left.array, ratios, n_rows, BlockShape { k, n })
                .done(&what);
            get(&device, &what, &logits)
        });
        let derivative = |at: usize| {
            let (i, j) = (at / n, at % n);
            if i >= n_rows {
                return logits[at].into();
            }
            let a = (f64::from(logits[at]) - f64::from(log_sums[i])).exp();
            let ratio = match block_of[i / k * m + j / k] {
                u32::MAX => 0.0,
                u => ratios[(u as usize * k + i % k) * k + j % k],
            };
            Sum::of([a.max(SMALLEST) * f64::from(ratio), -a * f64::from(left[i])])
        };
        let expected: Vec<Sum> = (0..n * n).map(derivative).collect();
        assert_near(&what, &got, &expected, SINGLE);
    }
}

#[test]
fn softmax_and_its_gradient_agree_with_the_cpu() {
    let Some(device) = device(&["softmax", "softmax_gradient"]) else { return };
    let mut rng = Rng::new(33);
    for n in [1, 2, 31, 33, 1_023, 1_024, 1_025, 5_000] {
        let what = format!("softmax: {n} numbers");
        let values: Vec<f32> = rng.logits(1, n).iter().map(|x| 200.0 + x).collect();
        let got = twice(&what, || {
            let mut values = put(&device, &values);
            device.softmax(&mut values.array, n).done(&what);
            get(&device, &what, &values)
        });
        let values: Vec<f64> = values.iter().map(|&x| x.into()).collect();
        let log_sum = log_sums(&values, n)[0].value;
        let expected: Vec<Sum> = values.iter().map(|x| (x - log_sum).exp().into()).collect();
        assert_near(&what, &got, &expected, SINGLE);
        let what = format!("softmax_gradient: {n} numbers");
        let (shares, counts) = (rng.distributions(1, n), rng.positives(n));
        let got = twice(&what, || {
            let (mut shares, counts) = (put(&device, &shares), put(&device, &counts));
            device.softmax_gradient(&mut shares.array, &counts.array, n).done(&what);
            get(&device, &what, &shares)
        });
        let sum: f64 = counts.iter().map(|&x| f64::from(x)).sum();
        let expected = |i: usize| Sum::of([f64::from(counts[i]), -sum * f64::from(shares[i])]);
        assert_near(&what, &got, &(0..n).map(expected).collect::<Vec<_>>(), SINGLE);
    }
    let mut nothing = holes::<f32>(&device, 0);
    device.softmax(&mut nothing.array, 0).done("softmax of 0 numbers");
    get(&device, "softmax of 0 numbers", &nothing);
}
