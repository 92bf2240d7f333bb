//! Estimation order by order.

use super::bucket::{
    BucketResult, BucketWriter, Estimated, HISTORY_BYTES, HistoryRange, Parent, estimate_bucket,
    ranges,
};
use super::levels::StreamedLevels;
use super::value::Value;
use crate::discounts::Discounts;
use crate::kneser_ney::unigram_probs;
use crate::trie::{Level, Trie};
use latens_counts::spool::{Spool, SpoolReader, Spooled};
use latens_counts::{Budget, CountError};
use rayon::prelude::*;
use std::path::Path;

/// Approximate number of buckets at most. Each has two open files with buffers.
pub(crate) const MAX_BUCKETS: u64 = 48;

/// Estimates the trie of all probabilities and the discounts of each order, in about the memory of `budget`. `report`
/// receives the number of n-grams that are done and can stop the estimation by an error.
///
/// `None` if the history of an n-gram was never added, which cannot happen with n-grams of a text.
pub(crate) fn estimate(
    levels: &StreamedLevels,
    budget: &Budget,
    report: &mut dyn FnMut(u64) -> Result<(), CountError>,
) -> Result<Option<(Trie, Vec<Discounts>)>, CountError> {
    let folder = &budget.folder;
    let order = levels.levels.len() + 1;
    let mut discounts = vec![levels.unigram_discounts];
    discounts.extend(levels.levels.iter().map(|level| level.discounts));
    let n_words = levels.begin as usize;
    let probs = unigram_probs(&levels.unigrams[..n_words], &levels.unigram_discounts);
    let mut done = probs.len() as u64;
    report(done)?;
    let log_probs: Vec<f32> = probs.iter().map(|prob| prob.ln() as f32).collect();
    let mut trie = vec![Level {
        words: Vec::new().into(),
        log_probs: log_probs.into(),
        backoffs: Vec::new().into(),
        children: Vec::new().into(),
    }];
    if order == 1 {
        return Ok(Some((Trie { levels: trie }, discounts)));
    }
    let mut next = Distribution::of_words(levels, &probs, folder)?;
    for level in 0..order - 1 {
        let Distribution { route, buckets, children } = next;
        let Some(results) = estimate_buckets(levels, level, buckets, folder)? else {
            return Ok(None);
        };
        let below = trie.last_mut().expect("order 1 is there");
        below.children = children.into_array()?;
        below.backoffs = results.backoffs.into_array()?;
        let mut sink = LevelSink::new(levels, level, budget)?;
        let mut readers: Vec<_> = results.estimated.iter().map(Spooled::reader).collect();
        let mut nodes = levels.levels[level].nodes.reader();
        let mut route = route.reader();
        while !route.is_at_end() {
            let [bucket, n_children] = route.next()?;
            for _ in 0..n_children {
                sink.add(nodes.next()?, Estimated::unpack(readers[bucket as usize].next()?))?;
            }
            done += u64::from(n_children);
            if done % (1 << 20) < u64::from(n_children) {
                report(done)?;
            }
        }
        let (estimated, distribution) = sink.finish()?;
        trie.push(estimated);
        match distribution {
            Some(distribution) => next = distribution,
            None => break,
        }
    }
    Ok(Some((Trie { levels: trie }, discounts)))
}

/// The n-grams of one order, in buckets of their histories.
struct Distribution {
    /// The bucket and the number of children of each n-gram of the order below that has children.
    route: Spooled<[u32; 2]>,
    buckets: Vec<(HistoryRange, Spooled<u32>)>,
    /// Offsets of the children that are not pruned, of the n-grams of the order below that are not pruned.
    children: Spooled<u64>,
}

impl Distribution {
    /// The n-grams of order 2. Their histories are the words, which are in memory.
    fn of_words(
        levels: &StreamedLevels,
        probs: &[f64],
        folder: &Path,
    ) -> Result<Distribution, CountError> {
        let n = probs.len() as u64;
        let all = HistoryRange { nodes: 0..n, first_child: 0 };
        let mut writer = DistributionWriter::new(levels, 0, vec![all], folder)?;
        for (&prob, &n_children) in probs.iter().zip(&levels.unigrams) {
            writer.add(false, n_children, Estimated { prob, begin: 0, end: n as u32 })?;
        }
        writer.finish()
    }
}

/// Writes a [`Distribution`].
struct DistributionWriter<'a> {
    /// The n-grams to distribute.
    nodes: SpoolReader<'a, [u32; 2]>,
    ranges: Vec<HistoryRange>,
    writers: Vec<BucketWriter>,
    route: Spool<[u32; 2]>,
    children: Spool<u64>,
    n_kept: u64,
}

