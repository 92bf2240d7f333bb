//! The scalar parameterization on the device; see `crate::weights::scalar`.

use crate::cuda::context::{Sizes, StepContext, Weights, range};
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::tables::Tables;
use crate::cuda::weights::state_vectors::KeptOnDevice;
use latens_cuda::{Array, BlockShape, ClusterSize, Columns, CudaError, PickedColumns, Shape};
use latens_nn::Layout;
use std::ops::Range;

/// The ranges of the logits among the weights.
pub(crate) struct Logits {
    start: Range<usize>,
    transition: Range<usize>,
    emission: Range<usize>,
    /// The numbers of states of the whole model.
    sizes: BlockShape,
}

impl Logits {
    /// The logits of a model with this layout of weights.
    pub(crate) fn new(layout: &Layout, sizes: BlockShape) -> Logits {
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
        let (side, n) = (context.side, kept.plan.n());
        side.after(context.device)?;
        let (out, table) = ((&mut tables.start, Columns::all(1)), (weights, self.start.clone()));
        side.gather_rows(out, table, kept.states(), Shape { rows: n, columns: 1 })?;
        let table = (weights, self.emission.clone());
        context.emissions.gather(
            side,
            &mut tables.emission,
            table,
            (kept.ints, &kept.order()),
            ClusterSize { kept: kept.plan.k, own: self.sizes.k },
        )
    }

    /// Gathers the logits of transitions from some states to all kept states.
    pub(crate) fn logits(
        &self,
        context: &StepContext<'_>,
        weights: &Array<f32>,
        rows: Range<usize>,
        (kept, n): (&Array<u32>, usize),
        tables: &mut Tables,
    ) -> Result<(), CudaError> {
        let device = context.device;
        device.reserve(&mut tables.logits, rows.len() * n)?;
        let (out, table) = (&mut tables.logits, (weights, self.transition.clone()));
        device.gather_square(out, table, kept, rows, PickedColumns { n, stride: self.sizes.n })
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
        let (device, gradient) = (context.device, &mut learned.gradient);
        let (k, n, n_from) = (kept.plan.k, kept.plan.n(), kept.plan.n_from);
        device.after(context.side)?;
        let (out, rows) = ((&mut *gradient, self.start.clone()), (&tables.start, Columns::all(1)));
        device.add_to_rows(out, kept.states(), rows, Shape { rows: n, columns: 1 })?;
        let out = (&mut *gradient, self.emission.clone());
        let (states, sizes) =
            ((kept.ints, &kept.order()), ClusterSize { kept: k, own: self.sizes.k });
        context.emissions.add_to(device, out, &tables.emission, states, sizes)?;
        tables.transition_gradient(device, planned, Sizes { k, n, n_from })?;
        let out = (gradient, self.transition.clone());
        let shape = PickedColumns { n, stride: self.sizes.n };
        device.add_to_square(out, &tables.logits, kept.ints, n_from, shape)
    }
}
