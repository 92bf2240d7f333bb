//! Arrays that may grow beyond the memory budget.

use crate::budget::Budget;
use crate::error::CountError;
use bytemuck::Pod;
use latens_store::{FlatArray, map_file};
use std::io::{BufWriter, Write};
use tempfile::NamedTempFile;

/// Collects the values of an array one by one: in memory, or beyond the budget in a temporary file
/// that is mapped at the end.
#[derive(Debug)]
pub(crate) struct ArraySink<T> {
    values: Vec<T>,
    budget: Budget,
    file: Option<BufWriter<NamedTempFile>>,
}

impl<T: Pod> ArraySink<T> {
    pub(crate) fn new(budget: &Budget) -> Self {
        ArraySink { values: Vec::new(), budget: budget.clone(), file: None }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: T) -> Result<(), CountError> {
        self.values.push(value);
        if size_of_val(&self.values[..]) > self.budget.bytes { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<(), CountError> {
        let failed = CountError::spill(&self.budget.folder);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = NamedTempFile::new_in(&self.budget.folder).map_err(&failed)?;
                none.insert(BufWriter::new(file))
            }
        };
        file.write_all(bytemuck::cast_slice(&self.values)).map_err(failed)?;
        self.values.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<FlatArray<T>, CountError> {
        if self.file.is_none() {
            return Ok(self.values.into());
        }
        self.spill()?;
        let failed = CountError::spill(&self.budget.folder);
        let file = self.file.expect("the file was created by a spill").into_inner();
        let file = file.map_err(|error| failed(error.into_error()))?;
        // Dropping `file` removes its name; the mapping stays valid.
        let map = map_file(file.path())?;
        let length = map.len();
        Ok(FlatArray::mapped(map, 0..length)
            .expect("the file holds whole values and a mapping is aligned"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_memory_and_on_disk_agree() {
        for bytes in [0, 100, 1 << 20] {
            let mut sink = ArraySink::new(&Budget { bytes, ..Budget::default() });
            (0..1000_u64).for_each(|i| sink.push(i * i).unwrap());
            let squares: Vec<u64> = (0..1000).map(|i| i * i).collect();
            assert_eq!(*sink.finish().unwrap(), squares);
        }
    }

    #[test]
    fn no_file_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = ArraySink::new(&Budget { bytes: 0, folder: folder.path().to_owned() });
        sink.push(1_u32).unwrap();
        let array = sink.finish().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(*array, [1]);
    }
}
