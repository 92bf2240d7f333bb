pub(crate) mod runner;
