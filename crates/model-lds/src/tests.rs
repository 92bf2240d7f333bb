//! Invariants and golden numbers; see the files below.
mod toy;
mod golden;
mod invariants;
mod filters;
mod smoother;
