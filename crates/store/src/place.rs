//! The places that paths lead to.

use std::fs;
use std::path::{Path, PathBuf};

/// Whether a path is written to directly: a pipe, a device or an open file descriptor.
pub fn is_stream(path: &Path) -> bool {
    let open_by_process = ["/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/"];
    open_by_process.iter().any(|prefix| path.to_string_lossy().starts_with(prefix))
        || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Resolves symbolic links, so that the target is replaced and not the link. The target may not exist
/// yet.
pub fn without_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // The limit ends a cycle of links.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else { break };
        path = parent_folder(&path).join(target);
    }
    path
}

/// Returns the folder of `path`; `.` for a bare file name.
pub fn parent_folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
