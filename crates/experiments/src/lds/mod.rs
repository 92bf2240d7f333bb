//! Linear dynamical systems (Belanger & Kakade 2015).

pub(crate) mod dynamics;
pub(crate) mod rnn;
pub(crate) mod pos;
pub(crate) mod ner;
pub(crate) mod representations;
