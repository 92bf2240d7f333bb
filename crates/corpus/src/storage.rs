//! Files that are written whole or not at all, and arrays that live in memory or in a mapped file.

use bytemuck::Pod;
use memmap2::Mmap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

#[cfg(target_endian = "big")]
compile_error!("latens maps little-endian arrays from its files and has no big-endian reader");

/// A file could not be written or mapped.
#[derive(Debug, Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct StorageError {
    /// What was tried: `write`, `read` …
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl StorageError {
    /// For `map_err`: `action` on `path` failed.
    pub fn new(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> StorageError + use<> {
        let path = path.to_owned();
        move |source| StorageError { action, path, source }
    }
}

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
    let folder = parent(&path);
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
        temporary_file(parent(&path)).map(drop)
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
        path = parent(&path).join(target);
    }
    path
}

/// The folder that `path` lies in.
pub(crate) fn parent(path: &Path) -> &Path {
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

/// A whole file in memory, read page by page when first touched.
///
/// Our own files are only ever replaced by a rename, so a mapping keeps the content it was made
/// with. A file that another program cuts short while it is mapped ends the program.
#[allow(unsafe_code)]
pub fn map_file(path: &Path) -> Result<Arc<Mmap>, StorageError> {
    let map = || {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        // SAFETY: the mapping is read-only and private to this process; see above for what a
        // concurrent change of the file would mean.
        unsafe { Mmap::map(&file) }
    };
    map().map(Arc::new).map_err(StorageError::new("read", path))
}

/// A read-only array that is either in memory or in a mapped file.
#[derive(Clone, Debug)]
pub struct FlatArray<T>(Source<T>);

#[derive(Clone, Debug)]
enum Source<T> {
    /// Some of the values.
    Memory(Arc<Vec<T>>, Range<usize>),
    /// Some of the bytes.
    Mapped(Arc<Mmap>, Range<usize>),
}

impl<T: Pod> FlatArray<T> {
    /// The array in the bytes `range` of a mapped file; `None` if the range is outside the file,
    /// not aligned for `T`, or not a whole number of `T`s.
    pub fn mapped(map: Arc<Mmap>, range: Range<usize>) -> Option<Self> {
        let bytes = map.get(range.clone())?;
        bytemuck::try_cast_slice::<u8, T>(bytes).ok()?;
        Some(FlatArray(Source::Mapped(map, range)))
    }

    /// Some of the values, without a copy.
    ///
    /// # Panics
    /// If there are not so many values.
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len(), "no values {range:?}");
        FlatArray(match &self.0 {
            Source::Memory(values, all) => {
                Source::Memory(values.clone(), all.start + range.start..all.start + range.end)
            }
            Source::Mapped(map, all) => {
                let byte = |value: usize| all.start + value * size_of::<T>();
                Source::Mapped(map.clone(), byte(range.start)..byte(range.end))
            }
        })
    }
}

impl<T> From<Vec<T>> for FlatArray<T> {
    fn from(values: Vec<T>) -> Self {
        let all = 0..values.len();
        FlatArray(Source::Memory(Arc::new(values), all))
    }
}

impl<T: Pod> Deref for FlatArray<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Source::Memory(values, range) => &values[range.clone()],
            Source::Mapped(map, range) => bytemuck::cast_slice(&map[range.clone()]),
        }
    }
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

    #[test]
    fn a_mapped_array_has_the_values_that_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let values: Vec<u32> = (0..1000).collect();
        write_atomically(&path, |out| out.write_all(bytemuck::cast_slice(&values))).unwrap();
        let map = map_file(&path).unwrap();
        let mapped = FlatArray::<u32>::mapped(map.clone(), 4..4000).unwrap();
        assert_eq!(*mapped, values[1..]);
        assert_eq!(*mapped.slice(2..9).slice(1..3), values[4..6]);
        assert_eq!(*FlatArray::from(values.clone()).slice(2..9).slice(1..3), values[3..5]);
        assert!(FlatArray::<u32>::mapped(map.clone(), 2..10).is_none());
        assert!(FlatArray::<u32>::mapped(map, 0..4004).is_none());
    }
}
