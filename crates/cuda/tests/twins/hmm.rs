//! Hidden Markov models.

mod transition;
mod transition_half;
mod emission;
mod recursion;
mod groups;
mod lockstep;
mod listed;
mod counts;
