//! Which states may emit which words.

pub(crate) mod state_space;
pub(crate) mod kept_lists;
