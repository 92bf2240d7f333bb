pub(crate) mod topics;
pub(crate) mod speed;
pub(crate) mod oov;
