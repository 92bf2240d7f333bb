use crate::limits::{MAX_LAGS, MAX_ORDER};
use latens_store::ContainerError;
use latens_store::StorageError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Counting a text failed, or counts could not be merged, written or opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CountError {
    /// The n-gram order is 0 or too large.
    #[error("the order of n-grams must be from 1 to {MAX_ORDER}, got {order}")]
    Order {
        /// The requested order.
        order: usize,
    },
    /// The vocabulary is too large for n-grams of this order.
    #[error("{order}-grams can be counted for at most {limit} distinct words, got {n_words}")]
    TooManyWords {
        /// The requested order.
        order: usize,
        /// Number of distinct words.
        n_words: usize,
        /// Maximum number of distinct words for this order.
        limit: usize,
    },
    /// The number of lags is 0 or too large.
    #[error("the number of lags must be from 1 to {MAX_LAGS}, got {n_lags}")]
    Lags {
        /// The requested number of lags.
        n_lags: usize,
    },
    /// The counts to merge have different settings.
    #[error("cannot merge counts: part {part} {difference}")]
    Unlike {
        /// Number of the part that differs from the first one, counted from 1.
        part: usize,
        /// Description of the difference.
        difference: String,
    },
    /// There are no counts to merge.
    #[error("cannot merge counts: none were given")]
    NothingToMerge,
    /// A count does not fit in 64 bits.
    #[error("a count is larger than 2^64 - 1")]
    Overflow,
    /// Temporary files cannot be written or read.
    #[error("cannot write counts to the temporary folder `{}`", folder.display())]
    Spill {
        /// Folder for temporary files.
        folder: PathBuf,
        /// Error from the operating system.
        #[source]
        source: io::Error,
    },
    /// A file of counts is damaged, foreign or newer, or cannot be read.
    #[error(transparent)]
    File(#[from] ContainerError),
    /// A file cannot be written or mapped.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The watch stopped the count.
    #[error("counting was interrupted")]
    Interrupted,
}

impl CountError {
    /// Returns a function for `map_err` that names the folder of temporary files.
    pub(crate) fn spill(folder: &Path) -> impl Fn(io::Error) -> CountError + use<> {
        let folder = folder.to_owned();
        move |source| CountError::Spill { folder: folder.clone(), source }
    }
}
