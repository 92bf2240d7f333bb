//! What the parts of a step on the device share.

use crate::space::state_space::StateSpace;
use latens_cuda::{Array, CudaError, Device, Emissions, Precision};
use latens_nn::Layout;
use std::ops::Range;

/// The weights and their gradient.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) weights: Array<f32>,
    pub(crate) gradient: Array<f32>,
}

/// The number of states in a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The number of states per cluster.
    pub(crate) k: usize,
    /// The number of all states.
    pub(crate) n: usize,
    /// The number of states that transitions start from. They come first.
    pub(crate) n_from: usize,
}

/// The number format of transition logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogitFormat {
    Single,
    Half,
}

/// The streams and the precision of a step.
pub(crate) struct StepContext<'a> {
    pub(crate) device: &'a Device,
    /// The side stream, which computes starts and emissions in parallel with transitions.
    pub(crate) side: &'a Device,
    pub(crate) emissions: &'a Emissions,
    pub(crate) precision: Precision,
}

/// A side stream, whose work overlaps with that of the device.
#[expect(unsafe_code, reason = "only callers can order the work of two streams")]
pub(crate) fn side_stream(device: &Device) -> Result<Device, CudaError> {
    // SAFETY: the learner and the estimator use both streams only with `Device::after` between any two uses of an array
    // one of which writes to it, and each ends its work on the side with `device.after(side)`.
    unsafe { device.new_stream() }
}

/// The words that each state may emit.
pub(crate) fn emissions(device: &Device, space: &StateSpace) -> Result<Emissions, CudaError> {
    let clusters: Vec<_> = (0..space.n_clusters()).map(|c| space.slots(c)).collect();
    let mut emissions = Emissions::new(device, &clusters)?;
    if let Some(lists) = &space.lists {
        emissions.limit(device, space.n_states(), |slot| lists.of(slot))?;
    }
    Ok(emissions)
}

/// The range of the weights called `name`.
pub(crate) fn range(layout: &Layout, name: &str) -> Range<usize> {
    let mut entries = layout.entries();
    entries.find(|entry| entry.0 == name).expect("the layout has weights of this name").2
}
