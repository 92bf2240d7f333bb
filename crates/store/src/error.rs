use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file could not be written or mapped.
#[derive(Debug, Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct StorageError {
    /// What was tried: `write`, `read` …
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl StorageError {
    /// For `map_err`: `action` on `path` failed.
    pub fn new(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> StorageError + use<> {
        let path = path.to_owned();
        move |source| StorageError { action, path, source }
    }
}
