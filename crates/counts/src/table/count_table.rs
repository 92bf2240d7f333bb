//! A sparse table of counts with one row per word. All counts of this crate have this form.

use crate::budget::Budget;
use crate::error::CountError;
use crate::runs::merge::Merge;
use crate::table::array_sink::ArraySink;
use bytemuck::Pod;
use latens_store::FlatArray;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Range;

/// An item that a row counts.
pub(crate) trait Item: Pod + Ord + Debug + Send + Sync {
    /// A row and an item, sorted like the table.
    type Key: Pod + Ord + Send;

    fn key(row: u32, item: Self) -> Self::Key;
    fn split(key: Self::Key) -> (u32, Self);
}

impl Item for u32 {
    type Key = u64;

    fn key(row: u32, item: u32) -> u64 {
        u64::from(row) << 32 | u64::from(item)
    }

    fn split(key: u64) -> (u32, u32) {
        ((key >> 32) as u32, key as u32)
    }
}

impl Item for u64 {
    type Key = [u64; 2];

    fn key(row: u32, item: u64) -> [u64; 2] {
        [row.into(), item]
    }

    fn split([row, item]: [u64; 2]) -> (u32, u64) {
        (row as u32, item)
    }
}

impl Item for [u64; 2] {
    type Key = [u64; 3];

    fn key(row: u32, [high, low]: [u64; 2]) -> [u64; 3] {
        [row.into(), high, low]
    }

    fn split([row, high, low]: [u64; 3]) -> (u32, [u64; 2]) {
        (row as u32, [high, low])
    }
}

/// For every row, its different items in ascending order, and their counts.
#[derive(Clone, Debug)]
pub(crate) struct CountTable<T> {
    /// Start of each row in `items`, then the end of the last one.
    offsets: FlatArray<u64>,
    items: FlatArray<T>,
    counts: Counts,
}

/// Counts with 32 bits if all of them fit, else with 64. Equal counts therefore give equal files.
#[derive(Clone, Debug)]
pub(crate) enum Counts {
    Narrow(FlatArray<u32>),
    Wide(FlatArray<u64>),
}

impl Counts {
    pub(crate) fn len(&self) -> usize {
        match self {
            Counts::Narrow(counts) => counts.len(),
            Counts::Wide(counts) => counts.len(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, i: usize) -> u64 {
        match self {
            Counts::Narrow(counts) => counts[i].into(),
            Counts::Wide(counts) => counts[i],
        }
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|i| self.get(i))
    }
}

impl<T: Item> CountTable<T> {
    /// Creates a table from its arrays, and describes the problem if they are inconsistent.
    ///
    /// There must be `n_rows` rows. Offsets must ascend from 0 to the number of items, items must
    /// ascend strictly within each row, and no count may be 0 or use 64 bits needlessly.
    pub(crate) fn from_parts(
        n_rows: usize,
        offsets: FlatArray<u64>,
        items: FlatArray<T>,
        counts: Counts,
    ) -> Result<Self, &'static str> {
        if offsets.len() != n_rows + 1
            || offsets[0] != 0
            || offsets[n_rows] != items.len() as u64
            || offsets.windows(2).any(|pair| pair[0] > pair[1])
        {
            return Err("its row offsets do not ascend to the number of its items");
        }
        let mut rows = offsets.windows(2).map(|row| &items[row[0] as usize..row[1] as usize]);
        if rows.any(|row| row.windows(2).any(|pair| pair[0] >= pair[1])) {
            return Err("its items do not ascend within a row");
        }
        if counts.len() != items.len() || counts.iter().any(|count| count == 0) {
            return Err("it does not have one nonzero count per item");
        }
        if matches!(&counts, Counts::Wide(wide) if wide.iter().all(|&c| c <= u32::MAX.into())) {
            return Err("its counts use 64 bits but fit in 32");
        }
        Ok(CountTable { offsets, items, counts })
    }

