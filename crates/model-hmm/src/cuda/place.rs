//! What all parts of a step on the device share.

use crate::space::state_space::StateSpace;
use latens_cuda::{Array, CudaError, Device, Emissions, Precision};
use latens_nn::Layout;
use std::ops::Range;

/// Weights and their derivatives.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) weights: Array<f32>,
    pub(crate) gradient: Array<f32>,
}

/// Where a step is done, and how exactly.
pub(crate) struct Place<'a> {
    pub(crate) device: &'a Device,
    /// Where starts and emissions are computed while transitions are.
    pub(crate) side: &'a Device,
    pub(crate) emissions: &'a Emissions,
    pub(crate) precision: Precision,
}

/// A stream for work that overlaps with that of the device.
#[expect(unsafe_code, reason = "only callers can order the work of two streams")]
pub(crate) fn side_stream(device: &Device) -> Result<Device, CudaError> {
    // SAFETY: the learner and the estimator use both streams only with `Device::after` between any two uses of an array
    // one of which writes to it, and each ends its work on the side with `device.after(side)`.
    unsafe { device.new_stream() }
}

/// Which states emit which words.
pub(crate) fn emissions(device: &Device, space: &StateSpace) -> Result<Emissions, CudaError> {
    let clusters: Vec<_> = (0..space.n_clusters()).map(|c| space.slots(c)).collect();
    let mut emissions = Emissions::new(device, &clusters)?;
    if let Some(lists) = &space.lists {
        emissions.limit(device, space.n_states(), |slot| lists.of(slot))?;
    }
    Ok(emissions)
}

/// Where weights lie.
pub(crate) fn range(layout: &Layout, name: &str) -> Range<usize> {
    let mut entries = layout.entries();
    entries.find(|entry| entry.0 == name).expect("weights of this name").2
}
