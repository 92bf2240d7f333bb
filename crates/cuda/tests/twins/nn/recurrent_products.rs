//! Steps of recurrent layers together with their matrix products.

use super::recurrent::{
    Kept, LSTM_RESULTS, Marks, elman_delta, lstm_backward, lstm_step, place_of, squashed,
};
use crate::kit::{
    Done, EXACT, Framed, Rng, SINGLE, Sum, assert_near, device, framed, get, product, put, sums,
    twice,
};
use latens_cuda::{Device, Shape, Squash};

/// Number of streams and of units: below, at and above the 32 streams and the 2 or 4 units of a block, and rows that are
/// shorter and longer than what a warp reads at once, of whole groups of four numbers and not.
const SHAPES: &[(usize, usize)] =
    &[(1, 1), (1, 5), (7, 3), (20, 33), (31, 64), (32, 128), (33, 132), (70, 260), (20, 256)];

/// Puts numbers where they are aligned for reads of four at a time, or where they are not.
type Put = fn(&Device, &[f32]) -> Framed<f32>;
const PUTS: [(&str, Put); 2] = [("aligned", put::<f32>), ("not aligned", framed::<f32>)];

/// Weights whose products with n numbers of size 1 are about 1.
fn weights(rng: &mut Rng, len: usize, n: usize) -> Vec<f32> {
    rng.normals(len).iter().map(|x| x / (n as f32).sqrt()).collect()
}

fn add(a: Sum, b: f32) -> Sum {
    Sum { value: a.value + f64::from(b), size: a.size + f64::from(b.abs()) }
}

/// Some numbers, followed by as many holes.
fn with_room(values: &[f32]) -> Vec<f32> {
    [values, &vec![f32::NAN; values.len()]].concat()
}

#[test]
fn transposed_matrices_are_exact() {
    let Some(device) = device(&["transpose"]) else { return };
    let mut rng = Rng::new(120);
    for (n, m) in [(1, 1), (1, 70), (70, 1), (31, 33), (32, 32), (64, 33), (65, 200)] {
        let what = format!("transpose: {n} × {m}");
        let x = rng.normals(n * m);
        let got = twice(&what, || {
            let (x, mut out) = (framed(&device, &x), put(&device, &vec![f32::NAN; n * m]));
            device.transpose(&mut out.array, x.part(), Shape { rows: n, columns: m }).done(&what);
            get(&device, &what, &out)
        });
        let expected: Vec<Sum> = (0..n * m).map(|at| x[at % n * m + at / n].into()).collect();
        assert_near(&what, &got, &expected, EXACT);
    }
}

#[test]
fn steps_of_elman_networks_with_products_agree_with_the_cpu() {
    let Some(device) = device(&["elman_product_step"]) else { return };
    let mut rng = Rng::new(121);
    for (&(n, dim), (place, put)) in SHAPES.iter().flat_map(|shape| PUTS.map(|put| (shape, put))) {
        for (marks, squash) in
            Marks::draw(n, &mut rng).into_iter().zip([Squash::Tanh, Squash::Sigmoid])
        {
            let what = format!(
                "elman_product_step: {squash:?}, {n} rows of {dim}, {place}, {}",
                marks.name()
            );
            let (x, before) = (rng.normals(n * dim), rng.normals(n * dim));
            let recurrent = weights(&mut rng, dim * dim, dim);
            let (hidden, states) = twice(&what, || {
                let (mut hidden, ints) = (framed(&device, &x), marks.put(&device));
                let (mut states, a) = (put(&device, &with_room(&before)), put(&device, &recurrent));
                let (parts, fresh) = ((hidden.part_mut(), states.part_mut()), marks.fresh(&ints));
                let shape = Shape { rows: n, columns: dim };
                device
                    .elman_product_step(parts.0, parts.1, a.part(), fresh, squash, shape)
                    .done(&what);
                (get(&device, &what, &hidden), get(&device, &what, &states))
            });
            let products =
                product((n, dim, dim), |r, i| before[r * dim + i], |i, c| recurrent[c * dim + i]);
            let value = |at: usize| {
                let input = add(products[at], x[at]);
                Sum { value: squashed(squash, input.value), size: 1.0 + input.size }
            };
            let expected: Vec<Sum> = (0..n * dim).map(value).collect();
            assert_near(&format!("{what}, hidden"), &hidden, &expected, SINGLE);
            let next = |at: usize| match marks.is_fresh(at / dim) {
                true => Sum::default(),
                false => expected[at],
            };
            let mut after = sums(&before);
            after.extend((0..n * dim).map(next));
            assert_near(&format!("{what}, states"), &states, &after, SINGLE);
        }
    }
}

