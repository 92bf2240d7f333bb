//! Expected counts of a whole text, and their normalization.

use super::emission::{limits, ranges};
use super::transition::{Pairs, SMALLEST};
use crate::kit::{
    DOUBLE, Done, EXACT, ROUNDED, Rng, Sum, WIDE, assert_near, device, framed, get, holes, put,
    sums, twice,
};
use latens_cuda::{BlockShape, Emissions, Shape};

/// Number of states per cluster, of clusters, and of blocks.
const BLOCKS: &[(usize, usize, usize)] =
    &[(1, 1, 1), (4, 3, 0), (5, 3, 7), (8, 4, 16), (33, 9, 70), (40, 8, 64), (520, 2, 3)];

/// Transition probabilities, some of which are 0.
fn transitions(n: usize, rng: &mut Rng) -> Vec<f32> {
    let mut transitions = rng.distributions(n, n);
    transitions.iter_mut().step_by(7).for_each(|a| *a = 0.0);
    transitions
}

#[test]
fn copied_blocks_agree_with_the_cpu() {
    let Some(device) = device(&["copy_blocks"]) else { return };
    let mut rng = Rng::new(100);
    for &(k, m, n_blocks) in BLOCKS {
        let n = k * m;
        let what = format!("copy_blocks: {n_blocks} of {k} of {n} states");
        let pairs = Pairs::draw(n_blocks, 0, m, &mut rng);
        let transition = transitions(n, &mut rng);
        let got = twice(&what, || {
            let (transition, ints) = (put(&device, &transition), pairs.put(&device));
            let mut out = holes(&device, n_blocks * k * k);
            let blocks = pairs.blocks(&ints);
            device
                .copy_blocks(&mut out.array, &transition.array, &blocks, BlockShape { k, n })
                .done(&what);
            get(&device, &what, &out)
        });
        let copied = |(i, j): (usize, usize)| f64::from(transition[i * n + j]).max(SMALLEST);
        let expected: Vec<Sum> = pairs.places(k).map(|place| copied(place).into()).collect();
        assert_near(&what, &got, &expected, EXACT);
    }
}

#[test]
fn counts_of_transitions_agree_with_the_cpu() {
    let Some(device) = device(&["add_transitions"]) else { return };
    let mut rng = Rng::new(101);
    for &(k, m, n_blocks) in BLOCKS {
        let n = k * m;
        let what = format!("add_transitions: {n_blocks} blocks of {k} of {n} states");
        let pairs = Pairs::draw(n_blocks, 0, m, &mut rng);
        let (transition, ratios) = (transitions(n, &mut rng), rng.positives(n_blocks * k * k));
        let before = doubles(n * n, &mut rng);
        let got = twice(&what, || {
            let (transition, ratios) = (put(&device, &transition), put(&device, &ratios));
            let (mut counts, ints) = (put(&device, &before), pairs.put(&device));
            let (inputs, blocks) = ((&ratios.array, &transition.array), pairs.blocks(&ints));
            device
                .add_transitions(&mut counts.array, inputs, &blocks, BlockShape { k, n })
                .done(&what);
            get(&device, &what, &counts)
        });
        let mut expected = sums(&before);
        for (at, (i, j)) in pairs.places(k).enumerate() {
            let a = f64::from(transition[i * n + j]).max(SMALLEST);
            expected[i * n + j] += f64::from(ratios[at]) * a;
        }
        assert_near(&what, &got, &expected, ROUNDED);
    }
}

#[test]
fn counts_of_emissions_agree_with_the_cpu() {
    let Some(device) = device(&["add_emissions"]) else { return };
    let mut rng = Rng::new(102);
    for (n_slots, k) in [(1, 1), (2, 33), (9, 5), (40, 64), (7, 515), (1_000, 3)] {
        let what = format!("add_emissions: {n_slots} slots, {k} states");
        let (rows, before) = (rng.normals(n_slots * k), doubles(n_slots * k, &mut rng));
        let mut count_of = rng.shuffled(n_slots);
        count_of.iter_mut().skip(1).step_by(3).for_each(|row| *row = u32::MAX);
        let got = twice(&what, || {
            let (mut counts, rows) = (put(&device, &before), put(&device, &rows));
            let count_of = framed(&device, &count_of);
            let out = &mut counts.array;
            device.add_emissions(out, &rows.array, count_of.part(), k).done(&what);
            get(&device, &what, &counts)
        });
        let mut expected = sums(&before);
        for (at, sum) in expected.iter_mut().enumerate() {
            let row = count_of[at / k];
            if row != u32::MAX {
                *sum += f64::from(rows[row as usize * k + at % k]);
            }
        }
        assert_near(&what, &got, &expected, DOUBLE);
    }
}

