//! Rows of tables while threads fill them.

use crate::runs::Run;
use crate::table::count_table::{CountTable, Item};
use rayon::prelude::*;
use std::ops::Range;

/// Fills the rows of several tables in parallel: `count` receives a range of rows and, for each table,
/// the part to fill.
///
/// `tasks` are consecutive ranges of rows with the maximum number of their items per table.
pub(crate) fn count_rows<T: Item>(
    n_tables: usize,
    tasks: &[(Range<usize>, usize)],
    count: impl Fn(Range<usize>, &mut [Part<'_, T>]) + Sync,
) -> Vec<Rows<T>> {
    let mut tables: Vec<Rows<T>> = Vec::new();
    tables.resize_with(n_tables, || Rows::with_room(tasks.iter().map(|task| task.1).sum()));
    let mut parts: Vec<Vec<Part<'_, T>>> = Vec::new();
    parts.resize_with(tasks.len(), Vec::new);
    for table in &mut tables {
        parts.iter_mut().zip(table.split(tasks)).for_each(|(parts, part)| parts.push(part));
    }
    // Tasks differ in cost, so they are distributed one by one.
    let shared_out = parts.par_iter_mut().zip(tasks).with_max_len(1);
    shared_out.for_each(|(parts, (rows, _))| count(rows.clone(), parts));

    let mut lengths: Vec<Vec<Vec<u32>>> = vec![Vec::new(); n_tables];
    for parts in parts {
        lengths.iter_mut().zip(parts).for_each(|(lengths, part)| lengths.push(part.row_lengths));
    }
    let shared_out = tables.par_iter_mut().zip(lengths).with_max_len(1);
    shared_out.for_each(|(table, lengths)| table.close_gaps(tasks, lengths));
    tables
}

/// All rows of a table.
pub(crate) struct Rows<T> {
    row_lengths: Vec<u32>,
    items: Vec<T>,
    counts: Vec<u32>,
}

/// The rows of one task, which are filled in order.
///
/// They are written to the memory of the final table, with gaps after each part. Closing the gaps costs
/// less than first access to new memory.
pub(crate) struct Part<'a, T> {
    row_lengths: Vec<u32>,
    /// Start of the current row.
    row_begin: usize,
    n_items: usize,
    items: &'a mut [T],
    counts: &'a mut [u32],
}

impl<T: Item> Rows<T> {
    /// Unused capacity costs nothing, because its pages are never accessed.
    fn with_room(n_items: usize) -> Self {
        let (items, counts) = (vec![T::zeroed(); n_items], vec![0; n_items]);
        Rows { row_lengths: Vec::new(), items, counts }
    }

    fn split(&mut self, tasks: &[(Range<usize>, usize)]) -> Vec<Part<'_, T>> {
        let (mut items, mut counts) = (&mut self.items[..], &mut self.counts[..]);
        let parts = tasks.iter().map(|&(_, room)| {
            let row_lengths = Vec::new();
            let items = items.split_off_mut(..room).expect("the capacity covers all tasks");
            let counts = counts.split_off_mut(..room).expect("the capacity covers all tasks");
            Part { row_lengths, row_begin: 0, n_items: 0, items, counts }
        });
        parts.collect()
    }

    fn close_gaps(&mut self, tasks: &[(Range<usize>, usize)], row_lengths: Vec<Vec<u32>>) {
        let (mut begin, mut end) = (0, 0);
        for (&(_, room), row_lengths) in tasks.iter().zip(&row_lengths) {
            let n_items: usize = row_lengths.iter().map(|&length| length as usize).sum();
            self.items.copy_within(begin..begin + n_items, end);
            self.counts.copy_within(begin..begin + n_items, end);
            begin += room;
            end += n_items;
        }
        self.items.truncate(end);
        self.counts.truncate(end);
        self.row_lengths = row_lengths.concat();
    }

    pub(crate) fn into_table(mut self) -> CountTable<T> {
        let mut offsets = vec![0];
        offsets.extend(self.row_lengths.iter().scan(0, |end, &length| {
            *end += u64::from(length);
            Some(*end)
        }));
        self.items.shrink_to_fit();
        self.counts.shrink_to_fit();
        CountTable::from_counted(offsets, self.items, self.counts)
    }

    /// Converts the rows to keys with counts, for merging.
    pub(crate) fn into_run(self) -> Run<T::Key> {
        let mut keys = Vec::with_capacity(self.items.len());
        let mut items = self.items.into_iter();
        for (row, &length) in (0..).zip(&self.row_lengths) {
            keys.extend(items.by_ref().take(length as usize).map(|item| T::key(row, item)));
        }
        Run::new(keys, self.counts.into_iter().map(u64::from).collect())
    }
}

impl<T: Item> Part<'_, T> {
    /// Appends an item to the current row.
    #[inline]
    pub(crate) fn push(&mut self, item: T, count: u32) {
        self.items[self.n_items] = item;
        self.counts[self.n_items] = count;
        self.n_items += 1;
    }

    /// Ends the current row.
    pub(crate) fn end_row(&mut self) {
        self.row_lengths.push((self.n_items - self.row_begin) as u32);
        self.row_begin = self.n_items;
    }

    /// Appends a whole row from unsorted items, which may repeat.
    pub(crate) fn push_row(&mut self, seen: &mut [T]) {
        seen.sort_unstable();
        for same in seen.chunk_by(T::eq) {
            self.push(same[0], same.len() as u32);
        }
        self.end_row();
    }
}
