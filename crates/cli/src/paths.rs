//! Checks of input and output paths before any work starts.

use crate::errors::hinted;
use anyhow::{Context, Result, ensure};
use latens::store::check_writable;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Whether a path denotes standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Rejects inputs that contain `-` twice, because standard input can be read only once.
pub(crate) fn refuse_second_stdin(
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<()> {
    let n_stdin = inputs.into_iter().filter(|path| is_stdin(path.as_ref())).count();
    ensure!(n_stdin <= 1, "`-` (standard input) can be given only once");
    Ok(())
}

/// Rejects an output that cannot be written or that would overwrite one of the inputs.
pub(crate) fn check_output(
    output: &Path,
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<()> {
    if output == Path::new("-") {
        return Err(hinted(
            "`-` cannot be an output",
            "use `/dev/stdout` for standard output, or `./-` for a file named `-`",
        ));
    }
    for input in inputs {
        let both = is_same_file(output, input.as_ref());
        ensure!(!both, "`{}` is both input and output", output.display());
    }
    Ok(check_writable(output)?)
}

/// Whether both paths are the same regular file. Devices and pipes may be read and written.
fn is_same_file(a: &Path, b: &Path) -> bool {
    a.is_file() && fs::canonicalize(a).is_ok_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b))
}

/// Rejects two outputs with the same path, also if neither exists yet.
pub(crate) fn refuse_same_output(a: &Path, b: &Path, what: &str) -> Result<()> {
    let place = |path: &Path| -> Option<PathBuf> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        Some(folder.join(path.file_name()?))
    };
    let both = a == b || is_same_file(a, b) || place(a).is_some_and(|a| place(b) == Some(a));
    ensure!(!both, "`{}` is both {what}", a.display());
    Ok(())
}

/// Rejects an input that cannot be read, before hours of work that need it at the end. Pipes are not opened, because their
/// writer would see them close.
pub(crate) fn check_input(input: &Path) -> Result<()> {
    if is_stdin(input) {
        return Ok(());
    }
    let reading = || format!("cannot read `{}`", input.display());
    let found = fs::metadata(input).with_context(reading)?;
    ensure!(!found.is_dir(), "cannot read `{}`: it is a directory", input.display());
    if found.is_file() {
        File::open(input).with_context(reading)?;
    }
    Ok(())
}
