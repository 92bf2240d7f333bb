//! Factorial hidden Markov models of text.

mod shape;
mod tensor;
mod parameters;
mod chain;
mod table;
mod coupling;
mod mean_field;
mod joint;
#[cfg(test)]
mod tests;
