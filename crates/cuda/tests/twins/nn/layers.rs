//! Rows of numbers: gathering, scattering, summing, biases and the ReLU.

use crate::kit::{
    BF16, Done, EXACT, HALF, Number, ROUNDED, Rng, SINGLE, Sum, Tolerance, WIDE, WIDE_FOURS,
    assert_near, device, framed, get, holes, is_dropped, put, sums, twice,
};
use latens_cuda::{Columns, Derivative, Device, PickedColumns, RowGroups, Shape, bf16, f16};

/// Number of rows, their length, and stride and first column of the matrix that contains them.
const COLUMNS: &[(usize, usize, usize, usize)] = &[
    (0, 3, 3, 0),
    (1, 1, 1, 0),
    (1, 5, 9, 4),
    (7, 5, 5, 0),
    (33, 64, 100, 17),
    (300, 31, 33, 1),
    (WIDE.0, WIDE.1, WIDE.1 + 2, 1),
];

#[test]
fn rows_are_gathered_into_columns() {
    let Some(device) = device(&["gather_rows"]) else { return };
    let mut rng = Rng::new(10);
    for &(n, dim, stride, first) in COLUMNS {
        let what = format!("gather_rows: {n} rows of {dim} to columns from {first} of {stride}");
        let (table, idxs) = (rng.normals(9 * dim), rng.idxs(n, 9));
        let before = rng.normals(n * stride);
        let got = twice(&what, || {
            let (table, idxs) = (framed(&device, &table), framed(&device, &idxs));
            let mut out = put(&device, &before);
            let columns = (&mut out.array, Columns { stride, first });
            device
                .gather_rows(columns, table.part(), idxs.part(), Shape { rows: n, columns: dim })
                .done(&what);
            get(&device, &what, &out)
        });
        let mut expected = sums(&before);
        for (r, c) in places(n, dim) {
            expected[r * stride + first + c] = table[idxs[r] as usize * dim + c].into();
        }
        assert_near(&what, &got, &expected, EXACT);
    }
}

#[test]
fn columns_are_added_to_rows() {
    let Some(device) = device(&["add_to_rows"]) else { return };
    let mut rng = Rng::new(11);
    for &(n, dim, stride, first) in COLUMNS {
        let what = format!("add_to_rows: {n} rows of {dim} of columns from {first} of {stride}");
        let (before, rows) = (rng.normals((n + 4) * dim), rng.normals(n * stride));
        let idxs = rng.shuffled(n + 4)[..n].to_vec();
        let got = twice(&what, || {
            let (mut table, idxs) = (framed(&device, &before), framed(&device, &idxs));
            let rows = put(&device, &rows);
            let columns = (&rows.array, Columns { stride, first });
            let shape = Shape { rows: n, columns: dim };
            device.add_to_rows(table.part_mut(), idxs.part(), columns, shape).done(&what);
            get(&device, &what, &table)
        });
        let mut expected = sums(&before);
        for (r, c) in places(n, dim) {
            expected[idxs[r] as usize * dim + c] += f64::from(rows[r * stride + first + c]);
        }
        assert_near(&what, &got, &expected, ROUNDED);
    }
}

#[test]
fn sums_of_groups_are_added_to_rows() {
    let Some(device) = device(&["add_sums_of_groups"]) else { return };
    let mut rng = Rng::new(12);
    for size in [0, 1, 3, 40] {
        for (n, dim, stride, first) in
            [(1, 1, 1, 0), (5, 7, 7, 0), (9, 64, 100, 17), (3, 513, 600, 80)]
        {
            let what = format!(
                "add_sums_of_groups: {n} groups of {size} rows of {dim} of columns from {first} of {stride}"
            );
            let (before, rows) = (rng.normals((n + 1) * dim), rng.normals(n * size * stride));
            let idxs = rng.shuffled(n + 1)[..n].to_vec();
            let got = twice(&what, || {
                let (mut table, rows) = (framed(&device, &before), put(&device, &rows));
                let columns = (&rows.array, Columns { stride, first });
                let (groups, idxs) = (RowGroups { n, size }, framed(&device, &idxs));
                let out = table.part_mut();
                device.add_sums_of_groups(out, idxs.part(), columns, groups, dim).done(&what);
                get(&device, &what, &table)
            });
            let mut expected = sums(&before);
            for (r, c) in places(n * size, dim) {
                let at = idxs[r / size] as usize * dim + c;
                expected[at] += f64::from(rows[r * stride + first + c]);
            }
            assert_near(&what, &got, &expected, SINGLE);
        }
    }
}

