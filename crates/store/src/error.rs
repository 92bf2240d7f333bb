use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file could not be written or mapped.
#[derive(Debug, Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct StorageError {
    /// The action that failed, such as `read` or `write`.
    pub action: &'static str,
    /// Path of the file.
    pub path: PathBuf,
    /// Error from the operating system.
    #[source]
    pub source: io::Error,
}

impl StorageError {
    /// Returns a function for `map_err` that adds the failed action and the path.
    pub fn new(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> StorageError + use<> {
        let path = path.to_owned();
        move |source| StorageError { action, path, source }
    }
}
