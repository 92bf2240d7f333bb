//! Transition probabilities from logits in half precision.

use super::transition::{BLOCKS, LOGARITHM, Pairs, SMALLEST, probabilities, steep_logits};
use crate::kit::{
    BF16, Done, Rng, Sum, Tolerance, assert_near, device, framed, get, holes, log_sums, put, sums,
    twice,
};
use latens_cuda::{BlockShape, Device, Shape, bf16, f16};

/// Fast exponentials have a relative error of about 10⁻⁷ times the exponent, which is up to 70 here.
const FAST: Tolerance = Tolerance { of_value: 0.0, of_terms: 2e-5 };

fn narrow(values: &[f32]) -> Vec<f16> {
    values.iter().map(|&x| f16::from_f32(x)).collect()
}

fn widen(values: &[f16]) -> Vec<f64> {
    values.iter().map(|&x| x.into()).collect()
}

#[test]
fn log_sums_of_rows_in_half_precision_agree_with_the_cpu() {
    let Some(device) = device(&["row_log_sums_half"]) else { return };
    let mut rng = Rng::new(40);
    for n in [8, 16, 24, 512, 4_088, 4_096, 4_104, 16_384, 16_392, 33_000] {
        for n_rows in [1, 7] {
            let what = format!("row_log_sums_half: {n_rows} rows of {n}");
            let logits = narrow(&rng.logits(n_rows, n));
            let before = rng.normals(n_rows + 5);
            let got = twice(&what, || {
                let (logits, mut out) = (put(&device, &logits), put(&device, &before));
                let (out_at, shape) = ((&mut out.array, 2), Shape { rows: n_rows, columns: n });
                device.row_log_sums_half(out_at, &logits.array, shape).done(&what);
                get(&device, &what, &out)
            });
            let mut expected = sums(&before);
            let exact = log_sums(&widen(&logits), n);
            expected[2..2 + n_rows].copy_from_slice(&exact);
            assert_near(&what, &got, &expected, LOGARITHM);
        }
    }
}

#[test]
fn blocks_gathered_from_half_precision_agree_with_the_cpu() {
    let Some(device) = device(&["gather_blocks_half"]) else { return };
    let mut rng = Rng::new(41);
    for &(k, m, first, n_blocks) in BLOCKS {
        let (n, at) = (k * m, 2);
        let what =
            format!("gather_blocks_half: {n_blocks} of {k} states, {m} clusters from {first} on");
        let pairs = Pairs::draw(n_blocks, first, m, &mut rng);
        let logits = narrow(&steep_logits(n - first * k, n, &mut rng));
        let log_sums: Vec<f32> = rng.normals(n).iter().map(|x| 9.0 + x).collect();
        let before = rng.normals((at + n_blocks) * k * k);
        let got = twice(&what, || {
            let (logits, log_sums) = (put(&device, &logits), put(&device, &log_sums));
            let (ints, mut out) = (pairs.put(&device), put(&device, &before));
            let (out_at, rows) = ((&mut out.array, at), (&logits.array, first * k));
            let blocks = pairs.blocks(&ints);
            device
                .gather_blocks_half(out_at, rows, &log_sums.array, &blocks, BlockShape { k, n })
                .done(&what);
            get(&device, &what, &out)
        });
        let mut expected = sums(&before[..at * k * k]);
        let logits = widen(&logits);
        expected.extend(probabilities(&pairs, (&logits, first * k), &log_sums, (k, n)));
        assert_near(&what, &got, &expected, FAST);
    }
}

/// Minus the probabilities in bf16, and those of blocks in single precision.
fn minus_probabilities(
    device: &Device,
    what: &str,
    logits: &[f16],
    pairs: &Pairs,
    (n_rows, k, n): (usize, usize, usize),
) -> (Vec<bf16>, Vec<f32>) {
    let (mut logits, n_blocks) = (put(device, logits), pairs.len());
    let mut blocks = holes(device, n_blocks * k * k);
    let block_of = framed(device, &pairs.block_of(n / k));
    let (mut sums, out) = (holes::<f32>(device, n_rows), (&mut blocks.array, n_blocks));
    let (shape, block_of) = (BlockShape { k, n }, block_of.part());
    let rows = (&mut logits.array, &mut sums.array);
    device.minus_probabilities_half(rows, out, block_of, n_rows, shape).done(what);
    assert_eq!(get(device, what, &sums), vec![1.0; n_rows], "{what}");
    let minus = get(device, what, &logits);
    let minus = minus.iter().map(|x| bf16::from_bits(x.to_bits())).collect();
    (minus, get(device, what, &blocks))
}

