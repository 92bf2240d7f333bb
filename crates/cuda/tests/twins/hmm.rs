//! Hidden Markov models.

mod transition;
mod transition_half;
mod exponentials;
mod emission;
mod recursion;
mod groups;
mod lockstep;
mod masses;
mod paths;
mod listed;
mod counts;
