//! Temporary files that become the file of a name when they are complete.
//!
//! On Linux they have no name until then, so that a process that is killed leaves nothing. Elsewhere, and on file systems
//! that cannot do this, they have a name, and later processes remove those whose owner has died.

use crate::lock::{is_at, is_supported, try_lock};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

const PREFIX: &str = ".latens-";
const SUFFIX: &str = ".part";

/// The age at which a temporary file without an owner is removed. Locks do not show owners on other machines or in version
/// 0.1, but nobody leaves a file untouched for so long while writing it.
const STALE: Duration = Duration::from_secs(3600);

/// A file that is being written. Dropping it removes it.
pub(crate) struct Temporary {
    file: File,
    /// The name, if it has one.
    name: Option<tempfile::TempPath>,
}

impl Temporary {
    /// Creates an empty file in a folder.
    pub(crate) fn new(folder: &Path) -> io::Result<Temporary> {
        #[cfg(target_os = "linux")]
        if let Some(file) = unnamed(folder) {
            return Ok(Temporary { file, name: None });
        }
        Temporary::named(folder)
    }

    fn named(folder: &Path) -> io::Result<Temporary> {
        // A process that removes stale files may find the file before it is locked.
        for _ in 0..100 {
            let (file, name) = named_like().tempfile_in(folder)?.into_parts();
            if try_lock(&file).is_ok() && is_at(&file, &name) {
                return Ok(Temporary { file, name: Some(name) });
            }
        }
        Err(io::Error::other("cannot keep a temporary file"))
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its name, in place of an older file.
    pub(crate) fn persist(self, path: &Path, folder: &Path) -> io::Result<()> {
        match self.name {
            Some(name) => name.persist(path).map_err(|error| error.error),
            #[cfg(target_os = "linux")]
            None => give_name(&self.file, path, folder),
            #[cfg(not(target_os = "linux"))]
            None => unreachable!("temporary files have names on this system: {}", folder.display()),
        }
    }
}

fn named_like() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        // Temporary files are private by default; the result must have the permissions of a new file.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

/// Removes temporary files of dead processes from a folder. Failures are ignored: there is always a next time.
pub(crate) fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            let _ = remove_if_stale(&entry.path());
        }
    }
}

fn remove_if_stale(path: &Path) -> io::Result<()> {
    let is_old = |found: &fs::Metadata| {
        let age = found.modified().ok().and_then(|modified| modified.elapsed().ok());
        found.is_file() && age.is_some_and(|age| age > STALE)
    };
    // Not a link, and not a pipe, which could block.
    if !is_old(&fs::symlink_metadata(path)?) {
        return Ok(());
    }
    let file = File::options().read(true).write(true).open(path)?;
    if is_supported() && try_lock(&file).is_ok() && is_at(&file, path) {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// A file without a name, if the file system can make one and it can get a name later.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).ok()?);
    Path::new(&handle(&file)).exists().then_some(file)
}

/// The path through which an open file can be linked.
#[cfg(target_os = "linux")]
fn handle(file: &File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

#[cfg(target_os = "linux")]
fn give_name(file: &File, path: &Path, folder: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let link = |path: &Path| Ok(linkat(CWD, handle(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?);
    if fs::symlink_metadata(path).is_err() && link(path).is_ok() {
        return Ok(());
    }
    // A link cannot replace a file, but a rename can. The lock tells other processes that the name is in use.
    let _ = try_lock(file);
    match named_like().make_in(folder, link) {
        Ok(named) => named.persist(path).map(drop).map_err(|error| error.error),
        Err(_) => copy(file, path, folder),
    }
}

/// For file systems that make files without a name but cannot link them.
#[cfg(target_os = "linux")]
fn copy(mut file: &File, path: &Path, folder: &Path) -> io::Result<()> {
    let mut named = Temporary::named(folder)?;
    io::Seek::rewind(&mut file)?;
    io::copy(&mut file, named.file())?;
    named.file().set_permissions(file.metadata()?.permissions())?;
    named.file().sync_all()?;
    named.persist(path, folder)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn make_old(file: &File) {
        file.set_modified(SystemTime::now() - 2 * STALE).unwrap();
    }

    /// Writes `text` with a temporary file.
    fn write(mut temporary: Temporary, text: &str, path: &Path) {
        temporary.file().write_all(text.as_bytes()).unwrap();
        temporary.persist(path, path.parent().unwrap()).unwrap();
    }

    #[test]
    fn both_kinds_make_and_replace_files() {
        let folder = tempfile::tempdir().unwrap();
        let kinds: [fn(&Path) -> io::Result<Temporary>; 2] = [Temporary::new, Temporary::named];
        let mut modes = Vec::new();
        for (idx, make) in kinds.into_iter().enumerate() {
            let path = folder.path().join(format!("file-{idx}"));
            for text in ["first", "second"] {
                write(make(folder.path()).unwrap(), text, &path);
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                modes.push(fs::metadata(&path).unwrap().permissions().mode());
            }
            drop(make(folder.path()).unwrap());
        }
        assert_eq!(names(folder.path()).len(), 2);
        let new = folder.path().join("new");
        fs::write(&new, "").unwrap();
        let expected = fs::metadata(new).unwrap().permissions().mode();
        assert_eq!(modes, [expected; 4], "the permissions of a new file");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_unnamed_file_that_cannot_be_linked_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        for _ in 0..2 {
            copy(&file, &path, folder.path()).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"content");
        }
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn only_old_files_of_dead_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".latens-dead.part", ".latens-young.part", "latens-mine.part", ".latens-mine"]
        {
            let file = File::create(at(name)).unwrap();
            if !name.contains("young") {
                make_old(&file);
            }
        }
        std::os::unix::fs::symlink("latens-mine.part", at(".latens-link.part")).unwrap();
        let alive = Temporary::named(folder.path()).unwrap();
        make_old(&alive.file);
        let alive_name =
            alive.name.as_ref().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        remove_stale(folder.path());
        let mut found = names(folder.path());
        let mut expected = [
            ".latens-young.part",
            "latens-mine.part",
            ".latens-mine",
            ".latens-link.part",
            &alive_name,
        ];
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        write(alive, "whole", &at("file"));
        assert_eq!(fs::read(at("file")).unwrap(), b"whole");
    }
}