/// Compares the rows of these states.
fn compare(
    what: &str,
    (logits, minus, blocks): (&[f16], &[bf16], &[f32]),
    pairs: &Pairs,
    (k, n): (usize, usize),
    states: &[usize],
) {
    for &i in states {
        let logits = widen(&logits[i * n..(i + 1) * n]);
        let log_sum = log_sums(&logits, n)[0].value;
        let a: Vec<f64> = logits.iter().map(|x| (x - log_sum).exp()).collect();
        let minus = &minus[i * n..(i + 1) * n];
        let expected: Vec<Sum> = a.iter().map(|a| Sum::from(-a)).collect();
        assert_near(&format!("{what}, row {i}"), minus, &expected, BF16);
        for u in (0..pairs.len()).filter(|&u| pairs.from[u] as usize == i / k) {
            let (first, at) = (pairs.to[u] as usize * k, (u * k + i % k) * k);
            let a = &a[first..first + k];
            let expected: Vec<Sum> = a.iter().map(|a| Sum::from(a.max(SMALLEST))).collect();
            let row = format!("{what}, block {u}, row {i}");
            assert_near(&row, &blocks[at..at + k], &expected, FAST);
        }
    }
}

#[test]
fn probabilities_from_half_precision_agree_with_the_cpu() {
    let Some(device) = device(&["minus_probabilities_half"]) else { return };
    let mut rng = Rng::new(42);
    for (k, m, n_blocks) in
        [(8, 1, 1), (8, 1, 0), (8, 7, 20), (16, 3, 9), (24, 11, 30), (72, 5, 4), (1_032, 4, 2)]
    {
        let n = k * m;
        let pairs = Pairs::draw(n_blocks, 0, m, &mut rng);
        let logits = narrow(&steep_logits(n, n, &mut rng));
        // With all rows, and without those of the last third of the clusters.
        for n_rows in [n, k * (m - m / 3)] {
            let what = format!(
                "minus_probabilities_half: {n_blocks} blocks of {k} of {n} states, {n_rows} rows"
            );
            let (minus, blocks) = twice(&what, || {
                minus_probabilities(&device, &what, &logits, &pairs, (n_rows, k, n))
            });
            let some: Vec<usize> =
                (0..n_rows).step_by(n.div_ceil(300)).chain([n_rows - 1]).collect();
            compare(&what, (&logits, &minus, &blocks), &pairs, (k, n), &some);
            let states = pairs.from.iter().map(|&from| from as usize * k);
            let states: Vec<usize> = states.filter(|&state| state < n_rows).collect();
            compare(&what, (&logits, &minus, &blocks), &pairs, (k, n), &states);
            let rest = minus[n_rows * n..].iter().zip(&logits[n_rows * n..]);
            assert!(
                rest.into_iter().all(|(a, b)| a.to_bits() == b.to_bits()),
                "{what}: changed other rows"
            );
        }
    }
}

/// Threads keep rows of up to 16,384 numbers in registers, and read longer ones twice.
#[test]
fn probabilities_of_long_rows_agree_with_the_cpu() {
    let Some(device) = device(&["minus_probabilities_half"]) else { return };
    let mut rng = Rng::new(43);
    for (k, m) in [(64, 256), (8, 2_049)] {
        let (n, n_blocks) = (k * m, 2);
        let what = format!("minus_probabilities_half: {n_blocks} blocks of {k} of {n} states");
        let pairs = Pairs::draw(n_blocks, 0, m, &mut rng);
        // Rows are windows of one random sequence, which is faster than drawing them all.
        let line = narrow(&rng.logits(40, 1_000));
        let long = line.repeat(2);
        let mut logits = Vec::with_capacity(n * n);
        (0..n).for_each(|i| logits.extend_from_slice(&long[i * 7 % line.len()..][..n]));
        let (minus, blocks) = minus_probabilities(&device, &what, &logits, &pairs, (n, k, n));
        let first = |u: usize| pairs.from[u] as usize * k;
        let states = [0, 1, n / 2, n - 1, first(0), first(0) + k - 1, first(1), first(1) + k / 2];
        compare(&what, (&logits, &minus, &blocks), &pairs, (k, n), &states);
    }
}
