//! Tables of strings with counts, as arrays.

use super::progress::inconsistent;
use latens_model::FitError;
use latens_model::shards::Arrays;
use latens_store::StringTable;

/// Distinct strings in the order of their first occurrence, with the number of occurrences.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) strings: StringTable,
    pub(super) counts: Vec<u64>,
}

impl Counted {
    /// Counts a string. Returns its number.
    pub(super) fn add(&mut self, string: &str, n: u64) -> Result<u32, FitError> {
        let number = self.strings.intern(string);
        self.counts.resize(self.strings.len(), 0);
        let count = &mut self.counts[number as usize];
        *count = count.checked_add(n).ok_or_else(|| inconsistent("a count overflows"))?;
        Ok(number)
    }

    /// Adds the strings of a later part of the text. Returns their numbers here.
    pub(super) fn extend(&mut self, later: &Counted) -> Result<Vec<u32>, FitError> {
        later.strings.iter().zip(&later.counts).map(|(string, &n)| self.add(string, n)).collect()
    }

    pub(super) fn read(arrays: &Arrays, name: &str) -> Result<Counted, FitError> {
        let strings = read_strings(arrays, name)?;
        let counts = arrays.expect::<u64>(&format!("{name}.counts"), strings.len())?.to_vec();
        Ok(Counted { strings, counts })
    }

    pub(super) fn write(&self, arrays: Arrays, name: &str) -> Arrays {
        write_strings(&self.strings, arrays, name)
            .with(&format!("{name}.counts"), self.counts.clone())
    }
}

/// Adds the arrays `name.letters` and `name.ends`.
pub(super) fn write_strings(table: &StringTable, arrays: Arrays, name: &str) -> Arrays {
    arrays
        .with(&format!("{name}.letters"), table.letters().as_bytes().to_vec())
        .with(&format!("{name}.ends"), table.ends().collect::<Vec<u64>>())
}

pub(super) fn read_strings(arrays: &Arrays, name: &str) -> Result<StringTable, FitError> {
    let letters = arrays.expect_any::<u8>(&format!("{name}.letters"))?;
    let ends = arrays.expect_any::<u64>(&format!("{name}.ends"))?;
    StringTable::from_arrays(letters, ends)
        .ok_or_else(|| inconsistent("a table of strings is inconsistent"))
}
