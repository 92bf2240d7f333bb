pub(crate) mod score;
pub(crate) mod compare;
