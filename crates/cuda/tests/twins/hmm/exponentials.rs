//! Transition probabilities from a product that exponentiates its results.

use super::transition::{Pairs, SMALLEST};
use crate::kit::{
    Done, ROUNDED, Rng, Sum, Tolerance, assert_near, device, get, holes, log_sums, put, sums, twice,
};
use latens_cuda::{BlockShape, Device, PowerBuffers, Shape, bf16, f16};
use std::io::Write;

const DIM: usize = 256;

/// A probability that is rounded to bf16, divided by a sum of fast exponentials.
const ROUNDED_SHARE: Tolerance = Tolerance { of_value: 4e-3, of_terms: 4e-5 };

/// The device, unless its compute capability is not 9.0.
fn with_powers(device: Option<Device>) -> Option<Device> {
    let device = device?;
    if !device.has_powers(128, DIM) {
        let line = "a test of exponentials skipped: the device has no tiles in shared memory\n";
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    }
    Some(device)
}

/// Vectors in half precision.
fn vectors(n: usize, rng: &mut Rng) -> Vec<f16> {
    (0..n * DIM).map(|_| f16::from_f32(0.5 * rng.normal())).collect()
}

/// Minus the powers in bf16, and the sums of rows.
fn minus_powers(
    device: &Device,
    what: &str,
    (from, to): (&[f16], &[f16]),
) -> (Vec<bf16>, Vec<f32>) {
    let (n_from, n) = (from.len() / DIM, to.len() / DIM);
    let (from, to) = (put(device, from), put(device, to));
    let (mut powers, mut sums) = (holes(device, n_from * n), holes(device, n_from));
    let mut buffers = PowerBuffers::new(device).done(what);
    let out = (&mut powers.array, &mut sums.array);
    let factors = (&from.array, &to.array);
    device.minus_powers(out, factors, &mut buffers, Shape { rows: n_from, columns: n }).done(what);
    (get(device, what, &powers), get(device, what, &sums))
}

/// A row of logits in double precision.
fn logits(from: &[f16], to: &[f16], i: usize) -> Vec<f64> {
    let widen = |x: &f16| f64::from(*x);
    let row: Vec<f64> = from[i * DIM..(i + 1) * DIM].iter().map(widen).collect();
    let product = |to: &[f16]| row.iter().zip(to).map(|(x, y)| x * widen(y)).sum();
    to.chunks(DIM).map(product).collect()
}

#[test]
fn powers_agree_with_the_cpu() {
    let some = device(&["tile_columns", "minus_powers", "add_parts"]);
    let Some(device) = with_powers(some) else { return };
    let mut rng = Rng::new(44);
    // One row, less and more than the rows of a thread block, and several thread blocks per row.
    for (n_from, n) in [
        (1, 128),
        (64, 128),
        (191, 256),
        (192, 384),
        (193, 384),
        (320, 1_024),
        (1_000, 4_096),
        (2_000, 8_192),
        (8, 16_384),
    ] {
        let what = format!("minus_powers: {n_from} rows of {n}");
        let (from, to) = (vectors(n_from, &mut rng), vectors(n, &mut rng));
        let (powers, sums) = twice(&what, || minus_powers(&device, &what, (&from, &to)));
        for i in (0..n_from).step_by((n_from * n).div_ceil(1 << 17)).chain([n_from - 1]) {
            let logits = logits(&from, &to, i);
            let log_sum = log_sums(&logits, n)[0].value;
            let expected: Vec<Sum> =
                logits.iter().map(|x| Sum::from(-(x - log_sum).exp())).collect();
            let shares =
                powers[i * n..(i + 1) * n].iter().map(|&x| f64::from(x) / f64::from(sums[i]));
            let shares: Vec<f64> = shares.collect();
            assert_near(&format!("{what}, row {i}"), &shares, &expected, ROUNDED_SHARE);
        }
    }
}

