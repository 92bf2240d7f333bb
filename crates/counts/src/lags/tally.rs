//! Counts the words that occur before one word.

use crate::counting::rows::Part;
use std::mem;

/// Counts words in an array with one counter per word of the vocabulary. All counters are zero between
/// uses.
pub(crate) struct Tally {
    counters: Vec<u32>,
    /// The words with a nonzero counter, in the order of their first occurrence.
    met: Vec<u32>,
    /// One bit per word.
    marks: Vec<u64>,
}

/// Whether sorting is fastest. The limit grows with the vocabulary, because the other methods scan all
/// marks. It is not critical: with 33,000 words, half or twice this limit costs up to 7 %.
fn is_few(n_seen: usize, n_words: usize) -> bool {
    n_seen < 64 + n_words / 512
}

/// Whether scanning all counters is fastest, because most of them are nonzero.
fn is_many(n_seen: usize, n_words: usize) -> bool {
    n_seen > n_words / 2
}

impl Tally {
    pub(crate) fn new(n_words: usize) -> Self {
        let marks = vec![0; n_words.div_ceil(u64::BITS as usize)];
        Tally { counters: vec![0; n_words], met: Vec::new(), marks }
    }

    /// Appends a row to `part`: the distinct words in `seen`, ascending, with their counts.
    pub(crate) fn count(&mut self, seen: &mut [u32], part: &mut Part<'_, u32>) {
        let n_words = self.counters.len();
        if is_few(seen.len(), n_words) {
            return part.push_row(seen);
        }
        if is_many(seen.len(), n_words) {
            self.count_many(seen, part);
        } else {
            self.count_some(seen, part);
        }
    }

    fn count_many(&mut self, seen: &[u32], part: &mut Part<'_, u32>) {
        for &word in seen {
            self.counters[word as usize] += 1;
        }
        for (word, counter) in self.counters.iter_mut().enumerate().filter(|(_, c)| **c > 0) {
            part.push(word as u32, mem::take(counter));
        }
        part.end_row();
    }

    fn count_some(&mut self, seen: &[u32], part: &mut Part<'_, u32>) {
        // Marking every occurrence would stall on the marks of a few frequent words. This loop finds
        // the first occurrence of each word without a branch.
        self.met.resize(seen.len().max(self.met.len()), 0);
        let mut n_met = 0;
        for &word in seen {
            let counter = &mut self.counters[word as usize];
            self.met[n_met] = word;
            n_met += usize::from(*counter == 0);
            *counter += 1;
        }
        for &word in &self.met[..n_met] {
            self.marks[(word / u64::BITS) as usize] |= 1 << (word % u64::BITS);
        }
        for (i, marks) in self.marks.iter_mut().enumerate() {
            let mut marks = mem::take(marks);
            while marks != 0 {
                let word = i as u32 * u64::BITS + marks.trailing_zeros();
                marks &= marks - 1;
                part.push(word, mem::take(&mut self.counters[word as usize]));
            }
        }
        part.end_row();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::rows::count_rows;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Method = fn(&mut Tally, &mut [u32], &mut Part<'_, u32>);

    /// All methods of counting a row, and the choice between them.
    const METHODS: [Method; 4] = [
        |_, seen, part| part.push_row(seen),
        |tally, seen, part| tally.count_some(seen, part),
        |tally, seen, part| tally.count_many(seen, part),
        |tally, seen, part| tally.count(seen, part),
    ];

    proptest! {
        #[test]
        fn all_methods_of_counting_agree(
            rows in prop::collection::vec(prop::collection::vec(0_u32..200, 0..150), 1..5),
        ) {
            let room = rows.iter().map(Vec::len).sum();
            for method in METHODS {
                let mut tables = count_rows(1, &[(0..rows.len(), room)], |range, parts| {
                    let mut tally = Tally::new(200);
                    rows[range].iter().for_each(|row| {
                        method(&mut tally, &mut row.clone(), &mut parts[0]);
                    });
                });
                let table = tables.remove(0).into_table();
                for (i, row) in rows.iter().enumerate() {
                    let mut expected = BTreeMap::new();
                    row.iter().for_each(|&word| *expected.entry(word).or_default() += 1);
                    prop_assert!(table.row(i).eq(expected));
                }
            }
        }
    }
}
