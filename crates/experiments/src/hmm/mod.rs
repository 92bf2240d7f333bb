pub(crate) mod language;
pub(crate) mod baselines;
pub(crate) mod ablation;
pub(crate) mod tagging;
pub(crate) mod kept_models;
