//! What the fuzz targets do, as ordinary functions of bytes: [`targets::TARGETS`].
//!
//! A reader may reject anything, but it may not panic, hang, or ask for memory out of proportion. What it accepts is used
//! as a program would use it, and must keep the promises of its type: sentences end where they should, no answer is NaN,
//! and what was read can be saved and opened again.
//!
//! The package in `fuzz/` runs the targets with libFuzzer. The tests of this crate run them over [`seeds`] and a fixed
//! set of [mutations](mutation::mutated) of these, which needs no fuzzer.

pub mod forge;
pub mod outline;
pub mod mutation;
pub mod scratch;
pub mod use_text;
pub mod use_model;
pub mod use_counts;
pub mod trainings;
pub mod targets;
pub mod seeds;
