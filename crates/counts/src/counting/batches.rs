//! Counts a text in batches, so that memory stays within the budget.

use crate::budget::Budget;
use crate::counting::occurrences::{MAX_CHUNK, Occurrences, Text};
use crate::counting::rows::{Part, Rows, count_rows};
use crate::error::CountError;
use crate::runs::RunCounter;
use crate::table::count_table::{CountTable, Item};
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};

/// Callback that receives the number of tokens processed so far and can stop the count.
pub(crate) type Watch<'a> = dyn FnMut(usize) -> ControlFlow<()> + 'a;

/// Counts a text batch by batch. `count` receives a range of words and fills a part of each of
/// `n_tables` tables with the items that occur before these words in the batch.
pub(crate) fn count_in_batches<T: Item>(
    text: &Text<'_>,
    n_tables: usize,
    budget: &Budget,
    watch: &mut Watch<'_>,
    count: impl Fn(&Occurrences<'_>, Range<usize>, &mut [Part<'_, T>]) + Sync,
) -> Result<Vec<CountTable<T>>, CountError> {
    let share = budget.share(2 * n_tables);
    match count_runs(text, n_tables, budget, watch, count)? {
        Batches::One(tables) => Ok(tables.into_par_iter().map(Rows::into_table).collect()),
        Batches::Many(runs) => {
            let table = |runs: RunCounter<T::Key>| {
                CountTable::from_entries(text.n_words(), runs.finish()?, &share)
            };
            runs.into_par_iter().map(table).collect()
        }
    }
}

/// The counts of all batches of a text.
pub(crate) enum Batches<T: Item> {
    One(Vec<Rows<T>>),
    /// One counter per table.
    Many(Vec<RunCounter<T::Key>>),
}

/// Like [`count_in_batches`], without merging the counts of the batches.
pub(crate) fn count_runs<T: Item>(
    text: &Text<'_>,
    n_tables: usize,
    budget: &Budget,
    watch: &mut Watch<'_>,
    count: impl Fn(&Occurrences<'_>, Range<usize>, &mut [Part<'_, T>]) + Sync,
) -> Result<Batches<T>, CountError> {
    let count_batch = |batch: Range<usize>| {
        let occurrences = text.occurrences(batch);
        let tasks = occurrences.tasks();
        count_rows(n_tables, &tasks, |words, parts| count(&occurrences, words, parts))
    };
    let mut report = |done: usize| match watch(done) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(CountError::Interrupted),
    };
    // Half of the memory is for the current batch, the other half for the counts of earlier batches.
    let batches = batches::<T>(text, n_tables, budget.bytes / 2);
    report(0)?;
    if let [all] = &batches[..] {
        let tables = count_batch(all.clone());
        report(all.end)?;
        return Ok(Batches::One(tables));
    }
    let share = budget.share(2 * n_tables);
    let mut runs: Vec<RunCounter<T::Key>> = Vec::new();
    runs.resize_with(n_tables, || RunCounter::new(&share));
    for batch in batches {
        let tables = count_batch(batch.clone());
        let pairs = runs.par_iter_mut().zip(tables);
        pairs.try_for_each(|(runs, rows)| runs.push_run(rows.into_run()))?;
        report(batch.end)?;
    }
    Ok(Batches::Many(runs))
}

/// Splits the text into batches that need about `bytes` bytes each; at least one batch.
///
/// No batch is shorter than the vocabulary, because counting needs arrays of that size anyway.
fn batches<T>(text: &Text<'_>, n_tables: usize, bytes: usize) -> Vec<Range<usize>> {
    let bytes_per_token = size_of::<u32>() + (n_tables + 1) * (size_of::<T>() + size_of::<u32>());
    let n_tokens = text.n_tokens();
    let size = (bytes / bytes_per_token).max(text.n_words()).clamp(16, MAX_CHUNK);
    (0..n_tokens.max(1)).step_by(size).map(|begin| begin..(begin + size).min(n_tokens)).collect()
}