#[test]
fn derivatives_of_elman_networks_with_products_agree_with_the_cpu() {
    let Some(device) = device(&["elman_product_backward"]) else { return };
    let mut rng = Rng::new(122);
    for (&(n, dim), (place, put)) in SHAPES.iter().flat_map(|shape| PUTS.map(|put| (shape, put))) {
        for (has_later, squash) in
            [(true, Squash::Tanh), (true, Squash::Sigmoid), (false, Squash::Tanh)]
        {
            for marks in Marks::draw(n, &mut rng) {
                let what = format!(
                    "elman_product_backward: {squash:?}, {n} rows of {dim}, {place}, {}, later: {has_later}",
                    marks.name()
                );
                let (d_out, later) = (rng.normals(n * dim), rng.normals(n * dim));
                let hidden: Vec<f32> = (0..n * dim).map(|_| rng.normal().tanh()).collect();
                let transposed = weights(&mut rng, dim * dim, dim);
                let mut deltas = vec![f32::NAN; n * dim];
                if has_later {
                    deltas.extend(&later);
                }
                let got = twice(&what, || {
                    let (d_out, hidden) = (framed(&device, &d_out), framed(&device, &hidden));
                    let (mut deltas, ints) = (put(&device, &deltas), marks.put(&device));
                    // A whole array is always aligned.
                    let a = crate::kit::put(&device, &transposed);
                    let inputs = (d_out.part(), hidden.part());
                    let (later, fresh) = ((&a.array, place_of(has_later)), marks.fresh(&ints));
                    let deltas_mut = deltas.part_mut();
                    let shape = Shape { rows: n, columns: dim };
                    device
                        .elman_product_backward(deltas_mut, inputs, later, fresh, squash, shape)
                        .done(&what);
                    get(&device, &what, &deltas)
                });
                let products = product(
                    (n, dim, dim),
                    |r, i| later[r * dim + i],
                    |i, c| transposed[c * dim + i],
                );
                let derivative = |at: usize| {
                    let is_cut = !has_later || marks.is_fresh(at / dim);
                    let later = if is_cut { Sum::default() } else { products[at] };
                    elman_delta(add(later, d_out[at]), hidden[at], squash)
                };
                let mut expected: Vec<Sum> = (0..n * dim).map(derivative).collect();
                expected.extend(if has_later { sums(&later) } else { vec![] });
                assert_near(&what, &got, &expected, SINGLE);
            }
        }
    }
}

