//! Recurrent layers: Elman networks and LSTMs.

use crate::kit::{
    Done, EXACT, Framed, ROUNDED, Rng, SINGLE, Sum, WIDE, assert_near, device, framed, get, put,
    sums, twice,
};
use latens_cuda::{Device, Fresh, Shape, Squash, TimeStep};

/// Number of streams and of numbers per stream.
const SHAPES: &[(usize, usize)] = &[(1, 1), (1, 5), (7, 3), (20, 33), (33, 64), (300, 7), WIDE];

/// Marks of fresh streams, if there are any.
#[derive(Clone, Debug)]
pub(super) struct Marks(Option<Vec<u32>>);

impl Marks {
    /// No marks, and random ones.
    pub(super) fn draw(n: usize, rng: &mut Rng) -> [Marks; 2] {
        let mut marks = rng.idxs(n, 3);
        marks[n - 1] = 2;
        [Marks(None), Marks(Some(marks))]
    }

    pub(super) fn is_fresh(&self, stream: usize) -> bool {
        self.0.as_ref().is_some_and(|marks| marks[stream] != 0)
    }

    /// Without marks the array still marks streams as fresh, which must have no effect.
    pub(super) fn put(&self, device: &Device) -> Framed<u32> {
        framed(device, self.0.as_deref().unwrap_or(&[1, 1]))
    }

    pub(super) fn fresh<'a>(&self, ints: &'a Framed<u32>) -> Fresh<'a> {
        Fresh { marks: &ints.array, first: self.0.as_ref().map(|_| ints.range.start) }
    }

    pub(super) fn name(&self) -> &'static str {
        if self.0.is_some() { "with marks" } else { "without marks" }
    }
}

