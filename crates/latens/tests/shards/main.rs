//! Models of 1, 2 and 7 shards are those of one process.

mod bad_input;
mod models;
mod runs;
