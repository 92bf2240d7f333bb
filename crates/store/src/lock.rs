//! Advisory locks, which the system releases when their process ends in any way.

use crate::error::StorageError;
use crate::place::{is_stream, without_links};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Exclusive use of the path of an output.
///
/// The lock is a file next to the output, which is removed when the lock is dropped. If the process is killed, the file
/// stays but is no longer locked, and the next process takes it over.
#[derive(Debug)]
pub struct OutputLock {
    /// Keeps the lock.
    _file: File,
    path: PathBuf,
}

/// The reason why an output could not be locked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process is writing this output.
    #[error("another process is writing `{}`", output.display())]
    Held {
        /// The output.
        output: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// A file that is not a lock file has its name.
    #[error("`{}` exists and is not a lock file", lock.display())]
    Foreign {
        /// The lock file.
        lock: PathBuf,
    },
    /// The lock file could not be made.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl OutputLock {
    /// Locks an output. Returns `None` for pipes and devices, and where there are no locks: on file systems without them
    /// and on systems other than Unix.
    pub fn acquire(output: &Path) -> Result<Option<OutputLock>, LockError> {
        if !is_supported() || is_stream(output) {
            return Ok(None);
        }
        let path = lock_path(output);
        loop {
            let mut options = File::options();
            let opened = options.read(true).write(true).create(true).truncate(false).open(&path);
            let file = opened.map_err(StorageError::new("write", &path))?;
            // Ours are always empty.
            if file.metadata().is_ok_and(|found| !found.is_file() || found.len() > 0) {
                return Err(LockError::Foreign { lock: path });
            }
            match try_lock(&file) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(LockError::Held { output: output.to_owned(), lock: path });
                }
                Err(_) => {
                    let _ = fs::remove_file(&path);
                    return Ok(None);
                }
            }
            // Its last owner may have removed it after it was opened.
            if is_at(&file, &path) {
                return Ok(Some(OutputLock { _file: file, path }));
            }
        }
    }
}

impl Drop for OutputLock {
    fn drop(&mut self) {
        // Before the lock is released, so that the file is still ours.
        let _ = fs::remove_file(&self.path);
    }
}

/// Path of the lock file of an output, next to the file that links lead to.
pub fn lock_path(output: &Path) -> PathBuf {
    let mut name = without_links(output).into_os_string();
    name.push(".lock");
    name.into()
}

/// Whether this system has locks that processes release when they die.
pub(crate) fn is_supported() -> bool {
    cfg!(unix)
}

/// Locks a file or fails at once. The lock ends when all copies of the handle are closed.
#[cfg(unix)]
pub(crate) fn try_lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?)
}

/// Does nothing: there are no locks on this system.
#[cfg(not(unix))]
pub(crate) fn try_lock(_: &File) -> io::Result<()> {
    Ok(())
}

/// Whether a path still leads to an open file.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    let found = fs::symlink_metadata(path).map(id);
    file.metadata().map(id).is_ok_and(|open| found.is_ok_and(|found| found == open))
}

/// Assumes so: files that are open cannot be removed on this system.
#[cfg(not(unix))]
pub(crate) fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("model");
        std::os::unix::fs::symlink("model", folder.path().join("link")).unwrap();
        let lock = OutputLock::acquire(&output).unwrap().expect("this system has locks");
        for name in ["model", "link"] {
            let again = OutputLock::acquire(&folder.path().join(name));
            assert!(matches!(again, Err(LockError::Held { .. })), "{again:?}");
        }
        assert!(OutputLock::acquire(&folder.path().join("other")).unwrap().is_some());
        drop(lock);
        assert!(!lock_path(&output).exists());
        assert!(OutputLock::acquire(&output).unwrap().is_some());
    }

    #[test]
    fn the_file_of_a_dead_process_is_taken_over_and_other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("model");
        fs::write(lock_path(&output), "").unwrap();
        drop(OutputLock::acquire(&output).unwrap().unwrap());
        assert!(!lock_path(&output).exists());
        fs::write(lock_path(&output), "mine").unwrap();
        let refused = OutputLock::acquire(&output);
        assert!(matches!(refused, Err(LockError::Foreign { .. })), "{refused:?}");
        assert_eq!(fs::read(lock_path(&output)).unwrap(), b"mine");
    }

    #[test]
    fn pipes_and_devices_are_not_locked() {
        assert!(OutputLock::acquire(Path::new("/dev/null")).unwrap().is_none());
    }
}