#[test]
fn rows_and_columns_are_gathered_and_added() {
    let Some(device) = device(&["gather_square", "add_to_square"]) else { return };
    let mut rng = Rng::new(17);
    for (n, stride) in [(1usize, 1), (2, 5), (31, 40), (33, 33), (130, 200), (513, 600)] {
        let n_rows = n.div_ceil(2);
        let (table, values) = (rng.normals(stride * stride), rng.normals(n_rows * n));
        let idxs = rng.shuffled(stride)[..n].to_vec();
        let rows = n / 3..n.div_ceil(2);
        let what = format!("gather_square: rows {rows:?} and {n} columns of {stride}");
        let back = format!("add_to_square: {n_rows} rows and {n} columns of {stride}");
        let (square, added) = twice(&what, || {
            let (mut on_device, idxs) = (framed(&device, &table), put(&device, &idxs));
            let (mut out, values) = (holes(&device, rows.len() * n), put(&device, &values));
            let (part, rows) = (on_device.part(), rows.clone());
            device
                .gather_square(&mut out.array, part, &idxs.array, rows, PickedColumns { n, stride })
                .done(&what);
            let (part, columns) = (on_device.part_mut(), PickedColumns { n, stride });
            device.add_to_square(part, &values.array, &idxs.array, n_rows, columns).done(&back);
            (get(&device, &what, &out), get(&device, &back, &on_device))
        });
        let place = |r: usize, c: usize| idxs[r] as usize * stride + idxs[c] as usize;
        let gathered = |at: usize| table[place(rows.start + at / n, at % n)].into();
        let expected: Vec<Sum> = (0..rows.len() * n).map(gathered).collect();
        assert_near(&what, &square, &expected, EXACT);
        let mut expected = sums(&table);
        for (r, c) in places(n_rows, n) {
            expected[place(r, c)] += f64::from(values[r * n + c]);
        }
        assert_near(&back, &added, &expected, ROUNDED);
    }
}

#[test]
fn the_bias_is_added_before_the_relu() {
    let Some(device) = device(&["bias_relu", "bias_relu_half"]) else { return };
    let mut rng = Rng::new(13);
    for (n, dim) in [(0, 3), (1, 1), (7, 5), (33, 64), (100, 257), WIDE] {
        for (rate, seed) in [(0.0, 0), (0.3, 77), (0.75, u64::MAX)] {
            let what = format!("bias_relu: {n} rows of {dim}, dropout {rate}");
            // The same numbers in both formats.
            let halves: Vec<f16> = rng.normals(n * dim).iter().map(|&x| f16::from_f32(x)).collect();
            let x: Vec<f32> = halves.iter().map(|x| x.to_f32()).collect();
            let bias = rng.normals(dim);
            let got = twice(&what, || {
                let (mut x, bias) = (put(&device, &x), framed(&device, &bias));
                device.bias_relu(&mut x.array, bias.part(), n, (rate, seed)).done(&what);
                get(&device, &what, &x)
            });
            let what_half = format!("bias_relu_half: {n} rows of {dim}, dropout {rate}");
            let (got_half, rounded) = twice(&what_half, || {
                let (mut x, bias) = (put(&device, &halves), framed(&device, &bias));
                let mut rounded = holes::<bf16>(&device, n * dim);
                let (out, dropout) = ((&mut x.array, &mut rounded.array), (rate, seed));
                device.bias_relu_half(out, bias.part(), n, dropout).done(&what_half);
                (get(&device, &what_half, &x), get(&device, &what_half, &rounded))
            });
            let scale = 1.0 / (1.0 - f64::from(rate));
            let unit = |at: usize| {
                let sum = Sum::of([x[at], bias[at % dim]].map(f64::from)).times(scale);
                match sum.value > 0.0 && !is_dropped(seed, at, rate) {
                    true => sum,
                    false => Sum::default(),
                }
            };
            let expected: Vec<Sum> = (0..n * dim).map(unit).collect();
            assert_near(&what, &got, &expected, ROUNDED);
            assert_near(&what_half, &got_half, &expected, HALF);
            assert_near(&format!("{what_half}, bf16"), &rounded, &expected, BF16);
        }
    }
}

