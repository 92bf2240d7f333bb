pub(crate) mod derivative;
pub(crate) mod layers;
pub(crate) mod norms;
pub(crate) mod optimizer;
pub(crate) mod recurrent;
