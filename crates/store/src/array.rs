//! Read-only arrays that live in memory or in a mapped file.

use crate::error::StorageError;
use bytemuck::Pod;
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

#[cfg(target_endian = "big")]
compile_error!("latens maps little-endian arrays from its files and has no big-endian reader");

/// The bytes of a file that is mapped into memory; clones share the mapping.
#[derive(Clone, Debug)]
pub struct MappedFile(Arc<Mmap>);

impl Deref for MappedFile {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// A whole file in memory, read page by page when first touched.
///
/// Our own files are only ever replaced by a rename, so a mapping keeps the content it was made
/// with. A file that another program cuts short while it is mapped ends the program.
#[allow(unsafe_code)]
pub fn map_file(path: &Path) -> Result<MappedFile, StorageError> {
    let map = || {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        // SAFETY: the mapping is read-only and private to this process; see above for what a
        // concurrent change of the file would mean.
        unsafe { Mmap::map(&file) }
    };
    map().map(|map| MappedFile(Arc::new(map))).map_err(StorageError::new("read", path))
}

/// A read-only array that is either in memory or in a mapped file.
#[derive(Clone, Debug)]
pub struct FlatArray<T>(Source<T>);

#[derive(Clone, Debug)]
enum Source<T> {
    /// Some of the values.
    Memory(Arc<Vec<T>>, Range<usize>),
    /// Some of the bytes.
    Mapped(MappedFile, Range<usize>),
}

impl<T: Pod> FlatArray<T> {
    /// The array in the bytes `range` of a mapped file; `None` if the range is outside the file,
    /// not aligned for `T`, or not a whole number of `T`s.
    pub fn mapped(map: MappedFile, range: Range<usize>) -> Option<Self> {
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
        assert!(FlatArray::<u32>::mapped(map.clone(), 2..10).is_none());
        assert!(FlatArray::<u32>::mapped(map, 0..4004).is_none());
    }
}
