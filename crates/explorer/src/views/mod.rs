//! The queries of the page, one file per kind of view. Each takes a model and the arguments of a query and returns
//! JSON.

pub(crate) mod args;
pub(crate) mod text;
pub(crate) mod topic_table;
pub(crate) mod topics;
pub(crate) mod documents;
pub(crate) mod language;
pub(crate) mod hmm;
pub(crate) mod fhmm;
pub(crate) mod tags;
pub(crate) mod brown;
pub(crate) mod vectors;
pub(crate) mod log;
