//! Learning from counts: an initial model by subspace identification, then EM.

pub(crate) mod pseudo_counts;
pub(crate) mod moments;
pub(crate) mod subspace;
pub(crate) mod e_step;
pub(crate) mod m_step;
pub(crate) mod likelihood;
pub(crate) mod memory_budget;
pub(crate) mod state;
pub(crate) mod checkpoint;
pub(crate) mod trainer;
pub(crate) mod facts;
