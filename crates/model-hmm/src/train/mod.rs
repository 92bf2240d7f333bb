//! Training by gradient descent or by Baum–Welch, on the CPU or on a CUDA device.

pub(crate) mod tagged_text;
pub(crate) mod teacher;
pub(crate) mod task;
pub(crate) mod device;
pub(crate) mod gradient;
pub(crate) mod baum_welch;
