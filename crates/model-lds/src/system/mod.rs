//! The linear dynamical system itself: its matrices in the canonical gauge, and its steady state.

pub(crate) mod steady_state;
pub(crate) mod canonical;
