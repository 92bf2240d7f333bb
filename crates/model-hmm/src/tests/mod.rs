//! Tests of the parts together: brute force, finite differences, equivalent models.

mod toy;
mod recursion;
mod lists;
mod dropout;
mod gradients;
mod fitted;
mod tagger;
