//! Neural networks.

mod formats;
mod layers;
mod norms;
mod recurrent;
mod words;
mod optimizer;
