//! Labels and splits: one name per record, out of few different ones.

use latens_store::{FlatArray, StringTable};

/// The names of all records.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) names: StringTable,
    pub(crate) of_record: FlatArray<u32>,
}

impl Names {
    /// Empty names for `n_records` records.
    pub(crate) fn empty(n_records: usize) -> Names {
        let mut names = NamesBuilder::default();
        (0..n_records).for_each(|_| names.push(""));
        names.finish()
    }

    pub(crate) fn get(&self, record_idx: usize) -> &str {
        self.names.get(self.of_record[record_idx])
    }

    /// Whether there is exactly one valid name for each of `n_records` records.
    pub(crate) fn are_complete(&self, n_records: usize) -> bool {
        let known = |&name: &u32| (name as usize) < self.names.len();
        self.of_record.len() == n_records && self.of_record.iter().all(known)
    }
}

/// Collects names while records are read.
#[derive(Default)]
pub(crate) struct NamesBuilder {
    pub(crate) names: StringTable,
    pub(crate) of_record: Vec<u32>,
}

impl NamesBuilder {
    pub(crate) fn push(&mut self, name: &str) {
        self.of_record.push(self.names.intern(name));
    }

    pub(crate) fn finish(self) -> Names {
        Names { names: self.names, of_record: self.of_record.into() }
    }
}
