//! Values in unnamed temporary files, which are written and read in order.
//!
//! ```
//! use latens_counts::spool::Spool;
//!
//! let mut squares = Spool::new(&std::env::temp_dir())?;
//! for i in 0..1000_u64 {
//!     squares.push(i * i)?;
//! }
//! let squares = squares.finish()?;
//! assert_eq!(squares.read(3..5)?, [9, 16]);
//! let mut reader = squares.reader();
//! assert_eq!([reader.next()?, reader.next()?], [0, 1]);
//! assert_eq!(squares.into_array()?[999], 998_001);
//! # Ok::<(), latens_counts::CountError>(())
//! ```

use crate::error::CountError;
use bytemuck::Pod;
use latens_store::{FlatArray, map_open_file};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the buffer of a writer or reader.
pub const BUFFER: usize = 1 << 16;

/// A temporary file that is being written. It has no name where the system supports this, and disappears when the program
/// ends, even if it crashes.
#[derive(Debug)]
pub struct Spool<T> {
    file: File,
    folder: PathBuf,
    buffer: Vec<T>,
    length: u64,
}

impl<T: Pod> Spool<T> {
    /// Creates an empty file in a folder.
    pub fn new(folder: &Path) -> Result<Spool<T>, CountError> {
        let file = tempfile::tempfile_in(folder).map_err(CountError::spill(folder))?;
        Ok(Spool { file, folder: folder.to_owned(), buffer: Vec::new(), length: 0 })
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), CountError> {
        self.buffer.push(value);
        if size_of_val(&self.buffer[..]) >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Number of values.
    pub fn len(&self) -> u64 {
        self.length + self.buffer.len() as u64
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn flush(&mut self) -> Result<(), CountError> {
        let bytes = bytemuck::cast_slice(&self.buffer);
        self.file.write_all(bytes).map_err(CountError::spill(&self.folder))?;
        self.length += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<Spooled<T>, CountError> {
        self.flush()?;
        let Spool { file, folder, length, .. } = self;
        let file = Arc::new(Mutex::new(file));
        Ok(Spooled { file, folder, length, values: std::marker::PhantomData })
    }
}

/// A complete temporary file.
#[derive(Debug)]
pub struct Spooled<T> {
    file: Arc<Mutex<File>>,
    folder: PathBuf,
    length: u64,
    values: std::marker::PhantomData<T>,
}

impl<T: Pod> Spooled<T> {
    /// Number of values.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Reads a range of the values into memory.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<T>, CountError> {
        assert!(range.end <= self.length, "values {range:?} are out of bounds");
        let mut values = vec![T::zeroed(); (range.end - range.start) as usize];
        self.read_into(range.start, &mut values)?;
        Ok(values)
    }

    fn read_into(&self, begin: u64, values: &mut [T]) -> Result<(), CountError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = || {
            file.seek(SeekFrom::Start(begin * size_of::<T>() as u64))?;
            file.read_exact(bytemuck::cast_slice_mut(values))
        };
        read().map_err(CountError::spill(&self.folder))
    }

    /// Reads the values in order.
    pub fn reader(&self) -> SpoolReader<'_, T> {
        SpoolReader { spooled: self, at: 0, buffer: Vec::new(), next: 0 }
    }

    /// Maps the values as an array.
    pub fn into_array(self) -> Result<FlatArray<T>, CountError> {
        if self.length == 0 {
            return Ok(Vec::new().into());
        }
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let map = map_open_file(&file).map_err(CountError::spill(&self.folder))?;
        let length = map.len();
        Ok(FlatArray::mapped(map, 0..length)
            .expect("the file holds whole values and a mapping is aligned"))
    }
}

/// Reads a file in order.
#[derive(Debug)]
pub struct SpoolReader<'a, T> {
    spooled: &'a Spooled<T>,
    /// Position of the next block.
    at: u64,
    buffer: Vec<T>,
    next: usize,
}

impl<T: Pod> SpoolReader<'_, T> {
    /// The next value. Fails at the end.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "callers know the number of values")]
    pub fn next(&mut self) -> Result<T, CountError> {
        if self.next == self.buffer.len() {
            self.read_block()?;
        }
        self.next += 1;
        Ok(self.buffer[self.next - 1])
    }

    /// Whether all values were read.
    pub fn is_at_end(&self) -> bool {
        self.next == self.buffer.len() && self.at == self.spooled.length
    }

    fn read_block(&mut self) -> Result<(), CountError> {
        let n = (BUFFER / size_of::<T>()) as u64;
        let length = n.min(self.spooled.length - self.at) as usize;
        if length == 0 {
            return Err(CountError::spill(&self.spooled.folder)(
                io::ErrorKind::UnexpectedEof.into(),
            ));
        }
        self.buffer.resize(length, T::zeroed());
        self.spooled.read_into(self.at, &mut self.buffer)?;
        self.at += length as u64;
        self.next = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written_and_no_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path()).unwrap();
        let values: Vec<[u32; 2]> = (0..30_000).map(|i| [i, i * i]).collect();
        values.iter().for_each(|&value| spool.push(value).unwrap());
        assert_eq!(spool.len(), 30_000);
        let spooled = spool.finish().unwrap();
        let (mut one, mut two) = (spooled.reader(), spooled.reader());
        for &value in &values {
            assert_eq!([one.next().unwrap(), two.next().unwrap()], [value; 2]);
        }
        assert!(one.is_at_end() && matches!(one.next(), Err(CountError::Spill { .. })));
        assert_eq!(spooled.read(20_000..20_002).unwrap(), values[20_000..20_002]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(*spooled.into_array().unwrap(), values);
        let empty = Spool::<u64>::new(folder.path()).unwrap().finish().unwrap();
        assert!(empty.is_empty() && empty.reader().is_at_end());
        assert!(empty.into_array().unwrap().is_empty());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let missing = tempfile::tempdir().unwrap().path().join("missing");
        let error = Spool::<u32>::new(&missing).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
    }
}
