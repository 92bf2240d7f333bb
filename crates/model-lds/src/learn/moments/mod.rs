//! Covariances of words a few tokens apart, implicit in their counts.

pub(crate) mod covariances;
pub(crate) mod text_moments;
pub(crate) mod hankel;
pub(crate) mod lag_pass;
pub(crate) mod products;
