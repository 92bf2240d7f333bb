//! The two clustering algorithms, and the hierarchy that both end with.

pub(crate) mod task;
pub(crate) mod merger_losses;
pub(crate) mod loss_table;
pub(crate) mod hierarchy;
pub(crate) mod greedy;
pub(crate) mod word_context;
pub(crate) mod classes;
pub(crate) mod exchange;
