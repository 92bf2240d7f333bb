pub(crate) mod chain;
pub(crate) mod local;
