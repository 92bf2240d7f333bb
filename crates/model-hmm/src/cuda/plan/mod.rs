//! The layout of mini-batches on the device.

pub(crate) mod listed_plan;
pub(crate) mod kept_plan;
pub(crate) mod batch_plan;
pub(crate) mod device_plan;