#[test]
fn derivatives_pass_where_the_relu_is_positive() {
    let Some(device) = device(&["relu_backward", "relu_backward_bf16"]) else { return };
    let mut rng = Rng::new(14);
    // Parts have 16 rows, and tiles 256 columns, of which a thread has four.
    for n in [0, 1, 3, 15, 16, 17, 33, 1_100] {
        for dim in [1, 3, 4, 63, 65, 68, 255, 256, 257, 260, 513] {
            let what = format!("relu_backward: {n} rows of {dim}");
            let scale = 1.25f32;
            // The same numbers in both formats.
            let rounded: Vec<bf16> =
                (0..n * dim).map(|_| bf16::from_f32(rng.normal().max(0.0))).collect();
            let y: Vec<f32> = rounded.iter().map(|y| y.to_f32()).collect();
            let (d_y, before) = (rng.normals(n * dim), rng.normals(dim));
            let passed = |at: usize| if y[at] > 0.0 { 1.25 * f64::from(d_y[at]) } else { 0.0 };
            let expected: Vec<Sum> = (0..n * dim).map(|at| passed(at).into()).collect();
            let mut expected_bias = sums(&before);
            (0..n * dim).for_each(|at| expected_bias[at % dim] += passed(at));
            let (inputs, expected) = ((&d_y[..], &before[..]), (&expected[..], &expected_bias[..]));
            compare_relu(&device, &what, (n, scale), &y, inputs, expected, ROUNDED);
            let what = format!("{what}, bf16");
            compare_relu(&device, &what, (n, scale), &rounded, inputs, expected, BF16);
        }
    }
}

/// Compares derivatives with respect to the input of a ReLU, and those of the bias.
fn compare_relu<T: Derivative + Number + Into<f64>>(
    device: &Device,
    what: &str,
    (n, scale): (usize, f32),
    y: &[T],
    (d_y, before): (&[f32], &[f32]),
    (expected, expected_bias): (&[Sum], &[Sum]),
    tolerance: Tolerance,
) {
    let (d_z, d_bias) = twice(what, || {
        let (y, d_y) = (put(device, y), put(device, d_y));
        let mut d_z = holes::<T>(device, expected.len());
        let (mut gradient, mut partial) = (framed(device, before), device.zeros(0).done(what));
        let (inputs, out) = ((&y.array, &d_y.array), gradient.part_mut());
        device.relu_backward(&mut d_z.array, inputs, n, scale, out, &mut partial).done(what);
        (get(device, what, &d_z), get(device, what, &gradient))
    });
    assert_near(&format!("{what}, d_z"), &d_z, expected, tolerance);
    assert_near(&format!("{what}, bias"), &d_bias, expected_bias, SINGLE);
}

#[test]
fn column_sums_are_added() {
    let Some(device) = device(&["add_column_sums"]) else { return };
    let mut rng = Rng::new(15);
    for n in [0, 1, 31, 32, 33, 700] {
        for (dim, stride, first) in [(1, 1, 0), (5, 9, 4), (31, 31, 0), (32, 40, 8), (65, 130, 65)]
        {
            let what = format!("add_column_sums: {n} rows, {dim} columns from {first} of {stride}");
            let (x, before) = (rng.normals(n * stride), rng.normals(dim));
            let got = twice(&what, || {
                let (x, mut out) = (put(&device, &x), framed(&device, &before));
                let columns = Columns { stride, first };
                device.add_column_sums(out.part_mut(), &x.array, n, columns).done(&what);
                get(&device, &what, &out)
            });
            let mut expected = sums(&before);
            for (r, c) in places(n, dim) {
                expected[c] += f64::from(x[r * stride + first + c]);
            }
            assert_near(&what, &got, &expected, SINGLE);
        }
    }
}

#[test]
fn rows_are_scaled() {
    let Some(device) = device(&["scale_rows"]) else { return };
    let mut rng = Rng::new(16);
    for (n, dim) in [(0, 3), (1, 1), (7, 5), (33, 64), WIDE, WIDE_FOURS] {
        let what = format!("scale_rows: {n} rows of {dim}");
        let (x, factors) = (rng.normals(n * dim), rng.normals(n));
        let got = twice(&what, || {
            let (mut x, factors) = (put(&device, &x), put(&device, &factors));
            device
                .scale_rows(&mut x.array, &factors.array, Shape { rows: n, columns: dim })
                .done(&what);
            get(&device, &what, &x)
        });
        let scaled = |at: usize| f64::from(x[at]) * f64::from(factors[at / dim]);
        let expected: Vec<Sum> = (0..n * dim).map(|at| scaled(at).into()).collect();
        assert_near(&what, &got, &expected, ROUNDED);
    }
}

/// All pairs of a row and a column.
fn places(n: usize, dim: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n * dim).map(move |at| (at / dim, at % dim))
}
