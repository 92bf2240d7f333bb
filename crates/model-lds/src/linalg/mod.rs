//! Linear algebra: small dense matrices, and tall matrices with one row per word.

pub(crate) mod error;
pub(crate) mod dense;
pub(crate) mod lu;
pub(crate) mod solvers;
pub(crate) mod panel;
pub(crate) mod sums;
pub(crate) mod quantization;
pub(crate) mod compact_panel;
pub(crate) mod compact_products;