/// The exponents of a row begin at the maximum of a sample: every third logit here.
#[test]
fn powers_of_logits_far_from_the_sample_are_finite() {
    const OUTLIER: usize = 301;
    let some = device(&["tile_columns", "minus_powers", "add_parts"]);
    let Some(device) = with_powers(some) else { return };
    let n = 384;
    let from = |x: f32| {
        let mut from = vec![f16::ZERO; DIM];
        from[0] = f16::from_f32(x);
        from
    };
    let mut to = vec![f16::ZERO; n * DIM];
    to[OUTLIER * DIM] = f16::ONE;
    for (logit, expected) in [(-50.0, 0.0), (90.0, 1.0), (-300.0, 0.0), (300.0, 1.0)] {
        let what = format!("minus_powers: a logit of {logit}");
        let (powers, sums) = minus_powers(&device, &what, (&from(logit), &to));
        let share = |j: usize| -f64::from(powers[j]) / f64::from(sums[0]);
        assert!((share(OUTLIER) - expected).abs() < 4e-3, "{what}: {}", share(OUTLIER));
        let rest = (1.0 - expected) / (n - 1) as f64;
        assert!((share(0) - rest).abs() < 4e-3 * rest + 1e-30, "{what}: {}", share(0));
        assert!(powers.iter().all(|x| x.is_finite()) && sums[0].is_finite(), "{what}");
    }
    let (powers, sums) = minus_powers(&device, "minus_powers: NaN", (&from(f32::NAN), &to));
    assert!(powers[0].is_nan() && sums[0].is_nan(), "a lost number must show");
}

#[test]
fn blocks_gathered_from_powers_agree_with_the_cpu() {
    let Some(device) = device(&["gather_powers"]) else { return };
    let mut rng = Rng::new(45);
    for (k, m, n_from, n_blocks) in
        [(1, 2, 2, 3), (8, 7, 40, 20), (24, 11, 264, 30), (515, 2, 515, 2)]
    {
        let (n, what) = (k * m, format!("gather_powers: {n_blocks} blocks of {k}, {m} clusters"));
        let mut pairs = Pairs::draw(n_blocks, 0, m, &mut rng);
        pairs.from.iter_mut().for_each(|from| *from %= (n_from / k) as u32);
        let mut powers: Vec<bf16> =
            rng.positives(n_from * n).iter().map(|&x| bf16::from_f32(-x)).collect();
        powers[0] = bf16::ZERO;
        let row_sums = rng.positives(n_from);
        let got = twice(&what, || {
            let (powers, row_sums) = (put(&device, &powers), put(&device, &row_sums));
            let (ints, mut out) = (pairs.put(&device), holes(&device, n_blocks * k * k));
            let (of, blocks) = ((&powers.array, &row_sums.array), pairs.blocks(&ints));
            device
                .gather_powers(&mut out.array, of, &blocks, n_from, BlockShape { k, n })
                .done(&what);
            get(&device, &what, &out)
        });
        let share = |(i, j): (usize, usize)| -f64::from(powers[i * n + j]) / f64::from(row_sums[i]);
        let expected: Vec<Sum> =
            pairs.places(k).map(|place| Sum::from(share(place).max(SMALLEST))).collect();
        assert_near(&what, &got, &expected, ROUNDED);
    }
}

#[test]
fn factors_of_rows_agree_with_the_cpu() {
    let Some(device) = device(&["row_factors"]) else { return };
    let mut rng = Rng::new(46);
    for n in [1, 255, 256, 257, 5_000] {
        let what = format!("row_factors: {n} rows");
        let (left, row_sums) = (rng.positives(n), rng.positives(n));
        let got = twice(&what, || {
            let (left, row_sums) = (put(&device, &left), put(&device, &row_sums));
            let mut out = holes(&device, n);
            let of = (&left.array, &row_sums.array);
            device.row_factors(&mut out.array, of, n).done(&what);
            get(&device, &what, &out)
        });
        let quotients: Vec<f64> =
            left.iter().zip(&row_sums).map(|(&a, &b)| f64::from(a) / f64::from(b)).collect();
        assert_near(&what, &got, &sums(&quotients), ROUNDED);
    }
}