impl<'a> DistributionWriter<'a> {
    fn new(
        levels: &'a StreamedLevels,
        level: usize,
        ranges: Vec<HistoryRange>,
        folder: &Path,
    ) -> Result<DistributionWriter<'a>, CountError> {
        let writers = ranges.iter().map(|_| BucketWriter::new(folder));
        let mut children = Spool::new(folder)?;
        children.push(0)?;
        Ok(DistributionWriter {
            nodes: levels.levels[level].nodes.reader(),
            writers: writers.collect::<Result<_, _>>()?,
            ranges,
            route: Spool::new(folder)?,
            children,
            n_kept: 0,
        })
    }

    /// Distributes the children of the next n-gram of the order below.
    #[inline]
    fn add(&mut self, is_pruned: bool, n_children: u64, of: Estimated) -> Result<(), CountError> {
        if n_children > 0 {
            let begin = u64::from(of.begin);
            let bucket = self.ranges.partition_point(|range| range.nodes.end <= begin);
            // A parent without candidates is found to be wrong by its bucket.
            let bucket = bucket.min(self.ranges.len() - 1);
            let Estimated { prob, begin, end } = of;
            let n_children = n_children as u32;
            self.route.push([bucket as u32, n_children])?;
            let writer = &mut self.writers[bucket];
            writer.parent(Parent { n_children, begin, end, prob })?;
            for _ in 0..n_children {
                let child = self.nodes.next()?;
                self.n_kept += u64::from(!Value(child[1]).is_pruned());
                writer.child(child)?;
            }
        }
        if is_pruned { Ok(()) } else { self.children.push(self.n_kept) }
    }

    fn finish(self) -> Result<Distribution, CountError> {
        let written = self.writers.into_iter().map(BucketWriter::finish);
        let buckets = self.ranges.into_iter().zip(written);
        let buckets = buckets.map(|(range, written)| Ok((range, written?)));
        Ok(Distribution {
            route: self.route.finish()?,
            buckets: buckets.collect::<Result<_, CountError>>()?,
            children: self.children.finish()?,
        })
    }
}

/// The results of all buckets.
struct Results {
    estimated: Vec<Spooled<[u32; 4]>>,
    backoffs: Spooled<f32>,
}

/// Estimates as many buckets at once as there are threads.
fn estimate_buckets(
    levels: &StreamedLevels,
    level: usize,
    buckets: Vec<(HistoryRange, Spooled<u32>)>,
    folder: &Path,
) -> Result<Option<Results>, CountError> {
    let mut estimated = Vec::with_capacity(buckets.len());
    let mut backoffs = Spool::new(folder)?;
    let mut buckets = buckets.into_iter().peekable();
    while buckets.peek().is_some() {
        let some: Vec<_> = buckets.by_ref().take(rayon::current_num_threads()).collect();
        let results = some
            .into_par_iter()
            .with_max_len(1)
            .map(|(range, stream)| estimate_bucket(levels, level, &range, &stream, folder));
        for result in results.collect::<Result<Vec<_>, _>>()? {
            let Some(BucketResult { estimated: own, backoffs: own_backoffs }) = result else {
                return Ok(None);
            };
            estimated.push(own);
            own_backoffs.into_iter().try_for_each(|backoff| backoffs.push(backoff))?;
        }
    }
    Ok(Some(Results { estimated, backoffs: backoffs.finish()? }))
}

/// Receives the n-grams of one order with their probabilities, and distributes those of the next order.
struct LevelSink<'a> {
    levels: &'a StreamedLevels,
    level: usize,
    words: Spool<u32>,
    log_probs: Spool<f32>,
    next: Option<DistributionWriter<'a>>,
}

impl<'a> LevelSink<'a> {
    fn new(
        levels: &'a StreamedLevels,
        level: usize,
        budget: &Budget,
    ) -> Result<LevelSink<'a>, CountError> {
        let folder = &budget.folder;
        let next = if level + 1 < levels.levels.len() {
            let ranges = history_ranges(levels, level, budget)?;
            Some(DistributionWriter::new(levels, level + 1, ranges, folder)?)
        } else {
            None
        };
        let (words, log_probs) = (Spool::new(folder)?, Spool::new(folder)?);
        Ok(LevelSink { levels, level, words, log_probs, next })
    }

    #[inline]
    fn add(&mut self, node: [u32; 2], estimated: Estimated) -> Result<(), CountError> {
        let is_pruned = Value(node[1]).is_pruned();
        if !is_pruned {
            self.words.push(node[0])?;
            self.log_probs.push(estimated.prob.ln() as f32)?;
        }
        let Some(next) = &mut self.next else { return Ok(()) };
        let n_children = self.levels.n_children(&self.levels.levels[self.level], node);
        next.add(is_pruned, n_children, estimated)
    }

    fn finish(self) -> Result<(Level, Option<Distribution>), CountError> {
        let level = Level {
            words: self.words.finish()?.into_array()?,
            log_probs: self.log_probs.finish()?.into_array()?,
            backoffs: Vec::new().into(),
            children: Vec::new().into(),
        };
        Ok((level, self.next.map(DistributionWriter::finish).transpose()?))
    }
}

/// Divides the n-grams of a level into ranges of histories of the next one.
fn history_ranges(
    levels: &StreamedLevels,
    level: usize,
    budget: &Budget,
) -> Result<Vec<HistoryRange>, CountError> {
    let share = budget.bytes / rayon::current_num_threads();
    let own = &levels.levels[level];
    let limit = (share / HISTORY_BYTES).max(1) as u64;
    let limit = limit.max(own.nodes.len() / MAX_BUCKETS);
    let mut nodes = own.nodes.reader();
    let n_children = || Ok(levels.n_children(own, nodes.next()?));
    match level.checked_sub(1).map(|below| &levels.levels[below]) {
        None => ranges(levels.unigrams.iter().map(|&n| Ok(n)), n_children, limit),
        Some(below) => {
            let mut parents = below.nodes.reader();
            let lists = std::iter::from_fn(|| {
                let node = (!parents.is_at_end()).then(|| parents.next())?;
                Some(node.map(|node| levels.n_children(below, node)))
            });
            ranges(lists, n_children, limit)
        }
    }
}
