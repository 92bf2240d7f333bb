//! Products with the transitions of a fitted model.

use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_cuda::{Array, CudaError, Device, Precision, ProductShape, Transposed};
use std::sync::{Mutex, PoisonError};

/// a(z'|z) of all pairs of states in the memory of a device.
pub(crate) struct DeviceTransitions {
    device: Device,
    n: usize,
    /// Z × Z.
    transitions: Array<f32>,
    /// The vectors of a product, and its result.
    buffers: Mutex<[Array<f32>; 2]>,
}

impl DeviceTransitions {
    /// Copies the transitions, some rows at a time.
    pub(crate) fn new(hmm: &Hmm) -> Result<DeviceTransitions, CudaError> {
        let (k, m, n) = (hmm.space.k, hmm.space.n_clusters(), hmm.n_states());
        let device = Device::open()?;
        let mut transitions = device.zeros(n * n)?;
        let mut rows = vec![0.0; k * n];
        for from in 0..m {
            hmm.transition_rows(StateSet::Cluster(from), &mut rows);
            device.write_at(&rows, &mut transitions, from * k * n)?;
        }
        let buffers = Mutex::new([device.zeros(1)?, device.zeros(1)?]);
        Ok(DeviceTransitions { device, n, transitions, buffers })
    }

    /// See [`Hmm::expectations`].
    pub(crate) fn expectations(&self, vectors: &[f32], out: &mut [f32]) -> Result<(), CudaError> {
        let DeviceTransitions { device, n, transitions, buffers } = self;
        assert!(vectors.len() == out.len() && out.len().is_multiple_of(*n), "rows of all states");
        let mut buffers = buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let [on_device, result] = &mut *buffers;
        // The result is downloaded as a whole.
        for buffer in [&mut *on_device, &mut *result] {
            if buffer.len() != vectors.len() {
                *buffer = device.zeros(vectors.len())?;
            }
        }
        device.write(vectors, on_device)?;
        device.multiply(
            (result, 0..out.len()),
            0.0,
            (on_device, 0..vectors.len(), Transposed::No),
            (transitions, 0..n * n, Transposed::Yes),
            ProductShape { n: vectors.len() / n, m: *n, k: *n },
            Precision::Full,
        )?;
        out.copy_from_slice(&device.download(result)?);
        Ok(())
    }
}
