use crate::lags::MAX_LAGS;
use crate::ngrams::MAX_ORDER;
use latens_store::ContainerError;
use latens_store::StorageError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A text could not be counted, or counts could not be merged, written or opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CountError {
    /// N-grams of no word, or of too many.
    #[error("the order of n-grams must be from 1 to {MAX_ORDER}, got {order}")]
    Order {
        /// The order that was asked for.
        order: usize,
    },
    /// So many different words that an n-gram of their numbers is too long.
    #[error("{order}-grams can be counted for at most {limit} different words, got {n_words}")]
    TooManyWords {
        /// The order that was asked for.
        order: usize,
        /// How many different words there are.
        n_words: usize,
        /// How many there may be for this order.
        limit: usize,
    },
    /// No lag, or too many.
    #[error("the number of lags must be from 1 to {MAX_LAGS}, got {n_lags}")]
    Lags {
        /// The number that was asked for.
        n_lags: usize,
    },
    /// Counts that were not made in the same way.
    #[error("cannot merge counts: part {part} {difference}")]
    Unlike {
        /// Which of the parts differs from the first one, counted from 1.
        part: usize,
        /// How it differs.
        difference: String,
    },
    /// A merger of no parts.
    #[error("cannot merge counts: there are none")]
    NothingToMerge,
    /// A count that needs more than 64 bits.
    #[error("a count is larger than 2^64 - 1")]
    Overflow,
    /// Temporary files cannot be written or read.
    #[error("cannot keep counts in the temporary folder `{}`", folder.display())]
    Spill {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of counts that is damaged, foreign or newer, or cannot be read.
    #[error(transparent)]
    File(#[from] ContainerError),
    /// A file that cannot be written or mapped.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The watch said to stop.
    #[error("counting was interrupted")]
    Interrupted,
}

impl CountError {
    /// For `map_err`: a temporary file in `folder` failed.
    pub(crate) fn spill(folder: &Path) -> impl Fn(io::Error) -> CountError + use<> {
        let folder = folder.to_owned();
        move |source| CountError::Spill { folder: folder.clone(), source }
    }
}
