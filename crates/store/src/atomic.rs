//! Atomic file writes.

use crate::error::StorageError;
use crate::place::{is_stream, parent_folder, without_links};
use crate::temporary::{Temporary, remove_stale};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file completely or not at all.
///
/// The data goes to a temporary file in the folder of `path`, which is synced to disk and then
/// linked or renamed. At any time, `path` is either the old file or the complete new one. An error
/// leaves no files behind. On Linux, the temporary file has no name, so that a killed process leaves
/// none either; on other systems, a later call removes it.
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
    remove_stale(folder);
    let mut temporary = Temporary::new(folder)?;
    write_through(temporary.file(), write)?;
    if let Ok(old) = fs::metadata(&path) {
        temporary.file().set_permissions(old.permissions())?;
    }
    temporary.file().sync_all()?;
    temporary.persist(&path, folder)?;
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
        Temporary::new(parent_folder(&path)).map(drop)
    };
    check().map_err(StorageError::new("write", path))
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
