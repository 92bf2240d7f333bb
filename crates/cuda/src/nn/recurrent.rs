//! Recurrent layers: Elman networks and LSTMs.
//!
//! A step has one row per stream. A stream that is fresh at a step forgets everything before it.
//!
//! The functions with `product` in their names also multiply by the recurrent weights, in single precision. They are made
//! for small layers, whose time steps would spend more time between two kernels than in them.

use super::layers::check_n_elements;
use crate::device::{
    Array, CudaError, Device, View, at_least, exactly, for_each, grid, int, kernels,
};
use crate::shape::Shape;
use cudarc::driver::LaunchConfig;
use std::ops::Range;

/// A range of an array that is read.
type Part<'a> = (&'a Array<f32>, Range<usize>);

/// A range of an array that is written.
type PartMut<'a> = (&'a mut Array<f32>, Range<usize>);

/// Which streams are fresh at a step.
#[derive(Clone, Copy, Debug)]
pub struct Fresh<'a> {
    /// An array that contains the marks, one per stream. Marks of fresh streams are not 0.
    pub marks: &'a Array<u32>,
    /// Index of the first mark of the step. Without one, no stream is fresh.
    pub first: Option<usize>,
}

impl<'a> Fresh<'a> {
    /// The marks of n streams, and whether there are any.
    fn parts(self, n: usize) -> (View<'a, u32>, i32) {
        match self.first {
            Some(first) => (self.marks.at(first..first + n), 1),
            None => (self.marks.all(), 0),
        }
    }
}

/// The place of a time step among those that are differentiated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeStep {
    /// The last one: no derivatives come from a later step.
    Last,
    /// Another step follows.
    Earlier,
}

impl TimeStep {
    /// The place of step t, counted from 0, among `n_steps`.
    pub fn of(t: usize, n_steps: usize) -> TimeStep {
        if t + 1 < n_steps { TimeStep::Earlier } else { TimeStep::Last }
    }
}

/// Activation function of an Elman layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squash {
    /// Hyperbolic tangent.
    Tanh,
    /// Logistic function.
    Sigmoid,
}

/// The blocks of 8 warps for n streams and `dim` units, if a block has `n_units` units.
fn products(n: usize, dim: usize, n_units: usize) -> LaunchConfig {
    /// Four per warp.
    const STREAMS_PER_BLOCK: usize = 32;
    let blocks = (dim.div_ceil(n_units).max(1), n.div_ceil(STREAMS_PER_BLOCK).max(1));
    // The second number of blocks has 16 bits.
    assert!(blocks.1 < 1 << 16, "the number of streams must be at most 2^21 - 32, got {n}");
    grid((blocks.0, blocks.1, 1), (256, 1))
}

/// Number of units of a block: as `ELMAN_ROWS`, `LSTM_UNITS` and `LSTM_ROWS` in the kernels.
const ELMAN_ROWS: usize = 4;
const LSTM_UNITS: usize = 2;
const LSTM_ROWS: usize = 4;

impl Device {
    /// out = xᵀ, where x is n × m.
    pub fn transpose(
        &self,
        out: &mut Array<f32>,
        x: Part<'_>,
        Shape { rows: n, columns: m }: Shape,
    ) -> Result<(), CudaError> {
        at_least("out", out.len(), n * m);
        exactly("x", x.1.len(), n * m);
        if n * m == 0 {
            return Ok(());
        }
        let blocks = grid((m.div_ceil(32), n.div_ceil(32), 1), (32, 8));
        kernels::transpose(self, blocks, out.all_mut(), x.0.at(x.1), int(n), int(m))
    }

    /// out = x for n streams, but 0 for fresh ones.
    pub fn keep_rows(
        &self,
        out: PartMut<'_>,
        x: Part<'_>,
        fresh: Fresh<'_>,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        exactly("out", out.1.len(), n * dim);
        exactly("x", x.1.len(), n * dim);
        check_n_elements(n * dim);
        let (fresh, has_fresh) = fresh.parts(n);
        kernels::keep_rows(
            self,
            for_each(n * dim),
            out.0.at_mut(out.1),
            x.0.at(x.1),
            fresh,
            has_fresh,
            int(n),
            int(dim),
        )
    }

    /// h ─▶ f(h) for n streams. `next`, the state before the next step, is f(h) too, but 0 for streams that are fresh
    /// at that step.
    pub fn elman_step(
        &self,
        hidden: PartMut<'_>,
        next: PartMut<'_>,
        fresh: Fresh<'_>,
        squash: Squash,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        exactly("hidden", hidden.1.len(), n * dim);
        exactly("next", next.1.len(), n * dim);
        check_n_elements(n * dim);
        let (fresh, has_fresh) = fresh.parts(n);
        kernels::elman_step(
            self,
            for_each(n * dim),
            hidden.0.at_mut(hidden.1),
            next.0.at_mut(next.1),
            fresh,
            has_fresh,
            int(n),
            int(dim),
            i32::from(squash == Squash::Sigmoid),
        )
    }

