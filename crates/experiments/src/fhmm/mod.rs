pub(crate) mod tagging;
