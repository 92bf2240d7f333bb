pub(crate) mod transition;
pub(crate) mod emission;
pub(crate) mod recursion;
pub(crate) mod listed;
pub(crate) mod lockstep;
pub(crate) mod counts;
