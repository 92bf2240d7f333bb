//! Sorted runs in a temporary file.

use crate::error::CountError;
use bytemuck::Pod;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of keys per block: first all keys, then all counts. Only the last block of a run may be
/// shorter.
const BLOCK: usize = 4096;

/// Consecutive runs in an unnamed temporary file, which disappears when the program ends, even if it
/// crashes.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    folder: PathBuf,
    /// Number of keys of each run.
    lengths: Vec<u64>,
}

impl SpillFile {
    pub(crate) fn new(folder: &Path) -> Result<SpillFile, CountError> {
        let file = tempfile::tempfile_in(folder).map_err(CountError::spill(folder))?;
        Ok(SpillFile { file, folder: folder.to_owned(), lengths: Vec::new() })
    }

    /// Appends a run.
    pub(crate) fn write_run<K: Pod>(
        &mut self,
        entries: impl Iterator<Item = Result<(K, u64), CountError>>,
    ) -> Result<(), CountError> {
        let (mut keys, mut counts) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
        let mut length = 0;
        for entry in entries {
            let (key, count) = entry?;
            keys.push(key);
            counts.push(count);
            length += 1;
            if keys.len() == BLOCK {
                self.write_block(&keys, &counts)?;
                keys.clear();
                counts.clear();
            }
        }
        self.write_block(&keys, &counts)?;
        self.lengths.push(length);
        Ok(())
    }

    fn write_block<K: Pod>(&mut self, keys: &[K], counts: &[u64]) -> Result<(), CountError> {
        let mut write = || {
            self.file.write_all(bytemuck::cast_slice(keys))?;
            self.file.write_all(bytemuck::cast_slice(counts))
        };
        write().map_err(CountError::spill(&self.folder))
    }

    /// Returns one iterator per run.
    pub(crate) fn into_runs<K: Pod>(self) -> Vec<SpilledRun<K>> {
        let (file, folder) = (Arc::new(self.file), Arc::from(self.folder));
        let mut offset = 0;
        let mut runs = Vec::with_capacity(self.lengths.len());
        for remaining in self.lengths {
            let (file, folder) = (Arc::clone(&file), Arc::clone(&folder));
            let (keys, counts) = (Vec::new(), Vec::new());
            runs.push(SpilledRun { file, folder, offset, remaining, keys, counts, next: 0 });
            offset += remaining * (size_of::<K>() + size_of::<u64>()) as u64;
        }
        runs
    }
}

/// Iterator over a run in the temporary file, which reads one block at a time.
#[derive(Debug)]
pub(crate) struct SpilledRun<K> {
    file: Arc<File>,
    folder: Arc<Path>,
    /// Position of the next block in the file.
    offset: u64,
    /// Number of keys from there on.
    remaining: u64,
    keys: Vec<K>,
    counts: Vec<u64>,
    /// Index into the current block.
    next: usize,
}

impl<K: Pod> SpilledRun<K> {
    fn read_block(&mut self) -> io::Result<()> {
        let length = self.remaining.min(BLOCK as u64) as usize;
        self.keys.resize(length, K::zeroed());
        self.counts.resize(length, 0);
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(self.offset))?;
        file.read_exact(bytemuck::cast_slice_mut(&mut self.keys))?;
        file.read_exact(bytemuck::cast_slice_mut(&mut self.counts))?;
        self.offset += (length * (size_of::<K>() + size_of::<u64>())) as u64;
        self.remaining -= length as u64;
        self.next = 0;
        Ok(())
    }
}

impl<K: Pod> Iterator for SpilledRun<K> {
    type Item = Result<(K, u64), CountError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.keys.len() {
            if self.remaining == 0 {
                return None;
            }
            if let Err(error) = self.read_block() {
                return Some(Err(CountError::spill(&self.folder)(error)));
            }
        }
        let entry = (self.keys[self.next], self.counts[self.next]);
        self.next += 1;
        Some(Ok(entry))
    }
}
