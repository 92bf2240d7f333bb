//! Atomic file writes.

use crate::error::StorageError;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file completely or not at all.
///
/// The data goes to a temporary file in the folder of `path`, which is synced to disk and then
/// renamed. At any time, `path` is either the old file or the complete new one. An error leaves no
/// files behind.
///
/// If `path` exists and is not a regular file (a pipe, `/dev/stdout`), it is written to directly.
pub fn write_atomically(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> Result<(), StorageError> {
    let path = path.as_ref();
    write_and_rename(path, write).map_err(StorageError::new("write", path))
}

fn write_and_rename(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    if is_stream(path) {
        // Append, because `/dev/stdout` may be a file that other processes write to.
        return write_through(&mut File::options().append(true).open(path)?, write);
    }
    let path = without_links(path);
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    let folder = parent_folder(&path);
    let mut temporary = temporary_file(folder)?;
    write_through(temporary.as_file_mut(), write)?;
    if let Ok(old) = fs::metadata(&path) {
        temporary.as_file().set_permissions(old.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&path).map_err(|error| error.error)?;
    // The rename is durable only after the folder is synced. Some file systems cannot sync folders;
    // there the rename has still happened.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn write_through(
    file: &mut File,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    write(&mut writer)?;
    writer.flush()
}

/// Checks whether `path` can be written, so that a long computation does not fail at its end.
pub fn check_writable(path: impl AsRef<Path>) -> Result<(), StorageError> {
    let path = path.as_ref();
    let check = || {
        // Opening a pipe and closing it again would terminate its reader.
        if is_stream(path) {
            return Ok(());
        }
        let path = without_links(path);
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        temporary_file(parent_folder(&path)).map(drop)
    };
    check().map_err(StorageError::new("write", path))
}

/// Whether to write to a path directly: a pipe, a device or an open file descriptor.
fn is_stream(path: &Path) -> bool {
    let open_by_process = ["/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/"];
    open_by_process.iter().any(|prefix| path.to_string_lossy().starts_with(prefix))
        || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Resolves symbolic links, so that the target is replaced and not the link. The target may not exist
/// yet.
fn without_links(path: &Path) -> PathBuf {
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

fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".latens-").suffix(".part");
    #[cfg(unix)]
    {
        // Temporary files are private by default; the result must have the permissions of a new file.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomically(&path, |out| out.write_all(b"old")).unwrap();
        let error = write_atomically(&path, |out| {
            out.write_all(b"new")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(error.unwrap_err().to_string().contains("file"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        symlink("file", &link).unwrap();
        for content in [b"old", b"new"] {
            check_writable(&link).unwrap();
            write_atomically(&link, |out| out.write_all(content)).unwrap();
            assert_eq!(fs::read(&file).unwrap(), content);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        write_atomically(&file, |out| out.write_all(b"newer")).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn folders_and_files_in_missing_folders_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_atomically(folder.path(), |_| Ok(())).is_err());
        assert!(check_writable(folder.path()).is_err());
        assert!(check_writable(folder.path().join("absent/file")).is_err());
        assert!(check_writable(folder.path().join("file")).is_ok());
    }
}
