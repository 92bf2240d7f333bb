//! Hidden Markov models: softmax tables, the scaled recursions and expected counts.
//!
//! The words of a cluster share the k states of the cluster, so transitions come in blocks of k × k. A slot is the place
//! of a word in the table of emissions; the slots of a cluster are consecutive.

mod transition;
mod exponentials;
mod emission;
mod recursion;
mod lockstep;
mod masses;
mod paths;
mod listed;
mod counts;

pub use emission::{ClusterOrder, ClusterSize, Emissions};
pub use exponentials::PowerBuffers;
pub use listed::{Listed, StateTokens};
pub use lockstep::Steps;
pub use recursion::{Groups, MAX_STATES, Sequences};
pub use transition::{BlockShape, Blocks};
