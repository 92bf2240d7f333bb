//! The files of this process.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    /// The files of this thread: in `LATENS_FUZZ_SCRATCH`, or in memory where the system has a folder for that. The
    /// folder is removed when the thread ends, unless it ends in a crash.
    static FOLDER: TempDir = {
        let memory = Path::new("/dev/shm");
        let default = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = std::env::var_os("LATENS_FUZZ_SCRATCH").map_or(default, PathBuf::from);
        tempfile::Builder::new().prefix("latens-fuzz-").tempdir_in(folder).expect("a folder")
    };
}

/// The path of the file `name` of this thread.
pub fn path(name: &str) -> PathBuf {
    FOLDER.with(|folder| folder.path().join(name))
}

/// A file with these bytes; it replaces the last one of that name.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = path(name);
    fs::write(&path, bytes).expect("there is room for a small file");
    path
}
