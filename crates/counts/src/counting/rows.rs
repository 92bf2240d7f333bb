//! The rows of tables while threads count them.

use crate::runs::Run;
use crate::table::{CountTable, Item};
use rayon::prelude::*;
use std::ops::Range;

/// Counts the rows of several tables of the same text with all threads: `count` is handed ranges of
/// rows, and for each table the part to fill.
///
/// `tasks` are consecutive ranges of rows, and how many items they can have in one table.
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
    // Tasks differ in what they cost, so they are shared out one by one.
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
/// They are written where the table will have them, but for the gaps that room not used leaves:
/// touching memory for the first time costs more than moving what is there.
pub(crate) struct Part<'a, T> {
    row_lengths: Vec<u32>,
    /// Where the present row begins.
    row_begin: usize,
    n_items: usize,
    items: &'a mut [T],
    counts: &'a mut [u32],
}

impl<T: Item> Rows<T> {
    /// Room that is not used is never touched, so it costs nothing.
    fn with_room(n_items: usize) -> Self {
        let (items, counts) = (vec![T::zeroed(); n_items], vec![0; n_items]);
        Rows { row_lengths: Vec::new(), items, counts }
    }

    fn split(&mut self, tasks: &[(Range<usize>, usize)]) -> Vec<Part<'_, T>> {
        let (mut items, mut counts) = (&mut self.items[..], &mut self.counts[..]);
        let parts = tasks.iter().map(|&(_, room)| {
            let row_lengths = Vec::new();
            let items = items.split_off_mut(..room).expect("there is room for all tasks");
            let counts = counts.split_off_mut(..room).expect("there is room for all tasks");
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

    /// The same as keys with counts, to be merged with others.
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
    /// The next item of the present row.
    #[inline]
    pub(crate) fn push(&mut self, item: T, count: u32) {
        self.items[self.n_items] = item;
        self.counts[self.n_items] = count;
        self.n_items += 1;
    }

    /// The present row is complete.
    pub(crate) fn end_row(&mut self) {
        self.row_lengths.push((self.n_items - self.row_begin) as u32);
        self.row_begin = self.n_items;
    }

    /// A whole row, from everything that was seen, which is sorted here.
    pub(crate) fn push_row(&mut self, seen: &mut [T]) {
        seen.sort_unstable();
        for same in seen.chunk_by(T::eq) {
            self.push(same[0], same.len() as u32);
        }
        self.end_row();
    }
}
