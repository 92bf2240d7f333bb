use std::env;
use std::path::PathBuf;

/// Memory limit for counting, and the folder for temporary files beyond it.
///
/// The limit does not include the text, a few arrays of the size of the vocabulary, and buffers. Counts
/// that exceed the limit stay in a memory-mapped temporary file.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Returns one of `n` equal parts.
    pub(crate) fn share(&self, n: usize) -> Budget {
        Budget { bytes: self.bytes / n, folder: self.folder.clone() }
    }
}
