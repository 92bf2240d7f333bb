//! Mini-batches as the device sees them.

pub(crate) mod listed_plan;
pub(crate) mod batch_plan;
pub(crate) mod device_plan;
