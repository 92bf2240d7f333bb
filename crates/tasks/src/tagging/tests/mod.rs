//! Tests of taggers: gradients by finite differences, marginals by brute force, training, files and checkpoints.

mod fixtures;
mod objective;
mod prediction;
mod together;
mod on_gpu;
mod fitting;
mod files;
mod rows;
mod encoders;
