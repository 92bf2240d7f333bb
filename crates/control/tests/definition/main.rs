//! Exact inference against brute force: all texts of up to six words, for every kind of constraint.

mod constraints;
mod extremes;
mod kinds;
mod steering;
mod tables;
mod toy;
