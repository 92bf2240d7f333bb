//! Very large hidden Markov models (Chiu & Rush 2020) and the language models they are compared with.

pub(crate) mod language;
pub(crate) mod baselines;
pub(crate) mod ablation;
pub(crate) mod dropout;
pub(crate) mod tagging;
pub(crate) mod distillation;
pub(crate) mod control;
pub(crate) mod kept_models;
