//! Tests of the whole chain of computations, in double precision.

mod toy;
mod fixtures;
mod covariances;
mod golden;
mod invariants;
mod filters;
mod smoother;
