pub(crate) mod template;
pub(crate) mod encoders;
pub(crate) mod examples;
pub(crate) mod lists;