    /// Creates a table from fresh counts, which are consistent by construction.
    pub(crate) fn from_counted(offsets: Vec<u64>, items: Vec<T>, counts: Vec<u32>) -> Self {
        let counts = Counts::Narrow(counts.into());
        CountTable { offsets: offsets.into(), items: items.into(), counts }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of different items of all rows.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Range of a row in [`CountTable::items`].
    #[inline]
    pub(crate) fn range(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// Iterates over the items of a row and their counts.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> impl ExactSizeIterator<Item = (T, u64)> {
        let range = self.range(row);
        let items = &self.items[range.clone()];
        items.iter().zip(range).map(|(&item, i)| (item, self.counts.get(i)))
    }

    /// Sum of a range of the counts.
    pub(crate) fn sum(&self, range: Range<usize>) -> u64 {
        range.map(|i| self.counts.get(i)).sum()
    }

    /// Whether all counts add up to `total`. Checks for overflow, because a file can hold any counts.
    pub(crate) fn sums_to(&self, total: u64) -> bool {
        let sum = self.counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(count));
        sum == Some(total)
    }

    fn entries(&self) -> impl Iterator<Item = (T::Key, u64)> {
        (0..self.n_rows()).flat_map(|row| {
            self.row(row).map(move |(item, count)| (T::key(row as u32, item), count))
        })
    }

    /// Adds up tables with the same number of rows.
    pub(crate) fn merge(
        n_rows: usize,
        tables: &[&CountTable<T>],
        budget: &Budget,
    ) -> Result<Self, CountError> {
        if let [a, b] = tables {
            return CountTable::merge_two(n_rows, a, b, budget);
        }
        let sources = tables.iter().map(|table| table.entries().map(Ok)).collect();
        CountTable::from_entries(n_rows, Merge::new(sources)?, budget)
    }

    /// Adds up two tables row by row. Shards merge two by two, so that this is worth its own loop.
    fn merge_two(
        n_rows: usize,
        a: &CountTable<T>,
        b: &CountTable<T>,
        budget: &Budget,
    ) -> Result<Self, CountError> {
        let mut sums = Sums::new(n_rows, budget);
        for row in 0..n_rows {
            let (own, other) = (a.range(row), b.range(row));
            let (x, y) = (&a.items[own.clone()], &b.items[other.clone()]);
            match (&a.counts, &b.counts) {
                (Counts::Narrow(n), Counts::Narrow(m)) => sums.row(x, &n[own], y, &m[other])?,
                (Counts::Narrow(n), Counts::Wide(m)) => sums.row(x, &n[own], y, &m[other])?,
                (Counts::Wide(n), Counts::Narrow(m)) => sums.row(x, &n[own], y, &m[other])?,
                (Counts::Wide(n), Counts::Wide(m)) => sums.row(x, &n[own], y, &m[other])?,
            }
        }
        let Sums { offsets, items, counts } = sums;
        Ok(CountTable { offsets: offsets.into(), items: items.finish()?, counts: counts.finish()? })
    }

    /// Creates a table from ascending keys and their counts.
    pub(crate) fn from_entries(
        n_rows: usize,
        entries: impl Iterator<Item = Result<(T::Key, u64), CountError>>,
        budget: &Budget,
    ) -> Result<Self, CountError> {
        let mut offsets = vec![0];
        let (mut items, mut counts) = (ArraySink::new(budget), CountSink::new(budget));
        let mut n_items = 0;
        for entry in entries {
            let (key, count) = entry?;
            let (row, item) = T::split(key);
            // Ends all rows before this one; rows without items are empty.
            while offsets.len() <= row as usize {
                offsets.push(n_items);
            }
            items.push(item)?;
            counts.push(count)?;
            n_items += 1;
        }
        offsets.resize(n_rows + 1, n_items);
        Ok(CountTable { offsets: offsets.into(), items: items.finish()?, counts: counts.finish()? })
    }
}

/// A table that grows row by row.
struct Sums<T> {
    offsets: Vec<u64>,
    items: ArraySink<T>,
    counts: CountSink,
}

impl<T: Item> Sums<T> {
    fn new(n_rows: usize, budget: &Budget) -> Sums<T> {
        let mut offsets = Vec::with_capacity(n_rows + 1);
        offsets.push(0);
        Sums { offsets, items: ArraySink::new(budget), counts: CountSink::new(budget) }
    }