#[test]
fn steps_of_lstms_with_products_agree_with_the_cpu() {
    let Some(device) = device(&["lstm_product_step"]) else { return };
    let mut rng = Rng::new(123);
    for (&(n, dim), (place, put)) in SHAPES.iter().flat_map(|shape| PUTS.map(|put| (shape, put))) {
        for marks in Marks::draw(n, &mut rng) {
            let what = format!("lstm_product_step: {n} rows of {dim}, {place}, {}", marks.name());
            let (gates, bias) = (rng.normals(4 * n * dim), rng.normals(4 * dim));
            let (before, cells) = (rng.normals(n * dim), rng.normals(n * dim));
            let recurrent = weights(&mut rng, 4 * dim * dim, dim);
            let rows = vec![f32::NAN; n * dim];
            let (gates_after, hidden, tanh_cell, (states, cells_after)) = twice(&what, || {
                let (mut gates, bias) = (framed(&device, &gates), framed(&device, &bias));
                let (mut cells, ints) = (framed(&device, &with_room(&cells)), marks.put(&device));
                let (mut states, u) = (put(&device, &with_room(&before)), put(&device, &recurrent));
                let [mut hidden, mut tanh_cell] = [(); 2].map(|()| framed(&device, &rows));
                let out = (hidden.part_mut(), tanh_cell.part_mut());
                let kept = (states.part_mut(), cells.part_mut());
                let (learned, fresh) = ((u.part(), bias.part()), marks.fresh(&ints));
                let shape = Shape { rows: n, columns: dim };
                device
                    .lstm_product_step(gates.part_mut(), out, kept, learned, fresh, shape)
                    .done(&what);
                let get = |array: &Framed<f32>| get(&device, &what, array);
                (get(&gates), get(&hidden), get(&tanh_cell), (get(&states), get(&cells)))
            });
            let products = product(
                (n, 4 * dim, dim),
                |r, i| before[r * dim + i],
                |i, c| recurrent[c * dim + i],
            );
            let inputs: Vec<Sum> =
                products.iter().zip(&gates).map(|(&sum, &x)| add(sum, x)).collect();
            let mut expected = lstm_step(&inputs, &bias, &cells, &marks, (n, dim));
            expected[3].splice(0..0, sums(&before));
            let got = [gates_after, hidden, tanh_cell, states, cells_after];
            for ((got, expected), name) in got.iter().zip(&expected).zip(LSTM_RESULTS) {
                assert_near(&format!("{what}, {name}"), got, expected, SINGLE);
            }
        }
    }
}

#[test]
fn derivatives_of_lstms_with_products_agree_with_the_cpu() {
    let Some(device) = device(&["lstm_product_backward"]) else { return };
    let mut rng = Rng::new(124);
    for (&(n, dim), (place, put)) in SHAPES.iter().flat_map(|shape| PUTS.map(|put| (shape, put))) {
        for (marks, has_later) in
            Marks::draw(n, &mut rng).into_iter().flat_map(|m| [(m.clone(), true), (m, false)])
        {
            let what = format!(
                "lstm_product_backward: {n} rows of {dim}, {place}, {}, later: {has_later}",
                marks.name()
            );
            let gates: Vec<f32> = (0..4 * n * dim).map(|_| rng.uniform() as f32).collect();
            let next = rng.normals(4 * n * dim);
            let [d_out, later_cell, previous, tanh_cell] = [(); 4].map(|()| rng.normals(n * dim));
            let transposed = weights(&mut rng, 4 * dim * dim, 4 * dim);
            let both = if has_later { [&gates[..], &next].concat() } else { gates.clone() };
            let (gates_after, cell_after) = twice(&what, || {
                let (mut gates, d_out) = (put(&device, &both), framed(&device, &d_out));
                // Whole arrays are always aligned.
                let u = crate::kit::put(&device, &transposed);
                let mut later_cell = crate::kit::put(&device, &later_cell);
                let (previous, tanh_cell) =
                    (framed(&device, &previous), framed(&device, &tanh_cell));
                let ints = marks.put(&device);
                let later = (&u.array, &mut later_cell.array, place_of(has_later));
                let (kept, fresh) = ((previous.part(), tanh_cell.part()), marks.fresh(&ints));
                device
                    .lstm_product_backward(
                        gates.part_mut(),
                        d_out.part(),
                        later,
                        kept,
                        fresh,
                        Shape { rows: n, columns: dim },
                    )
                    .done(&what);
                (get(&device, &what, &gates), get(&device, &what, &later_cell))
            });
            let later = product(
                (n, dim, 4 * dim),
                |r, i| next[r * 4 * dim + i],
                |i, c| transposed[c * 4 * dim + i],
            );
            let kept = Kept {
                d_out: &d_out,
                later_cell: &later_cell,
                previous: &previous,
                tanh_cell: &tanh_cell,
            };
            let (mut d_gates, d_cells) =
                lstm_backward(&gates, &later, has_later, &kept, &marks, dim);
            d_gates.extend(if has_later { sums(&next) } else { vec![] });
            assert_near(&format!("{what}, gates"), &gates_after, &d_gates, SINGLE);
            assert_near(&format!("{what}, cells"), &cell_after, &d_cells, SINGLE);
        }
    }
}
