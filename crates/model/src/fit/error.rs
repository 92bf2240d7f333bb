//! Why a model could not be fitted.

use crate::fit::checkpoint::CheckpointError;
use crate::fit::device::Device;
use crate::params::ParamError;
use std::error::Error as StdError;
use thiserror::Error;

/// Why a model could not be fitted; the same for all trainers.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FitError {
    /// The watcher asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A parameter is wrong, perhaps for this data only.
    #[error(transparent)]
    Params(#[from] ParamError),
    /// The text is too small for what is to be learned.
    #[error("not enough text to learn from: needs {needs}, has {has}")]
    NotEnoughData {
        /// What is needed: `at least 2 words`.
        needs: String,
        /// What there is: `1`.
        has: String,
    },
    /// The checkpoint does not fit these parameters or this data.
    #[error("cannot go on from the checkpoint")]
    Checkpoint(#[from] CheckpointError),
    /// The loss is no longer a number, and no good model came before.
    #[error("the loss is no longer a number, in epoch {epoch}; lower `{lower}`")]
    Diverged {
        /// The epoch, counted from 1.
        epoch: usize,
        /// The parameter to lower.
        lower: &'static str,
    },
    /// The device that was asked for cannot be used.
    #[error("cannot use the device `{device}`: {problem}")]
    Device {
        /// The device.
        device: Device,
        /// What is missing.
        problem: String,
    },
    /// A step on the way failed: counting, scratch files.
    #[error("cannot {action}")]
    Step {
        /// What was tried: `count n-grams`.
        action: &'static str,
        /// What went wrong.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl FitError {
    /// For `map_err`: the step `action` failed.
    pub fn step<E: StdError + Send + Sync + 'static>(
        action: &'static str,
    ) -> impl FnOnce(E) -> FitError {
        move |source| FitError::Step { action, source: Box::new(source) }
    }

    /// There is too little text; `needs` and `has` as in "needs at least 2 words, has 1".
    pub fn not_enough_data(needs: impl ToString, has: impl ToString) -> FitError {
        FitError::NotEnoughData { needs: needs.to_string(), has: has.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_keeps_its_cause() {
        let failed: Result<(), _> = Err(std::io::Error::other("the disk is full"));
        let error = failed.map_err(FitError::step("count n-grams")).unwrap_err();
        assert_eq!(error.to_string(), "cannot count n-grams");
        assert_eq!(error.source().unwrap().to_string(), "the disk is full");
    }

    #[test]
    fn too_little_text_is_told_with_numbers() {
        let error = FitError::not_enough_data("at least 2 words", 1);
        let expected = "not enough text to learn from: needs at least 2 words, has 1";
        assert_eq!(error.to_string(), expected);
    }
}
