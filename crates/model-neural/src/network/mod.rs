//! The networks: their layers, what training drops of them, how text is divided into batches, and initial weights.

pub(crate) mod batches;
pub(crate) mod masks;
pub(crate) mod definition;
pub(crate) mod bounds;
pub(crate) mod first_weights;
