//! Statistics of a sweep.

/// Counts of the events in a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// Number of tokens that changed their topic.
    pub(crate) n_changed: u64,
    /// Number of proposals of another topic, for Metropolis–Hastings samplers.
    pub(crate) n_proposed: u64,
    /// Number of accepted proposals.
    pub(crate) n_accepted: u64,
    /// Number of topics recomputed from scratch for lack of precision.
    pub(crate) n_rebuilt: u64,
}
