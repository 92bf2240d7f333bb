//! Paths of inputs and outputs: which are the same file, and which can be read and written.

use anyhow::{Context, Result, ensure};
use latens::store::{check_writable, is_stream, parent_folder, without_links};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Whether a path denotes standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Path of the checkpoint, next to the model. There is none next to a device or a pipe.
pub(crate) fn checkpoint_path(model: &Path) -> Option<PathBuf> {
    if is_stream(model) {
        return None;
    }
    let mut name = model.to_owned().into_os_string();
    name.push(".checkpoint");
    Some(name.into())
}

/// Whether both paths lead to the same file, or would if it existed. Devices, pipes and standard input may be read and
/// written.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    identity(a).is_some_and(|a| identity(b) == Some(a))
}

#[derive(PartialEq, Eq)]
enum Identity {
    /// Device and number of a file, which all of its links share.
    #[cfg(unix)]
    Existing(u64, u64),
    /// Path without links.
    Place(PathBuf),
}

fn identity(path: &Path) -> Option<Identity> {
    if is_stdin(path) || path == Path::new("/dev/stdin") || is_stream(path) {
        return None;
    }
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => None,
        #[cfg(unix)]
        Ok(found) => {
            use std::os::unix::fs::MetadataExt;
            Some(Identity::Existing(found.dev(), found.ino()))
        }
        #[cfg(not(unix))]
        Ok(_) => fs::canonicalize(path).ok().map(Identity::Place),
        Err(_) => {
            let path = without_links(path);
            let folder = fs::canonicalize(parent_folder(&path)).ok()?;
            Some(Identity::Place(folder.join(path.file_name()?)))
        }
    }
}

/// Writes a file of the same name in a new folder for temporary files, because `path` cannot be written. Returns where it
/// is.
pub(crate) fn write_elsewhere(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let all = std::env::temp_dir();
    let cannot = || format!("cannot write a file in the folder `{}`", all.display());
    let folder =
        tempfile::Builder::new().prefix("latens-").tempdir_in(&all).with_context(cannot)?;
    let name = path.file_name().unwrap_or("file".as_ref());
    write(&folder.path().join(name))?;
    Ok(folder.keep().join(name))
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

/// Rejects a file that cannot be written line by line. Unlike a model, it is not replaced atomically.
pub(crate) fn check_appendable(path: &Path) -> Result<()> {
    if path.is_file() {
        File::options().append(true).open(path).with_context(|| cannot_write(path))?;
        return Ok(());
    }
    Ok(check_writable(path)?)
}

pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_known_by_all_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        fs::write(at("other"), "text").unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink("file", at("link")).unwrap();
        symlink("link", at("link-to-link")).unwrap();
        symlink(folder.path(), at("folder/up")).unwrap();
        symlink("new", at("dangling")).unwrap();
        fs::hard_link(at("file"), at("hard")).unwrap();
        for name in
            ["file", "./file", "link", "link-to-link", "hard", "folder/../file", "folder/up/file"]
        {
            assert!(same_file(&at("file"), &at(name)), "{name}");
            assert!(!same_file(&at("other"), &at(name)), "{name}");
        }
        // Files that do not exist yet.
        for name in ["new", "./new", "dangling", "folder/up/new", "folder/../new"] {
            assert!(same_file(&at("new"), &at(name)), "{name}");
            assert!(!same_file(&at("newer"), &at(name)), "{name}");
        }
    }

    #[test]
    fn there_is_no_checkpoint_next_to_a_device() {
        assert_eq!(checkpoint_path(Path::new("/dev/full")), None);
        assert_eq!(checkpoint_path(Path::new("a.hmm")), Some("a.hmm.checkpoint".into()));
    }

    #[test]
    fn devices_and_standard_input_are_no_files() {
        for name in ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/fd/1", "-", "."] {
            assert!(!same_file(Path::new(name), Path::new(name)), "{name}");
        }
    }
}
