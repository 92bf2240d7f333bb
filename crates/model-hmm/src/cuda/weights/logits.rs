//! Probabilities from a logit of their own each, on the device; see `crate::weights::scalar` for what they are.

use crate::cuda::place::{Place, Weights, range};
use crate::cuda::plan::device_plan::Planned;
use crate::cuda::tables::Tables;
use crate::cuda::weights::state_vectors::KeptOnDevice;
use latens_cuda::{Array, Columns, CudaError};
use latens_nn::Layout;
use std::ops::Range;

/// Where the logits lie among the weights.
pub(crate) struct Logits {
    start: Range<usize>,
    transition: Range<usize>,
    emission: Range<usize>,
    /// How many states there are, and how many of them in a cluster.
    n_states: usize,
    k: usize,
}

impl Logits {
    pub(crate) fn new(layout: &Layout, (n_states, k): (usize, usize)) -> Logits {
        Logits {
            start: range(layout, "start"),
            transition: range(layout, "transition"),
            emission: range(layout, "emission"),
            n_states,
            k,
        }
    }

    /// Logits of start and emission, at the side.
    pub(crate) fn forward(
        &self,
        place: &Place<'_>,
        weights: &Array<f32>,
        kept: KeptOnDevice<'_>,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let (side, n) = (place.side, kept.n);
        side.after(place.device)?;
        let (out, table) = ((&mut tables.start, Columns::all(1)), (weights, self.start.clone()));
        side.gather_rows(out, table, (kept.states, 0..n), (n, 1))?;
        let table = (weights, self.emission.clone());
        place.emissions.gather(side, &mut tables.emission, table, kept.states, (kept.k, self.k))
    }

    /// The logits of transitions from some states to all that take part.
    pub(crate) fn logits(
        &self,
        place: &Place<'_>,
        weights: &Array<f32>,
        rows: Range<usize>,
        kept: KeptOnDevice<'_>,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let (device, n) = (place.device, kept.n);
        device.reserve(&mut tables.logits, rows.len() * n)?;
        let (out, table) = (&mut tables.logits, (weights, self.transition.clone()));
        device.gather_square(out, table, kept.states, rows, (n, self.n_states))
    }

    /// Derivatives by logits ─▶ the gradient.
    pub(crate) fn backward(
        &self,
        place: &Place<'_>,
        learned: &mut Weights,
        planned: &Planned<'_>,
        kept: KeptOnDevice<'_>,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let (device, gradient, n) = (place.device, &mut learned.gradient, kept.n);
        device.after(place.side)?;
        let (out, rows) = ((&mut *gradient, self.start.clone()), (&tables.start, Columns::all(1)));
        device.add_to_rows(out, (kept.states, 0..n), rows, (n, 1))?;
        let out = (&mut *gradient, self.emission.clone());
        let sizes = (kept.k, self.k);
        place.emissions.add_to(device, out, &tables.emission, kept.states, sizes)?;
        tables.transition_gradient(device, planned, (kept.k, n))?;
        let out = (gradient, self.transition.clone());
        device.add_to_square(out, &tables.logits, kept.states, (n, self.n_states))
    }
}