#[test]
fn values_are_added_to_counts() {
    let Some(device) = device(&["add_values", "add_sum"]) else { return };
    let mut rng = Rng::new(103);
    for n in [0, 1, 511, 512, 513, 5_000, WIDE.0 * WIDE.1] {
        let what = format!("add_values: {n} numbers");
        let (values, before) = (rng.normals(n), doubles(n, &mut rng));
        let got = twice(&what, || {
            let (values, mut counts) = (put(&device, &values), put(&device, &before));
            device.add_values(&mut counts.array, &values.array, n).done(&what);
            get(&device, &what, &counts)
        });
        let mut expected = sums(&before);
        expected.iter_mut().zip(&values).for_each(|(sum, &x)| *sum += f64::from(x));
        assert_near(&what, &got, &expected, DOUBLE);

        let what = format!("add_sum: {n} numbers");
        let total = twice(&what, || {
            let (values, mut total) = (put(&device, &before), put(&device, &[1.5, 2.5]));
            device.add_sum(&mut total.array, &values.array, n).done(&what);
            get(&device, &what, &total)
        });
        let sum = Sum::of(before.iter().copied().chain([1.5]));
        assert_near(&what, &total, &[sum, 2.5.into()], DOUBLE);
    }
}

#[test]
fn rows_of_counts_are_normalized() {
    let Some(device) = device(&["share_rows"]) else { return };
    let mut rng = Rng::new(104);
    for (n_rows, n) in [(1, 1), (3, 5), (7, 511), (2, 512), (4, 513), (33, 32), (5, 3_000)] {
        for prior in [0.0, 0.3] {
            let what = format!("share_rows: {n_rows} rows of {n}, prior {prior}");
            let mut counts: Vec<f64> = (0..n_rows * n).map(|_| rng.uniform()).collect();
            // Without a prior, a row without counts stays as it is.
            counts[(n_rows - 1) * n..].fill(0.0);
            let before = rng.normals(n_rows * n);
            let got = twice(&what, || {
                let (counts, mut out) = (put(&device, &counts), put(&device, &before));
                let (shares, shape) = (&mut out.array, Shape { rows: n_rows, columns: n });
                device.share_rows(shares, &counts.array, prior, shape).done(&what);
                get(&device, &what, &out)
            });
            let mut expected = sums(&before);
            for (r, row) in counts.chunks(n).enumerate() {
                let total: f64 = row.iter().map(|count| count + prior).sum();
                for (j, count) in row.iter().enumerate().filter(|_| total > 0.0) {
                    expected[r * n + j] = ((count + prior) / total).into();
                }
            }
            assert_near(&what, &got, &expected, ROUNDED);
        }
    }
}

#[test]
fn columns_of_counts_are_normalized() {
    let Some(device) = device(&["share_columns"]) else { return };
    let mut rng = Rng::new(105);
    let shapes: [(&[usize], usize); 6] = [
        (&[1], 1),
        (&[3, 0, 5], 7),
        (&[31, 32, 33], 31),
        (&[64, 100], 32),
        (&[5, 200], 33),
        (&[70], 130),
    ];
    for (sizes, k) in shapes {
        for (prior, is_limited) in [(0.0, false), (0.3, false), (0.0, true), (0.3, true)] {
            let what = format!(
                "Emissions::share: {sizes:?} slots, {k} states, prior {prior}, limits: {is_limited}"
            );
            let clusters = ranges(sizes);
            let limits = limits(&clusters, k, &mut rng);
            let n_slots: usize = sizes.iter().sum();
            // Every fifth state has no counts.
            let is_there = |at: usize| if at % k % 5 == 4 { 0.0 } else { 1.0 };
            let counts: Vec<f64> =
                (0..n_slots * k).map(|at| is_there(at) * rng.uniform()).collect();
            let before = rng.normals(n_slots * k);
            let got = twice(&what, || {
                let mut emissions = Emissions::new(&device, &clusters).done(&what);
                if is_limited {
                    emissions.limit(&device, sizes.len() * k, |slot| &limits[slot]).done(&what);
                }
                let (counts, mut out) = (put(&device, &counts), put(&device, &before));
                let shares = &mut out.array;
                emissions.share(&device, shares, &counts.array, prior, k).done(&what);
                get(&device, &what, &out)
            });
            let mut expected = sums(&before);
            for (state, slots) in clusters.iter().flat_map(|c| vec![c; k]).enumerate() {
                let z = state % k;
                let may = |x: usize| !is_limited || limits[x].contains(&(state as u32));
                let with_prior = |x: usize| if may(x) { counts[x * k + z] + prior } else { 0.0 };
                let total: f64 = slots.clone().map(with_prior).sum();
                for x in slots.clone().filter(|_| total > 0.0) {
                    expected[x * k + z] = (with_prior(x) / total).into();
                }
            }
            assert_near(&what, &got, &expected, ROUNDED);
        }
    }
}

/// Counts to add to.
fn doubles(n: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n).map(|_| 10.0 * rng.uniform()).collect()
}
