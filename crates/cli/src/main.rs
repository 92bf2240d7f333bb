//! The latens command-line program.
fn main() {}
