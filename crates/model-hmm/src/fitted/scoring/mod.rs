//! Log-probabilities of text: word by word, and of many sentences together.

mod log_filter;
mod scorer;
mod together;
mod role;
