pub(crate) mod layout;
pub(crate) mod fitted;
