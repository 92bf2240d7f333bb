//! Log-linear emissions: the normalizer of every joint state, and the sums that couple the layers of a token.

pub(crate) mod partition;
pub(crate) mod coupling;
