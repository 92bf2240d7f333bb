//! The folder in which experiments keep what takes long to compute.

use std::path::PathBuf;

/// Where models are kept from one run to the next: a folder of this user's, or of this machine's.
pub(crate) fn cache_folder() -> PathBuf {
    let under_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let folder = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(under_home);
    folder.unwrap_or_else(std::env::temp_dir).join("latens").join("experiments")
}
