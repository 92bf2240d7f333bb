//! A set of strings with dense numbers.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// A set of strings, numbered in the order of insertion.
///
/// All strings share one buffer, so the overhead is about 20 bytes per string.
#[derive(Clone, Debug, Default)]
pub struct StringTable {
    letters: String,
    ends: Vec<usize>,
    table: HashTable<u32>,
}

/// A fixed seed keeps runs reproducible. No random seed is needed: only the user's own text can slow
/// down the table.
const HASHER: FixedState = FixedState::with_seed(0x6c61_7465_6e73);

impl StringTable {
    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the string with number `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn get(&self, index: u32) -> &str {
        slice(&self.letters, &self.ends, index)
    }

    /// Returns the number of `string`, if it is in the set.
    #[inline]
    pub fn find(&self, string: &str) -> Option<u32> {
        let hash = HASHER.hash_one(string.as_bytes());
        self.table.find(hash, |&i| slice(&self.letters, &self.ends, i) == string).copied()
    }

    /// Returns the number of `string`, which is inserted if it is new.
    ///
    /// # Panics
    /// If there are more than 2^32 strings.
    #[inline]
    pub fn intern(&mut self, string: &str) -> u32 {
        let Self { letters, ends, table } = self;
        let hash = HASHER.hash_one(string.as_bytes());
        if let Some(&found) = table.find(hash, |&i| slice(letters, ends, i) == string) {
            return found;
        }
        let index = u32::try_from(ends.len()).expect("a string table holds at most 2^32 strings");
        letters.push_str(string);
        ends.push(letters.len());
        table.insert_unique(hash, index, |&i| HASHER.hash_one(slice(letters, ends, i).as_bytes()));
        index
    }

    /// The concatenation of all strings.
    pub fn letters(&self) -> &str {
        &self.letters
    }

    /// End of each string in [`StringTable::letters`].
    pub fn ends(&self) -> impl ExactSizeIterator<Item = u64> {
        self.ends.iter().map(|&end| end as u64)
    }

    /// Creates a table from the concatenation of its strings and their ends. Returns `None` if the
    /// arrays are not UTF-8, inconsistent, or contain a string twice.
    pub fn from_arrays(letters: &[u8], ends: &[u64]) -> Option<StringTable> {
        let letters = std::str::from_utf8(letters).ok()?;
        let mut table = StringTable::default();
        let mut begin = 0;
        for (&end, number) in ends.iter().zip(0u32..) {
            let end = usize::try_from(end).ok()?;
            if table.intern(letters.get(begin..end)?) != number {
                return None;
            }
            begin = end;
        }
        (begin == letters.len()).then_some(table)
    }

    /// Iterates over all strings in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|i| self.get(i as u32))
    }
}

fn slice<'a>(letters: &'a str, ends: &[usize], index: u32) -> &'a str {
    let index = index as usize;
    let begin = if index == 0 { 0 } else { ends[index - 1] };
    &letters[begin..ends[index]]
}

impl<S: AsRef<str>> FromIterator<S> for StringTable {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut table = StringTable::default();
        for string in strings {
            table.intern(string.as_ref());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn inconsistent_arrays_are_refused() {
        assert!(StringTable::from_arrays(b"ab", &[1, 2]).is_some());
        assert!(StringTable::from_arrays(b"aa", &[1, 2]).is_none());
        assert!(StringTable::from_arrays(b"ab", &[1]).is_none());
        assert!(StringTable::from_arrays(b"ab", &[2, 1]).is_none());
        assert!(StringTable::from_arrays(b"ab", &[1, u64::MAX]).is_none());
        assert!(StringTable::from_arrays("é".as_bytes(), &[1, 2]).is_none());
        assert!(StringTable::from_arrays(b"\xff", &[1]).is_none());
    }

    proptest! {
        #[test]
        fn every_string_has_one_number_and_can_be_looked_up(strings: Vec<String>) {
            let mut table = StringTable::default();
            let numbers: Vec<u32> = strings.iter().map(|s| table.intern(s)).collect();
            for (string, &number) in strings.iter().zip(&numbers) {
                prop_assert_eq!(table.get(number), string);
                prop_assert_eq!(table.find(string), Some(number));
            }
            let ends: Vec<u64> = table.ends().collect();
            let again = StringTable::from_arrays(table.letters().as_bytes(), &ends).unwrap();
            prop_assert!(again.iter().eq(table.iter()));
            let distinct: std::collections::HashSet<_> = strings.iter().collect();
            prop_assert_eq!(table.len(), distinct.len());
        }
    }
}
