//! Expectations over the next state, on a device that holds the transitions.

#[cfg(feature = "cuda")]
use crate::cuda::expectations::DeviceTransitions;
use crate::model::Hmm;
use latens_model::{Device, DeviceError};

/// A model whose expectations over the next state are computed on a device.
pub struct Expectations<'a> {
    hmm: &'a Hmm,
    #[cfg(feature = "cuda")]
    on_device: Option<DeviceTransitions>,
}

impl<'a> Expectations<'a> {
    /// Computes on the CPU.
    pub fn new(hmm: &'a Hmm) -> Expectations<'a> {
        Expectations {
            hmm,
            #[cfg(feature = "cuda")]
            on_device: None,
        }
    }

    /// Computes on a device. A GPU gets a copy of all transitions, with 4·Z² bytes for Z states.
    pub fn on(hmm: &'a Hmm, device: Device) -> Result<Expectations<'a>, DeviceError> {
        match device {
            Device::Cpu => Ok(Expectations::new(hmm)),
            #[cfg(feature = "cuda")]
            Device::Cuda => {
                let on_device = DeviceTransitions::new(hmm).map_err(DeviceError::cuda)?;
                Ok(Expectations { hmm, on_device: Some(on_device) })
            }
            #[cfg(not(feature = "cuda"))]
            Device::Cuda => Err(DeviceError::built_without_cuda()),
        }
    }

    /// The model.
    pub fn hmm(&self) -> &'a Hmm {
        self.hmm
    }

    /// [`Hmm::expectations`] in single precision, on the device.
    ///
    /// # Panics
    /// If the lengths differ, or are not a multiple of the number of states.
    pub fn of(&self, vectors: &[f32], out: &mut [f32]) -> Result<(), DeviceError> {
        #[cfg(feature = "cuda")]
        if let Some(on_device) = &self.on_device {
            return on_device.expectations(vectors, out).map_err(DeviceError::cuda);
        }
        self.hmm.expectations(vectors, out);
        Ok(())
    }
}
