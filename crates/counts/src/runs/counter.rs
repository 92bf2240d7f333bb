//! The counter of keys, and the runs that it merges.

use crate::budget::Budget;
use crate::error::CountError;
use crate::runs::merge::Merge;
use crate::runs::spill::{SpillFile, SpilledRun};
use bytemuck::Pod;
use rayon::slice::ParallelSliceMut;
use std::{iter, mem, vec};

/// Different keys in ascending order, and their counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<K> {
    keys: Vec<K>,
    counts: Vec<u64>,
}

impl<K: Copy + Ord> Run<K> {
    /// Creates a run of keys that are already counted.
    ///
    /// # Panics
    /// If keys do not ascend strictly, or if the number of counts differs from the number of keys.
    pub fn new(keys: Vec<K>, counts: Vec<u64>) -> Run<K> {
        assert_eq!(keys.len(), counts.len(), "a run needs one count per key");
        assert!(
            keys.windows(2).all(|pair| pair[0] < pair[1]),
            "the keys of a run must ascend strictly"
        );
        Run { keys, counts }
    }

    fn of_sorted(mut keys: Vec<K>) -> Run<K> {
        let counts = keys.chunk_by(|a, b| a == b).map(|same| same.len() as u64).collect();
        keys.dedup();
        Run { keys, counts }
    }

    fn bytes(&self) -> usize {
        self.keys.len() * (size_of::<K>() + size_of::<u64>())
    }
}

/// Counts keys in bounded memory; see the [module](crate::runs).
#[derive(Debug)]
pub struct RunCounter<K> {
    budget: Budget,
    runs: Vec<Run<K>>,
    /// Size in bytes of the runs in memory.
    bytes: usize,
    spilled: Option<SpillFile>,
}

impl<K: Pod + Ord + Send> RunCounter<K> {
    /// Creates an empty counter.
    pub fn new(budget: &Budget) -> Self {
        RunCounter { budget: budget.clone(), runs: Vec::new(), bytes: 0, spilled: None }
    }

    /// Counts the keys of a shard, in any order.
    pub fn push_keys(&mut self, mut keys: Vec<K>) -> Result<(), CountError> {
        keys.par_sort_unstable();
        self.push_run(Run::of_sorted(keys))
    }

    /// Adds the counts of a shard.
    pub fn push_run(&mut self, run: Run<K>) -> Result<(), CountError> {
        self.bytes += run.bytes();
        self.runs.push(run);
        if self.bytes > self.budget.bytes { self.spill() } else { Ok(()) }
    }

    /// Merges the runs in memory and writes them to the temporary file.
    fn spill(&mut self) -> Result<(), CountError> {
        self.bytes = 0;
        let in_memory = mem::take(&mut self.runs).into_iter().map(Source::in_memory);
        let merged = Merge::new(in_memory.collect())?;
        let file = match &mut self.spilled {
            Some(file) => file,
            none => none.insert(SpillFile::new(&self.budget.folder)?),
        };
        file.write_run(merged)
    }

    /// Merges all runs. Returns every key once, in ascending order, with its count.
    pub fn finish(self) -> Result<Counted<K>, CountError> {
        let on_disk = self.spilled.map(SpillFile::into_runs).unwrap_or_default();
        let mut sources: Vec<_> = on_disk.into_iter().map(Source::Spilled).collect();
        sources.extend(self.runs.into_iter().map(Source::in_memory));
        Merge::new(sources).map(Counted)
    }
}

/// The result of a [`RunCounter`]: keys in ascending order, each with its count.
pub struct Counted<K: Pod>(Merge<K, Source<K>>);

impl<K: Pod + Ord> Iterator for Counted<K> {
    type Item = Result<(K, u64), CountError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

enum Source<K> {
    InMemory(iter::Zip<vec::IntoIter<K>, vec::IntoIter<u64>>),
    Spilled(SpilledRun<K>),
}

impl<K> Source<K> {
    fn in_memory(run: Run<K>) -> Self {
        Source::InMemory(run.keys.into_iter().zip(run.counts))
    }
}

impl<K: Pod> Iterator for Source<K> {
    type Item = Result<(K, u64), CountError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Source::InMemory(entries) => entries.next().map(Ok),
            Source::Spilled(run) => run.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn budget(bytes: usize) -> Budget {
        Budget { bytes, ..Budget::default() }
    }

    fn count<K: Pod + Ord + Send>(shards: Vec<Vec<K>>, bytes: usize) -> Vec<(K, u64)> {
        let mut counter = RunCounter::new(&budget(bytes));
        for shard in shards {
            counter.push_keys(shard).unwrap();
        }
        counter.finish().unwrap().collect::<Result<_, _>>().unwrap()
    }

    proptest! {
        #[test]
        fn counts_do_not_depend_on_shards_order_or_budget(
            mut shards in prop::collection::vec(prop::collection::vec(0..20_u64, 0..30), 0..8),
            bytes in prop::sample::select(vec![0_usize, 50, 200, 1 << 20]),
        ) {
            let mut expected = BTreeMap::new();
            for &key in shards.iter().flatten() {
                *expected.entry(key).or_default() += 1;
            }
            let expected: Vec<(u64, u64)> = expected.into_iter().collect();
            prop_assert_eq!(count(shards.clone(), bytes), expected.clone());
            shards.reverse();
            prop_assert_eq!(count(shards.clone(), bytes), expected.clone());
            prop_assert_eq!(count(vec![shards.concat()], bytes), expected);
        }
    }

    #[test]
    fn runs_longer_than_a_block_are_read_back_from_disk() {
        let keys = |step: u32| (0..30_000).map(|i| [i * step, 7, 7]).collect::<Vec<[u32; 3]>>();
        let counts = count(vec![keys(2), keys(3)], 1000);
        assert_eq!(counts, count(vec![keys(2), keys(3)], usize::MAX));
        assert_eq!(counts.len(), 50_000);
        assert_eq!(counts[4], ([6, 7, 7], 2));
    }

    #[test]
    fn a_count_beyond_64_bits_is_an_error() {
        let mut counter = RunCounter::new(&budget(usize::MAX));
        counter.push_run(Run::new(vec![1_u64], vec![u64::MAX])).unwrap();
        counter.push_keys(vec![1]).unwrap();
        let result: Result<Vec<_>, _> = counter.finish().unwrap().collect();
        assert!(matches!(result, Err(CountError::Overflow)));
    }

    #[test]
    fn the_error_for_a_missing_folder_names_it() {
        let mut counter = RunCounter::new(&Budget { bytes: 0, folder: "absent/folder".into() });
        let error = counter.push_keys(vec![1_u64]).unwrap_err();
        assert!(error.to_string().contains("`absent/folder`"), "{error}");
    }
}
