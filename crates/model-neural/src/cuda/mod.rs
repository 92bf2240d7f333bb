//! Networks on a CUDA device.

mod layers;
mod recurrent;
mod learner;
mod drawer;

pub(crate) use drawer::CudaDrawer;
pub(crate) use learner::{CudaLearner, device_error, log_prob};
