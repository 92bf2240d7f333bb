//! The scalar parameterization on the device; see `crate::weights::scalar`.

use crate::cuda::context::{Sizes, StepContext, Weights, range};
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::tables::Tables;
use crate::cuda::weights::state_vectors::KeptOnDevice;
use latens_cuda::{Array, Columns, CudaError};
use latens_nn::Layout;
use std::ops::Range;

/// The ranges of the logits among the weights.
pub(crate) struct Logits {
    start: Range<usize>,
    transition: Range<usize>,
    emission: Range<usize>,
    /// The sizes of the whole model.
    sizes: Sizes,
}

impl Logits {
    /// The logits of a model with this layout of weights.
    pub(crate) fn new(layout: &Layout, sizes: Sizes) -> Logits {
        Logits {
            start: range(layout, "start"),
            transition: range(layout, "transition"),
            emission: range(layout, "emission"),
            sizes,
        }
    }

    /// Gathers the logits of starts and emissions on the side stream.
    pub(crate) fn forward(
        &self,
        context: &StepContext<'_>,
        weights: &Array<f32>,
        kept: KeptOnDevice<'_>,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let (side, n) = (context.side, kept.n);
        side.after(context.device)?;
        let (out, table) = ((&mut tables.start, Columns::all(1)), (weights, self.start.clone()));
        side.gather_rows(out, table, (kept.states, 0..n), (n, 1))?;
        let table = (weights, self.emission.clone());
        context.emissions.gather(
            side,
            &mut tables.emission,
            table,
            kept.states,
            (kept.k, self.sizes.k),
        )
    }

    /// Gathers the logits of transitions from some states to all kept states.
    pub(crate) fn logits(
        &self,
        context: &StepContext<'_>,
        weights: &Array<f32>,
        rows: Range<usize>,
        kept: KeptOnDevice<'_>,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let (device, n) = (context.device, kept.n);
        device.reserve(&mut tables.logits, rows.len() * n)?;
        let (out, table) = (&mut tables.logits, (weights, self.transition.clone()));
        device.gather_square(out, table, kept.states, rows, (n, self.sizes.n))
    }

    /// Adds the derivatives of the logits to the gradient.
    pub(crate) fn backward(
        &self,
        context: &StepContext<'_>,
        learned: &mut Weights,
        planned: &DevicePlan<'_>,
        kept: KeptOnDevice<'_>,
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let (device, gradient, n) = (context.device, &mut learned.gradient, kept.n);
        device.after(context.side)?;
        let (out, rows) = ((&mut *gradient, self.start.clone()), (&tables.start, Columns::all(1)));
        device.add_to_rows(out, (kept.states, 0..n), rows, (n, 1))?;
        let out = (&mut *gradient, self.emission.clone());
        let sizes = (kept.k, self.sizes.k);
        context.emissions.add_to(device, out, &tables.emission, kept.states, sizes)?;
        tables.transition_gradient(device, planned, Sizes { k: kept.k, n })?;
        let out = (gradient, self.transition.clone());
        device.add_to_square(out, &tables.logits, kept.states, (n, self.sizes.n))
    }
}
