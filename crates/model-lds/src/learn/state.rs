//! The input, the state and the result of training.

use crate::learn::e_step::StateMoments;
use crate::learn::moments::text_moments::Moments;
use crate::params::LdsParams;
use crate::system::canonical::Canonical;
use latens_corpus::Sentences;
use latens_model::Valid;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The input of training.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<LdsParams>,
    pub(crate) moments: &'a Moments<f32>,
    /// Held-out text for early stopping.
    pub(crate) valid: Option<&'a Sentences>,
    /// Fingerprint of the training data, for checkpoints.
    pub(crate) fingerprint: u64,
    /// Model kind, for checkpoints.
    pub(crate) kind: &'static str,
}

/// A model with the second moments of its states.
pub(crate) struct Measured {
    /// Shared with the trainer where possible, to keep a single copy in memory.
    pub(crate) model: Arc<Canonical<f32>>,
    pub(crate) moments: StateMoments,
}

/// The result of training.
pub(crate) struct Learned {
    pub(crate) best: Measured,
    pub(crate) state: TrainingState,
}

/// The state of training, apart from the models; saved in checkpoints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrainingState {
    /// Number of EM iterations so far.
    pub(crate) iteration: usize,
    pub(crate) dim: usize,
    /// Iteration of the best model.
    pub(crate) best_iteration: usize,
    /// Gain of the best model.
    pub(crate) gain: f64,
    /// Gain of the best model on held-out text.
    pub(crate) valid_gain: Option<f64>,
    /// Gain of the current model.
    pub(crate) last_gain: f64,
    /// Number of clipped singular values, summed over all iterations.
    pub(crate) n_clipped: usize,
    /// Largest singular value of the covariances, relative to its upper bound.
    pub(crate) correlation: f64,
    /// Largest relative decrease of the gain in one iteration.
    pub(crate) worst_fall: f64,
    /// Reason why EM stopped early.
    pub(crate) stopped: Option<String>,
    /// Training time in seconds.
    pub(crate) seconds: f64,
}