    /// δ = (`d_out` + `later`) f′(h) for n streams. `later` comes from the next step, if there is one; it is 0 for
    /// streams that are fresh at that step.
    pub fn elman_backward(
        &self,
        delta: PartMut<'_>,
        (d_out, hidden): (Part<'_>, Part<'_>),
        (later, step): (&Array<f32>, TimeStep),
        fresh: Fresh<'_>,
        squash: Squash,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        exactly("delta", delta.1.len(), n * dim);
        exactly("d_out", d_out.1.len(), n * dim);
        exactly("hidden", hidden.1.len(), n * dim);
        at_least("later", later.len(), n * dim);
        check_n_elements(n * dim);
        let (fresh, has_fresh) = fresh.parts(n);
        kernels::elman_backward(
            self,
            for_each(n * dim),
            delta.0.at_mut(delta.1),
            d_out.0.at(d_out.1),
            later.all(),
            i32::from(step == TimeStep::Earlier),
            fresh,
            has_fresh,
            hidden.0.at(hidden.1),
            int(n),
            int(dim),
            i32::from(squash == Squash::Sigmoid),
        )
    }

    /// h ─▶ f(h + A s) for n streams, where `states` holds the states s before the step. They are followed by those
    /// before the next step: f(h + A s) too, but 0 for streams that are fresh at that step.
    pub fn elman_product_step(
        &self,
        hidden: PartMut<'_>,
        states: PartMut<'_>,
        recurrent: Part<'_>,
        fresh: Fresh<'_>,
        squash: Squash,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        exactly("hidden", hidden.1.len(), n * dim);
        exactly("states", states.1.len(), 2 * n * dim);
        exactly("recurrent", recurrent.1.len(), dim * dim);
        check_n_elements(n * dim);
        let (fresh, has_fresh) = fresh.parts(n);
        kernels::elman_product_step(
            self,
            products(n, dim, ELMAN_ROWS),
            hidden.0.at_mut(hidden.1),
            states.0.at_mut(states.1),
            recurrent.0.at(recurrent.1),
            fresh,
            has_fresh,
            int(n),
            int(dim),
            i32::from(squash == Squash::Sigmoid),
        )
    }

    /// The same as [`Device::elman_backward`], where the derivatives of the next step, if there is one, follow in
    /// `deltas`. `transposed` is Aᵀ.
    pub fn elman_product_backward(
        &self,
        deltas: PartMut<'_>,
        (d_out, hidden): (Part<'_>, Part<'_>),
        (transposed, step): (&Array<f32>, TimeStep),
        fresh: Fresh<'_>,
        squash: Squash,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        exactly("deltas", deltas.1.len(), n_steps(step) * n * dim);
        exactly("d_out", d_out.1.len(), n * dim);
        exactly("hidden", hidden.1.len(), n * dim);
        at_least("transposed", transposed.len(), dim * dim);
        check_n_elements(n * dim);
        let (fresh, has_fresh) = fresh.parts(n);
        kernels::elman_product_backward(
            self,
            products(n, dim, ELMAN_ROWS),
            deltas.0.at_mut(deltas.1),
            d_out.0.at(d_out.1),
            transposed.all(),
            i32::from(step == TimeStep::Earlier),
            fresh,
            has_fresh,
            hidden.0.at(hidden.1),
            int(n),
            int(dim),
            i32::from(squash == Squash::Sigmoid),
        )
    }

    /// One step of an LSTM for n streams.
    ///
    /// `gates` holds 4 · `dim` numbers per stream: on entry the inputs of the gates i, f, g, o without the bias, on
    /// return the gates. `cells` holds the cells before the step, followed by those after it. These and `next`, the
    /// hidden state before the next step, are 0 for streams that are fresh at that step.
    pub fn lstm_step(
        &self,
        gates: PartMut<'_>,
        (hidden, tanh_cell): (PartMut<'_>, PartMut<'_>),
        (next, cells): (PartMut<'_>, PartMut<'_>),
        bias: Part<'_>,
        fresh: Fresh<'_>,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        exactly("gates", gates.1.len(), 4 * n * dim);
        exactly("hidden", hidden.1.len(), n * dim);
        exactly("tanh_cell", tanh_cell.1.len(), n * dim);
        exactly("next", next.1.len(), n * dim);
        exactly("cells", cells.1.len(), 2 * n * dim);
        exactly("bias", bias.1.len(), 4 * dim);
        check_n_elements(n * dim);
        let (fresh, has_fresh) = fresh.parts(n);
        kernels::lstm_step(
            self,
            for_each(n * dim),
            gates.0.at_mut(gates.1),
            hidden.0.at_mut(hidden.1),
            tanh_cell.0.at_mut(tanh_cell.1),
            next.0.at_mut(next.1),
            cells.0.at_mut(cells.1),
            bias.0.at(bias.1),
            fresh,
            has_fresh,
            int(n),
            int(dim),
        )
    }

