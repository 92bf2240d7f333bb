//! What is wrong with the names of files, found out before any work is done.

use crate::errors::hinted;
use anyhow::{Context, Result, ensure};
use latens::store::check_writable;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Whether this names the standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// The standard input can be read once only.
pub(crate) fn refuse_second_stdin(
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<()> {
    let n_stdin = inputs.into_iter().filter(|path| is_stdin(path.as_ref())).count();
    ensure!(n_stdin <= 1, "`-`, the standard input, may be named once only");
    Ok(())
}

/// Refuses an output that cannot be written, or that would replace one of the inputs.
pub(crate) fn check_output(
    output: &Path,
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<()> {
    if output == Path::new("-") {
        return Err(hinted(
            "`-` cannot be an output",
            "`/dev/stdout` is the standard output, `./-` is a file",
        ));
    }
    for input in inputs {
        let both = is_same_file(output, input.as_ref());
        ensure!(!both, "`{}` is both input and output", output.display());
    }
    Ok(check_writable(output)?)
}

/// Whether both names lead to one file. A device or a pipe may well be read and written.
fn is_same_file(a: &Path, b: &Path) -> bool {
    a.is_file() && fs::canonicalize(a).is_ok_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b))
}

/// Refuses one name, or two that lead to one place, for two outputs, neither of which need be there yet.
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

/// Refuses an input that cannot be read, where it is needed only after hours of work. A pipe is left
/// alone: its writer would see that it was opened and closed.
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
