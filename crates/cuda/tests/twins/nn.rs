//! Neural networks.

mod formats;
mod layers;
mod norms;
mod recurrent;
mod recurrent_products;
mod words;
mod optimizer;