    /// The same as [`Device::lstm_step`], where the inputs of the gates do not yet contain U h. `states` holds the states
    /// h before the step, followed by those before the next step.
    pub fn lstm_product_step(
        &self,
        gates: PartMut<'_>,
        (hidden, tanh_cell): (PartMut<'_>, PartMut<'_>),
        (states, cells): (PartMut<'_>, PartMut<'_>),
        (recurrent, bias): (Part<'_>, Part<'_>),
        fresh: Fresh<'_>,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        exactly("gates", gates.1.len(), 4 * n * dim);
        exactly("hidden", hidden.1.len(), n * dim);
        exactly("tanh_cell", tanh_cell.1.len(), n * dim);
        exactly("states", states.1.len(), 2 * n * dim);
        exactly("cells", cells.1.len(), 2 * n * dim);
        exactly("recurrent", recurrent.1.len(), 4 * dim * dim);
        exactly("bias", bias.1.len(), 4 * dim);
        check_n_elements(n * dim);
        let (fresh, has_fresh) = fresh.parts(n);
        kernels::lstm_product_step(
            self,
            products(n, dim, LSTM_UNITS),
            gates.0.at_mut(gates.1),
            hidden.0.at_mut(hidden.1),
            tanh_cell.0.at_mut(tanh_cell.1),
            states.0.at_mut(states.1),
            cells.0.at_mut(cells.1),
            recurrent.0.at(recurrent.1),
            bias.0.at(bias.1),
            fresh,
            has_fresh,
            int(n),
            int(dim),
        )
    }

    /// Derivatives of one step of an LSTM for n streams.
    ///
    /// `gates` holds the gates on entry, and on return the derivatives with respect to their inputs. `later` and
    /// `later_cell` come from the next step, if there is one; they are 0 for streams that are fresh at that step. On
    /// return `later_cell` holds the derivatives with respect to the cell that go to the previous step.
    pub fn lstm_backward(
        &self,
        gates: PartMut<'_>,
        d_out: Part<'_>,
        (later, later_cell, step): (&Array<f32>, &mut Array<f32>, TimeStep),
        (previous_cell, tanh_cell): (Part<'_>, Part<'_>),
        fresh: Fresh<'_>,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        exactly("gates", gates.1.len(), 4 * n * dim);
        exactly("d_out", d_out.1.len(), n * dim);
        at_least("later", later.len(), n * dim);
        at_least("later_cell", later_cell.len(), n * dim);
        exactly("previous_cell", previous_cell.1.len(), n * dim);
        exactly("tanh_cell", tanh_cell.1.len(), n * dim);
        check_n_elements(n * dim);
        let (fresh, has_fresh) = fresh.parts(n);
        kernels::lstm_backward(
            self,
            for_each(n * dim),
            gates.0.at_mut(gates.1),
            later_cell.all_mut(),
            d_out.0.at(d_out.1),
            later.all(),
            i32::from(step == TimeStep::Earlier),
            fresh,
            has_fresh,
            previous_cell.0.at(previous_cell.1),
            tanh_cell.0.at(tanh_cell.1),
            int(n),
            int(dim),
        )
    }

    /// The same as [`Device::lstm_backward`], where the derivatives with respect to the inputs of the next step, if
    /// there is one, follow in `gates`. `transposed` is Uᵀ.
    pub fn lstm_product_backward(
        &self,
        gates: PartMut<'_>,
        d_out: Part<'_>,
        (transposed, later_cell, step): (&Array<f32>, &mut Array<f32>, TimeStep),
        (previous_cell, tanh_cell): (Part<'_>, Part<'_>),
        fresh: Fresh<'_>,
        Shape { rows: n, columns: dim }: Shape,
    ) -> Result<(), CudaError> {
        exactly("gates", gates.1.len(), n_steps(step) * 4 * n * dim);
        exactly("d_out", d_out.1.len(), n * dim);
        at_least("transposed", transposed.len(), 4 * dim * dim);
        at_least("later_cell", later_cell.len(), n * dim);
        exactly("previous_cell", previous_cell.1.len(), n * dim);
        exactly("tanh_cell", tanh_cell.1.len(), n * dim);
        check_n_elements(n * dim);
        let (fresh, has_fresh) = fresh.parts(n);
        kernels::lstm_product_backward(
            self,
            products(n, dim, LSTM_ROWS),
            gates.0.at_mut(gates.1),
            later_cell.all_mut(),
            d_out.0.at(d_out.1),
            transposed.all(),
            i32::from(step == TimeStep::Earlier),
            fresh,
            has_fresh,
            previous_cell.0.at(previous_cell.1),
            tanh_cell.0.at(tanh_cell.1),
            int(n),
            int(dim),
        )
    }
}

/// Number of steps in an array with those of a step and, if there is one, of the next.
fn n_steps(step: TimeStep) -> usize {
    match step {
        TimeStep::Last => 1,
        TimeStep::Earlier => 2,
    }
}