#[test]
fn fresh_streams_are_cleared() {
    let Some(device) = device(&["keep_rows"]) else { return };
    let mut rng = Rng::new(110);
    for &(n, dim) in SHAPES {
        for marks in Marks::draw(n, &mut rng) {
            let what = format!("keep_rows: {n} rows of {dim}, {}", marks.name());
            let x = rng.normals(n * dim);
            let got = twice(&what, || {
                let (x, ints) = (framed(&device, &x), marks.put(&device));
                let mut out = framed(&device, &vec![f32::NAN; n * dim]);
                let fresh = marks.fresh(&ints);
                device
                    .keep_rows(out.part_mut(), x.part(), fresh, Shape { rows: n, columns: dim })
                    .done(&what);
                get(&device, &what, &out)
            });
            let kept = |at: usize| if marks.is_fresh(at / dim) { 0.0 } else { x[at] };
            let expected: Vec<Sum> = (0..n * dim).map(|at| kept(at).into()).collect();
            assert_near(&what, &got, &expected, EXACT);
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub(super) fn squashed(squash: Squash, x: f64) -> f64 {
    match squash {
        Squash::Tanh => x.tanh(),
        Squash::Sigmoid => sigmoid(x),
    }
}

#[test]
fn steps_of_elman_networks_agree_with_the_cpu() {
    let Some(device) = device(&["elman_step"]) else { return };
    let mut rng = Rng::new(111);
    for &(n, dim) in SHAPES {
        for (marks, squash) in Marks::draw(n, &mut rng)
            .into_iter()
            .zip([Squash::Tanh, Squash::Sigmoid])
            .chain(Marks::draw(n, &mut rng).into_iter().zip([Squash::Sigmoid, Squash::Tanh]))
        {
            let what = format!("elman_step: {squash:?}, {n} rows of {dim}, {}", marks.name());
            let x: Vec<f32> = rng.normals(n * dim).iter().map(|x| 3.0 * x).collect();
            let (hidden, next) = twice(&what, || {
                let (mut hidden, ints) = (framed(&device, &x), marks.put(&device));
                let mut next = framed(&device, &vec![f32::NAN; n * dim]);
                let (parts, fresh) = ((hidden.part_mut(), next.part_mut()), marks.fresh(&ints));
                device
                    .elman_step(parts.0, parts.1, fresh, squash, Shape { rows: n, columns: dim })
                    .done(&what);
                (get(&device, &what, &hidden), get(&device, &what, &next))
            });
            let expected: Vec<Sum> = x.iter().map(|&x| squashed(squash, x.into()).into()).collect();
            assert_near(&format!("{what}, hidden"), &hidden, &expected, SINGLE);
            let kept = |at: usize| match marks.is_fresh(at / dim) {
                true => Sum::default(),
                false => expected[at],
            };
            let expected: Vec<Sum> = (0..n * dim).map(kept).collect();
            assert_near(&format!("{what}, next"), &next, &expected, SINGLE);
        }
    }
}

/// The place of a step.
pub(super) fn place_of(has_later: bool) -> TimeStep {
    if has_later { TimeStep::Earlier } else { TimeStep::Last }
}

/// The derivative with respect to the input of a unit, given that with respect to its value h.
pub(super) fn elman_delta(d: Sum, h: f32, squash: Squash) -> Sum {
    let h = f64::from(h);
    // The rounding error of 1 − h² is that of 1.
    let (slope, size) = match squash {
        Squash::Tanh => (1.0 - h * h, 1.0),
        Squash::Sigmoid => (h * (1.0 - h), h.abs()),
    };
    Sum { value: d.value * slope, size: d.size * (slope.abs() + size) }
}

#[test]
fn derivatives_of_elman_networks_agree_with_the_cpu() {
    let Some(device) = device(&["elman_backward"]) else { return };
    let mut rng = Rng::new(112);
    for &(n, dim) in SHAPES {
        for (has_later, squash) in
            [(true, Squash::Tanh), (true, Squash::Sigmoid), (false, Squash::Tanh)]
        {
            for marks in Marks::draw(n, &mut rng) {
                let what = format!(
                    "elman_backward: {squash:?}, {n} rows of {dim}, {}, later: {has_later}",
                    marks.name()
                );
                let (d_out, later) = (rng.normals(n * dim), rng.normals(n * dim));
                let hidden: Vec<f32> = (0..n * dim).map(|_| rng.normal().tanh()).collect();
                let got = twice(&what, || {
                    let (d_out, hidden) = (framed(&device, &d_out), framed(&device, &hidden));
                    let (later, ints) = (put(&device, &later), marks.put(&device));
                    let mut delta = framed(&device, &vec![f32::NAN; n * dim]);
                    let inputs = (d_out.part(), hidden.part());
                    let (later, fresh) = ((&later.array, place_of(has_later)), marks.fresh(&ints));
                    let shape = Shape { rows: n, columns: dim };
                    device
                        .elman_backward(delta.part_mut(), inputs, later, fresh, squash, shape)
                        .done(&what);
                    get(&device, &what, &delta)
                });
                let derivative = |at: usize| {
                    let is_cut = !has_later || marks.is_fresh(at / dim);
                    let later = if is_cut { 0.0 } else { f64::from(later[at]) };
                    elman_delta(Sum::of([f64::from(d_out[at]), later]), hidden[at], squash)
                };
                let expected: Vec<Sum> = (0..n * dim).map(derivative).collect();
                assert_near(&what, &got, &expected, ROUNDED);
            }
        }
    }
}

/// What a step of an LSTM writes.
pub(super) const LSTM_RESULTS: [&str; 5] = ["gates", "hidden", "tanh of the cell", "next", "cells"];

/// The twin of a step of an LSTM, given the inputs of its gates without the bias.
pub(super) fn lstm_step(
    inputs: &[Sum],
    bias: &[f32],
    cells: &[f32],
    marks: &Marks,
    (n, dim): (usize, usize),
) -> [Vec<Sum>; 5] {
    let mut expected: [Vec<Sum>; 5] = Default::default();
    expected[0] = vec![Sum::default(); 4 * n * dim];
    expected[4] = sums(cells);
    for (at, &before) in cells.iter().enumerate() {
        let (r, c) = (at / dim, at % dim);
        let place = |gate: usize| (r * 4 + gate) * dim + c;
        let sum = |gate: usize| inputs[place(gate)].value + f64::from(bias[gate * dim + c]);
        let (i, f, g, o) = (sigmoid(sum(0)), sigmoid(sum(1)), sum(2).tanh(), sigmoid(sum(3)));
        // Inputs have rounding errors of their size, which tanh near 0 keeps.
        let error: f64 = (0..4).map(|gate| 0.03 * inputs[place(gate)].size).sum::<f64>() + 0.1;
        let near_one = |value: f64| Sum { value, size: value.abs() + error };
        for (gate, value) in [i, f, g, o].into_iter().enumerate() {
            expected[0][place(gate)] = near_one(value);
        }
        let cell = Sum::of([f * f64::from(before), i * g]);
        let y = cell.value.tanh();
        expected[1].push(near_one(o * y));
        expected[2].push(near_one(y));
        let is_fresh = marks.is_fresh(r);
        expected[3].push(if is_fresh { Sum::default() } else { near_one(o * y) });
        let kept = Sum { size: cell.size + error, ..cell };
        expected[4].push(if is_fresh { Sum::default() } else { kept });
    }
    expected
}

#[test]
fn steps_of_lstms_agree_with_the_cpu() {
    let Some(device) = device(&["lstm_step"]) else { return };
    let mut rng = Rng::new(113);
    for &(n, dim) in SHAPES {
        for marks in Marks::draw(n, &mut rng) {
            let what = format!("lstm_step: {n} rows of {dim}, {}", marks.name());
            let (gates, bias) = (rng.normals(4 * n * dim), rng.normals(4 * dim));
            let mut cells = rng.normals(n * dim);
            cells.extend(vec![f32::NAN; n * dim]);
            let rows = vec![f32::NAN; n * dim];
            let (gates_after, hidden, tanh_cell, (next, cells_after)) = twice(&what, || {
                let (mut gates, bias) = (framed(&device, &gates), framed(&device, &bias));
                let (mut cells, ints) = (framed(&device, &cells), marks.put(&device));
                let [mut hidden, mut tanh_cell, mut next] =
                    [(); 3].map(|()| framed(&device, &rows));
                let out = (hidden.part_mut(), tanh_cell.part_mut());
                let kept = (next.part_mut(), cells.part_mut());
                let fresh = marks.fresh(&ints);
                let shape = Shape { rows: n, columns: dim };
                device
                    .lstm_step(gates.part_mut(), out, kept, bias.part(), fresh, shape)
                    .done(&what);
                let get = |array: &Framed<f32>| get(&device, &what, array);
                (get(&gates), get(&hidden), get(&tanh_cell), (get(&next), get(&cells)))
            });
            let expected = lstm_step(&sums(&gates), &bias, &cells[..n * dim], &marks, (n, dim));
            let got = [gates_after, hidden, tanh_cell, next, cells_after];
            for ((got, expected), name) in got.iter().zip(&expected).zip(LSTM_RESULTS) {
                assert_near(&format!("{what}, {name}"), got, expected, SINGLE);
            }
        }
    }
}

/// What the derivatives of a step of an LSTM depend on, besides the gates and what comes from the next step.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    pub(super) d_out: &'a [f32],
    pub(super) later_cell: &'a [f32],
    pub(super) previous: &'a [f32],
    pub(super) tanh_cell: &'a [f32],
}

/// The twin of the derivatives of a step of an LSTM: those by the inputs of the gates, and by the previous cells.
pub(super) fn lstm_backward(
    gates: &[f32],
    later: &[Sum],
    has_later: bool,
    kept: &Kept<'_>,
    marks: &Marks,
    dim: usize,
) -> (Vec<Sum>, Vec<Sum>) {
    let mut d_gates = vec![Sum::default(); gates.len()];
    let mut d_cells = vec![];
    for (at, later) in later.iter().enumerate() {
        let (r, c) = (at / dim, at % dim);
        let place = |gate: usize| (r * 4 + gate) * dim + c;
        let [i, f, g, o] = [0, 1, 2, 3].map(|gate| f64::from(gates[place(gate)]));
        let y = f64::from(kept.tanh_cell[at]);
        let is_cut = !has_later || marks.is_fresh(r);
        let mut d_h = Sum::from(kept.d_out[at]);
        if !is_cut {
            d_h = Sum { value: d_h.value + later.value, size: d_h.size + later.size };
        }
        let mut d_c = d_h.times(o);
        d_c = Sum { value: d_c.value * (1.0 - y * y), size: d_c.size * (1.0 + y * y) };
        d_c += if is_cut { 0.0 } else { f64::from(kept.later_cell[at]) };
        d_cells.push(d_c.times(f));
        // The slope of a gate near 1 is small, but its rounding error is that of 1.
        let slope = |d: Sum, x: f64, slope: f64| Sum {
            value: d.value * x * slope,
            size: d.size * x.abs() * (slope.abs() + 1.0),
        };
        d_gates[place(0)] = slope(d_c, g * i, 1.0 - i);
        d_gates[place(1)] = slope(d_c, f64::from(kept.previous[at]) * f, 1.0 - f);
        d_gates[place(2)] = slope(d_c, i, 1.0 - g * g);
        d_gates[place(3)] = slope(d_h, y * o, 1.0 - o);
    }
    (d_gates, d_cells)
}

#[test]
fn derivatives_of_lstms_agree_with_the_cpu() {
    let Some(device) = device(&["lstm_backward"]) else { return };
    let mut rng = Rng::new(114);
    for &(n, dim) in SHAPES {
        for (marks, has_later) in Marks::draw(n, &mut rng).into_iter().flat_map(|m| {
            let again = Marks(m.0.clone());
            [(m, true), (again, false)]
        }) {
            let what =
                format!("lstm_backward: {n} rows of {dim}, {}, later: {has_later}", marks.name());
            let gates: Vec<f32> = (0..4 * n * dim).map(|_| rng.uniform() as f32).collect();
            let [d_out, later, later_cell, previous, tanh_cell] =
                [(); 5].map(|()| rng.normals(n * dim));
            let (gates_after, cell_after) = twice(&what, || {
                let (mut gates, d_out) = (framed(&device, &gates), framed(&device, &d_out));
                let (later, mut later_cell) = (put(&device, &later), put(&device, &later_cell));
                let (previous, tanh_cell) =
                    (framed(&device, &previous), framed(&device, &tanh_cell));
                let ints = marks.put(&device);
                let next = (&later.array, &mut later_cell.array, place_of(has_later));
                let (kept, fresh) = ((previous.part(), tanh_cell.part()), marks.fresh(&ints));
                let shape = Shape { rows: n, columns: dim };
                device
                    .lstm_backward(gates.part_mut(), d_out.part(), next, kept, fresh, shape)
                    .done(&what);
                (get(&device, &what, &gates), get(&device, &what, &later_cell))
            });
            let later: Vec<Sum> = match has_later {
                true => sums(&later),
                false => vec![Sum::default(); n * dim],
            };
            let kept = Kept {
                d_out: &d_out,
                later_cell: &later_cell,
                previous: &previous,
                tanh_cell: &tanh_cell,
            };
            let (d_gates, d_cells) = lstm_backward(&gates, &later, has_later, &kept, &marks, dim);
            assert_near(&format!("{what}, gates"), &gates_after, &d_gates, ROUNDED);
            assert_near(&format!("{what}, cells"), &cell_after, &d_cells, ROUNDED);
        }
    }
}
