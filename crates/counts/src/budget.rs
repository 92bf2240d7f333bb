use std::env;
use std::path::PathBuf;

/// How much memory counting may use, and where it goes on when that is spent.
///
/// The text, what is as large as its vocabulary, and a few buffers come on top. Counts that are
/// larger than the budget stay in a temporary file, which is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Memory in bytes.
    pub bytes: usize,
    /// The folder for temporary files, which have no name there or lose it at once.
    pub folder: PathBuf,
}

impl Default for Budget {
    /// 2 GiB, and the system's folder for temporary files.
    fn default() -> Self {
        Budget { bytes: 2 << 30, folder: env::temp_dir() }
    }
}

impl Budget {
    /// One of `n` equal parts.
    pub(crate) fn share(&self, n: usize) -> Budget {
        Budget { bytes: self.bytes / n, folder: self.folder.clone() }
    }
}
