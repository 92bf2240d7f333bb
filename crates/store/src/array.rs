//! Read-only arrays in memory or in a mapped file.

use crate::error::StorageError;
use bytemuck::Pod;
use memmap2::{Mmap, MmapMut};
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

#[cfg(target_endian = "big")]
compile_error!(
    "latens maps little-endian arrays from files and does not support big-endian targets"
);

/// The bytes of a memory-mapped file. Clones share the mapping.
#[derive(Clone, Debug)]
pub struct MappedFile {
    map: Arc<Mmap>,
    /// Whether the system can read the bytes again from a file.
    has_file: bool,
}

impl Deref for MappedFile {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl MappedFile {
    /// Takes the pages of a range out of the memory of this process. The next access reads them again.
    #[cfg(unix)]
    #[expect(
        unsafe_code,
        reason = "the caller of this advice promises that the pages can be read again"
    )]
    fn release(&self, range: Range<usize>) {
        if self.has_file && !range.is_empty() {
            // SAFETY: the pages are those of a read-only mapping of a file, whose content this crate never changes, so
            // that the same bytes are read again.
            let _ = unsafe {
                let advice = memmap2::UncheckedAdvice::DontNeed;
                self.map.unchecked_advise_range(advice, range.start, range.len())
            };
        }
    }

    /// Other systems take pages out of memory by themselves.
    #[cfg(not(unix))]
    fn release(&self, _: Range<usize>) {}
}

/// Maps a file into memory. Pages are read when they are first accessed.
///
/// This crate replaces files only by renaming, so the content of a mapping never changes. If another
/// program truncates a file while it is mapped, access to the missing pages terminates the process.
pub fn map_file(path: impl AsRef<Path>) -> Result<MappedFile, StorageError> {
    let path = path.as_ref();
    let map = || {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        map_open_file(&file)
    };
    map().map_err(StorageError::new("read", path))
}

/// Maps an open file, which may have no name; see [`map_file`].
#[expect(unsafe_code, reason = "another program could change a mapped file")]
pub fn map_open_file(file: &File) -> io::Result<MappedFile> {
    // SAFETY: the mapping is read-only and private to this process. The doc comment of `map_file` states what
    // happens if another program changes the file.
    let map = unsafe { Mmap::map(file) }?;
    Ok(MappedFile { map: Arc::new(map), has_file: true })
}

/// Copies bytes into memory that is aligned like a mapped file.
pub fn map_bytes(bytes: &[u8]) -> io::Result<MappedFile> {
    let mut map = MmapMut::map_anon(bytes.len())?;
    map.copy_from_slice(bytes);
    Ok(MappedFile { map: Arc::new(map.make_read_only()?), has_file: false })
}

/// A read-only array that is either in memory or in a mapped file.
#[derive(Clone, Debug)]
pub struct FlatArray<T>(Source<T>);

#[derive(Clone, Debug)]
enum Source<T> {
    /// A range of the values.
    Memory(Arc<Vec<T>>, Range<usize>),
    /// A range of the bytes.
    Mapped(MappedFile, Range<usize>),
}

impl<T: Pod> FlatArray<T> {
    /// Returns the array in the bytes `range` of a mapped file, or `None` if the range is out of
    /// bounds, not aligned for `T`, or not a multiple of its size.
    pub fn mapped(map: MappedFile, range: Range<usize>) -> Option<Self> {
        let bytes = map.get(range.clone())?;
        bytemuck::try_cast_slice::<u8, T>(bytes).ok()?;
        Some(FlatArray(Source::Mapped(map, range)))
    }

    /// Returns a range of the values without copying them.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "values {range:?} are out of bounds"
        );
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

impl<T> FlatArray<T> {
    /// Tells the system that the array is not needed for now. If it is in a mapped file, it no longer counts as memory of
    /// this process until its next use; otherwise nothing happens.
    pub fn release(&self) {
        if let Source::Mapped(map, range) = &self.0 {
            map.release(range.clone());
        }
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
    use crate::write_atomically;
    use std::io::Write;

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
        mapped.release();
        assert_eq!(*mapped, values[1..]);
        let copied = map_bytes(bytemuck::cast_slice(&values)).unwrap();
        let copied = FlatArray::<u32>::mapped(copied, 0..4000).unwrap();
        copied.release();
        assert_eq!(*copied, values);
        assert!(FlatArray::<u32>::mapped(map.clone(), 2..10).is_none());
        assert!(FlatArray::<u32>::mapped(map, 0..4004).is_none());
    }
}
