//! The state space: which states may emit which words.

pub(crate) mod clusters;
pub(crate) mod subset;
pub(crate) mod state_lists;
pub(crate) mod unknown_share;
pub(crate) mod state_space;
pub(crate) mod state_set;
pub(crate) mod kept_states;
pub(crate) mod kept_lists;
pub(crate) mod device_limits;
