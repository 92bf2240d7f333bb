//! File names of plots.

use crate::errors::hinted;
use anyhow::Result;
use std::path::Path;

/// Refuses a file name with the extension of a format that cannot be written. Called before any work is done.
pub(crate) fn check_picture(path: Option<&Path>, formats: &[&str]) -> Result<()> {
    let Some((path, extension)) = path.and_then(|path| Some((path, path.extension()?))) else {
        return Ok(());
    };
    if formats.iter().any(|format| extension.eq_ignore_ascii_case(format)) {
        return Ok(());
    }
    let formats: Vec<String> = formats.iter().map(|format| format!("`.{format}`")).collect();
    Err(hinted(
        format!("cannot write a plot to `{}`", path.display()),
        format!("use the extension {}", formats.join(" or ")),
    ))
}
