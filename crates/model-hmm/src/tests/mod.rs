//! Tests of the parts together: brute force, finite differences, equivalent models.

mod toy;
mod toy_models;
mod recursion;
mod state_products;
mod lists;
mod dropout;
mod gradients;
mod fitted;
mod together;
mod inspect;
mod tagger;
