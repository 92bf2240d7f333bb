//! Errors of fitting.

use crate::fit::checkpoint::CheckpointError;
use crate::fit::device::Device;
use crate::fit::memory::{Bytes, MemoryLimit};
use crate::params::ParamError;
use std::error::Error as StdError;
use thiserror::Error;

/// A model could not be fitted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FitError {
    /// The progress callback stopped the training.
    #[error("interrupted")]
    Interrupted,
    /// A parameter is invalid, possibly only for this data.
    #[error(transparent)]
    Params(#[from] ParamError),
    /// The training text is too small.
    #[error("not enough text to learn from: needs {needs}, has {has}")]
    NotEnoughData {
        /// The requirement: `at least 2 words`.
        needs: String,
        /// The actual size: `1`.
        has: String,
    },
    /// The training text is too large.
    #[error("too much text to learn from: allows {allows}, has {has}")]
    TooMuchData {
        /// The limit: `at most 4294967295 occurrences of a word`.
        allows: String,
        /// The actual size.
        has: String,
    },
    /// The checkpoint does not match the parameters or the data.
    #[error("cannot resume from the checkpoint")]
    Checkpoint(#[from] CheckpointError),
    /// The loss diverged before any usable weights were found.
    #[error("the loss diverged in epoch {epoch}; lower `{lower}`")]
    Diverged {
        /// One-based index of the epoch.
        epoch: usize,
        /// The parameter to lower.
        lower: &'static str,
    },
    /// The model gives the validation text a perplexity that is not finite, or would give it one.
    #[error("the model cannot score the validation text: {problem}")]
    Unscorable {
        /// The reason, and what to change: "its perplexity is not finite after epoch 1; lower `learning_rate`".
        problem: String,
    },
    /// The requested device cannot be used.
    #[error("cannot use the device `{device}`: {problem}")]
    Device {
        /// The device.
        device: Device,
        /// The reason.
        problem: String,
    },
    /// Training would need more memory than there is. [`crate::FitBuilder::force`] trains anyway.
    #[error(
        "training needs about {} of memory, of which {} for {largest}, but only {} are available {limit}",
        Bytes(*needed), Bytes(*largest_bytes), Bytes(*available)
    )]
    TooLittleMemory {
        /// Estimated memory in bytes, besides the data.
        needed: u64,
        /// Memory in bytes that the process can still allocate.
        available: u64,
        /// What limits it.
        limit: MemoryLimit,
        /// The largest part: `transitions`.
        largest: &'static str,
        /// Its size in bytes.
        largest_bytes: u64,
        /// The parameter to lower; `None` if only the data matters.
        lower: Option<&'static str>,
    },
    /// A step of the training failed, such as counting or writing a temporary file.
    #[error("cannot {action}")]
    Step {
        /// The attempted action: `count n-grams`.
        action: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl FitError {
    /// Wraps the cause of a failed step; for use with `map_err`.
    pub fn step<E: StdError + Send + Sync + 'static>(
        action: &'static str,
    ) -> impl FnOnce(E) -> FitError {
        move |source| FitError::Step { action, source: Box::new(source) }
    }

    /// An error for too little text: "needs at least 2 words, has 1".
    pub fn not_enough_data(needs: impl ToString, has: impl ToString) -> FitError {
        FitError::NotEnoughData { needs: needs.to_string(), has: has.to_string() }
    }

    /// An error for too much text: "allows at most 10 words, has 11".
    pub fn too_much_data(allows: impl ToString, has: impl ToString) -> FitError {
        FitError::TooMuchData { allows: allows.to_string(), has: has.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_reports_its_cause() {
        let failed: Result<(), _> = Err(std::io::Error::other("the disk is full"));
        let error = failed.map_err(FitError::step("count n-grams")).unwrap_err();
        assert_eq!(error.to_string(), "cannot count n-grams");
        assert_eq!(error.source().unwrap().to_string(), "the disk is full");
    }

    #[test]
    fn the_message_for_too_little_text_contains_both_sizes() {
        let error = FitError::not_enough_data("at least 2 words", 1);
        let expected = "not enough text to learn from: needs at least 2 words, has 1";
        assert_eq!(error.to_string(), expected);
    }
}
