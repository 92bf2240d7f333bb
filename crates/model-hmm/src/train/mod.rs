//! Training, by gradient or by Baum–Welch.

pub(crate) mod tagged_text;
pub(crate) mod batches;
pub(crate) mod learner;
pub(crate) mod gradient;
pub(crate) mod counts;
pub(crate) mod baum_welch;
pub(crate) mod device;
