//! Linear dynamical systems.
#![allow(dead_code)]
mod dense;
mod solvers;
mod steady;
mod panel;
mod covariances;
mod moments;
mod asos;
mod canonical;
mod subspace;
#[cfg(test)]
mod tests;
