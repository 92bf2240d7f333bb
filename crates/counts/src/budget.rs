use std::env;
use std::path::PathBuf;

/// Memory limit for counting, and the folder for temporary files beyond it.
///
/// The limit does not include the text, a few arrays of the size of the vocabulary, and buffers. Counts
/// that exceed the limit stay in a memory-mapped temporary file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Memory limit in bytes.
    pub bytes: usize,
    /// Folder for temporary files, which are unnamed or lose their name as soon as they are mapped.
    pub folder: PathBuf,
}

impl Default for Budget {
    /// 2 GiB, and the folder of the system for temporary files.
    fn default() -> Self {
        Budget { bytes: 2 << 30, folder: env::temp_dir() }
    }
}

impl Budget {
    /// Sets [`bytes`](field@Self::bytes).
    #[must_use]
    pub fn bytes(self, bytes: usize) -> Budget {
        Budget { bytes, ..self }
    }

    /// Sets [`folder`](field@Self::folder).
    #[must_use]
    pub fn folder(self, folder: impl Into<PathBuf>) -> Budget {
        Budget { folder: folder.into(), ..self }
    }

    /// Returns one of `n` equal parts.
    pub(crate) fn share(&self, n: usize) -> Budget {
        Budget { bytes: self.bytes / n, folder: self.folder.clone() }
    }
}
