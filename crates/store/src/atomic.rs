//! Files that are written completely or not at all.

use crate::error::StorageError;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name beside `path`, makes it durable, then renames it, so that
/// `path` is at any moment the old file or the whole new one. On any error nothing is left behind.
///
/// A `path` that exists and is no regular file (a pipe, `/dev/stdout`) is written to directly.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> Result<(), StorageError> {
    write_and_rename(path, write).map_err(StorageError::new("write", path))
}

fn write_and_rename(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    if is_stream(path) {
        // Appending, since `/dev/stdout` may be a file that others write to as well.
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
    // The rename itself is durable only when the folder is; a file system that cannot sync folders
    // has still done the rename.
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

/// Says early whether `path` can be written, before hours of work end in a read-only folder.
pub fn check_writable(path: &Path) -> Result<(), StorageError> {
    let check = || {
        // To open a pipe and close it again would end its reader.
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

/// Whether a path is written to as it is: a pipe, a device, or what a process has open.
fn is_stream(path: &Path) -> bool {
    let open_by_process = ["/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/"];
    open_by_process.iter().any(|prefix| path.to_string_lossy().starts_with(prefix))
        || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// What a link points to, so that this is replaced rather than the link; also if there is nothing yet.
fn without_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // A ring of links has no end.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else { break };
        path = parent_folder(&path).join(target);
    }
    path
}

/// The folder that `path` lies in.
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
        // Temporary files are private by default; a model is as readable as any other new file.
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
    fn links_are_followed_and_permissions_kept() {
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
    fn a_folder_is_no_output() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_atomically(folder.path(), |_| Ok(())).is_err());
        assert!(check_writable(folder.path()).is_err());
        assert!(check_writable(&folder.path().join("absent/file")).is_err());
        assert!(check_writable(&folder.path().join("file")).is_ok());
    }
}
