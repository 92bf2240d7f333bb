//! The folder in which experiments keep models from one run to the next.

use std::path::PathBuf;

/// `latens/experiments` in the cache folder of the user, or in the temporary folder if there is none.
pub(crate) fn cache_folder() -> PathBuf {
    let under_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let folder = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(under_home);
    folder.unwrap_or_else(std::env::temp_dir).join("latens").join("experiments")
}