    /// Adds a row: the items of two rows, and the sums of their counts.
    fn row<N: Copy + Into<u64>, M: Copy + Into<u64>>(
        &mut self,
        x: &[T],
        n: &[N],
        y: &[T],
        m: &[M],
    ) -> Result<(), CountError> {
        let (mut i, mut j) = (0, 0);
        while i < x.len() && j < y.len() {
            let (item, count) = match x[i].cmp(&y[j]) {
                Ordering::Less => (x[i], n[i].into()),
                Ordering::Greater => (y[j], m[j].into()),
                Ordering::Equal => {
                    (x[i], n[i].into().checked_add(m[j].into()).ok_or(CountError::Overflow)?)
                }
            };
            i += usize::from(item == x[i]);
            j += usize::from(item == y[j]);
            self.items.push(item)?;
            self.counts.push(count)?;
        }
        for (&item, &count) in x[i..].iter().zip(&n[i..]) {
            self.items.push(item)?;
            self.counts.push(count.into())?;
        }
        for (&item, &count) in y[j..].iter().zip(&m[j..]) {
            self.items.push(item)?;
            self.counts.push(count.into())?;
        }
        self.offsets.push(self.counts.n_counts as u64);
        Ok(())
    }
}

/// Collects counts one by one with 32 bits each, and the few larger ones separately.
struct CountSink {
    narrow: ArraySink<u32>,
    n_counts: usize,
    larger: Vec<(usize, u64)>,
    budget: Budget,
}

impl CountSink {
    fn new(budget: &Budget) -> Self {
        let budget = budget.clone();
        CountSink { narrow: ArraySink::new(&budget), n_counts: 0, larger: Vec::new(), budget }
    }

    fn push(&mut self, count: u64) -> Result<(), CountError> {
        let narrow = u32::try_from(count).unwrap_or_else(|_| {
            self.larger.push((self.n_counts, count));
            u32::MAX
        });
        self.n_counts += 1;
        self.narrow.push(narrow)
    }

    fn finish(self) -> Result<Counts, CountError> {
        let narrow = self.narrow.finish()?;
        if self.larger.is_empty() {
            return Ok(Counts::Narrow(narrow));
        }
        let mut wide = ArraySink::new(&self.budget);
        let mut larger = self.larger.into_iter().peekable();
        for (i, &count) in narrow.iter().enumerate() {
            let larger = larger.next_if(|&(at, _)| at == i);
            wide.push(larger.map_or(count.into(), |(_, count)| count))?;
        }
        Ok(Counts::Wide(wide.finish()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Entries = BTreeMap<(u32, u32), u64>;

    /// Entries of a table of 40 rows, some of them empty.
    fn entries(seed: u64, n: u64, largest: u64) -> Entries {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        (0..n).map(|_| ((next() as u32 % 40, next() as u32 % 30), 1 + next() % largest)).collect()
    }

    fn table(entries: &Entries) -> CountTable<u32> {
        let entries = entries.iter().map(|(&(row, item), &n)| Ok((u32::key(row, item), n)));
        CountTable::from_entries(40, entries, &Budget::default()).unwrap()
    }

    #[test]
    fn tables_add_up_by_row_and_item() {
        let large = u64::from(u32::MAX) * 4;
        let all =
            [entries(1, 300, 9), entries(2, 500, large), entries(3, 0, 1), entries(4, 200, 5)];
        for a in &all {
            for b in &all {
                let mut expected = a.clone();
                b.iter().for_each(|(&key, n)| *expected.entry(key).or_default() += n);
                let none = Entries::new();
                let expected: Vec<(u64, u64)> = table(&expected).entries().collect();
                // Two tables have a loop of their own.
                for parts in [vec![a, b], vec![a, &none, b]] {
                    let tables: Vec<CountTable<u32>> = parts.into_iter().map(table).collect();
                    let tables: Vec<&CountTable<u32>> = tables.iter().collect();
                    let sum = CountTable::merge(40, &tables, &Budget::default()).unwrap();
                    assert!(sum.entries().eq(expected.iter().copied()));
                    assert_eq!(sum.n_rows(), 40);
                    let CountTable { offsets, items, counts } = sum;
                    CountTable::from_parts(40, offsets, items, counts).unwrap();
                }
            }
        }
        let most = table(&Entries::from([((1, 1), u64::MAX)]));
        let one = table(&Entries::from([((1, 1), 1)]));
        let overflow = CountTable::merge(40, &[&most, &one], &Budget::default());
        assert!(matches!(overflow, Err(CountError::Overflow)));
    }
}
