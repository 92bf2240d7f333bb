//! A range of the histories of one order, and the n-grams that have them.

use super::levels::{StreamedLevel, StreamedLevels};
use super::value::Value;
use latens_counts::CountError;
use latens_counts::spool::{Spool, SpoolReader, Spooled};
use std::ops::Range;
use std::path::Path;

/// Bytes per history of a bucket in memory.
pub(crate) const HISTORY_BYTES: usize = 8 + 8 + 8 + 4 + 4;

/// A range of histories, i.e., of the n-grams of one order.
#[derive(Clone, Debug)]
pub(super) struct HistoryRange {
    pub(super) nodes: Range<u64>,
    /// The first child of the first node, in the next order.
    pub(super) first_child: u64,
}

/// Divides histories into ranges of about `limit` nodes. A range ends where the children of a node of the order below end,
/// so that all candidates for a history are in one range; `lists` has their numbers.
pub(super) fn ranges(
    lists: impl Iterator<Item = Result<u64, CountError>>,
    mut n_children: impl FnMut() -> Result<u64, CountError>,
    limit: u64,
) -> Result<Vec<HistoryRange>, CountError> {
    let mut ranges = Vec::new();
    let (mut begin, mut end, mut first_child, mut child) = (0, 0, 0, 0);
    for list in lists {
        let list = list?;
        if end > begin && end + list - begin > limit {
            ranges.push(HistoryRange { nodes: begin..end, first_child });
            (begin, first_child) = (end, child);
        }
        for _ in 0..list {
            child += n_children()?;
        }
        end += list;
    }
    ranges.push(HistoryRange { nodes: begin..end, first_child });
    Ok(ranges)
}

/// The n-grams of a bucket, as groups of a parent and its children.
pub(super) struct BucketWriter {
    stream: Spool<u32>,
}

/// The n-gram without its first word, and the candidates for the histories of its children.
#[derive(Clone, Copy)]
pub(super) struct Parent {
    pub(super) n_children: u32,
    /// Candidates: a range of nodes of the order below that of the children.
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) prob: f64,
}

impl BucketWriter {
    pub(super) fn new(folder: &Path) -> Result<BucketWriter, CountError> {
        Ok(BucketWriter { stream: Spool::new(folder)? })
    }

    /// Starts a group; its children follow.
    pub(super) fn parent(&mut self, parent: Parent) -> Result<(), CountError> {
        let prob = parent.prob.to_bits();
        for part in [parent.n_children, parent.begin, parent.end, prob as u32, (prob >> 32) as u32]
        {
            self.stream.push(part)?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn child(&mut self, [word, value]: [u32; 2]) -> Result<(), CountError> {
        self.stream.push(word)?;
        self.stream.push(value)
    }

    pub(super) fn finish(self) -> Result<Spooled<u32>, CountError> {
        self.stream.finish()
    }
}

fn read_parent(stream: &mut SpoolReader<'_, u32>) -> Result<Parent, CountError> {
    let (n_children, begin, end) = (stream.next()?, stream.next()?, stream.next()?);
    let (low, high) = (stream.next()?, stream.next()?);
    let prob = f64::from_bits(u64::from(low) | u64::from(high) << 32);
    Ok(Parent { n_children, begin, end, prob })
}

/// What is known of an n-gram after its bucket.
#[derive(Clone, Copy)]
pub(super) struct Estimated {
    pub(super) prob: f64,
    /// The children of its history: the candidates for the histories of its own children.
    pub(super) begin: u32,
    pub(super) end: u32,
}

/// The results of a bucket.
pub(super) struct BucketResult {
    /// [`Estimated`] of each n-gram, as four numbers.
    pub(super) estimated: Spooled<[u32; 4]>,
    /// ln γ of the histories that are not pruned.
    pub(super) backoffs: Vec<f32>,
}

impl Estimated {
    fn pack(self) -> [u32; 4] {
        let prob = self.prob.to_bits();
        [prob as u32, (prob >> 32) as u32, self.begin, self.end]
    }

    #[inline]
    pub(super) fn unpack([low, high, begin, end]: [u32; 4]) -> Estimated {
        let prob = f64::from_bits(u64::from(low) | u64::from(high) << 32);
        Estimated { prob, begin, end }
    }
}

/// The histories of a bucket in memory.
struct Histories<'a> {
    levels: &'a StreamedLevels,
    /// The order of the n-grams minus 2, which is the index of their level.
    level: usize,
    first: u64,
    /// Nodes of the order of the histories; empty for words, whose node is their id.
    nodes: Vec<[u32; 2]>,
    totals: Vec<u64>,
    gammas: Vec<f64>,
    /// First child of each history, then the end of the last one's.
    children: Vec<u32>,
}

/// Estimates the n-grams of a bucket. `None` if a history is missing.
pub(super) fn estimate_bucket(
    levels: &StreamedLevels,
    level: usize,
    range: &HistoryRange,
    stream: &Spooled<u32>,
    folder: &Path,
) -> Result<Option<BucketResult>, CountError> {
    let mut histories = Histories::read(levels, level, range)?;
    if !histories.add_masses(stream)? {
        return Ok(None);
    }
    let estimated = histories.estimate(stream, folder)?;
    let backoffs = histories.backoffs();
    Ok(Some(BucketResult { estimated, backoffs }))
}

impl<'a> Histories<'a> {
    fn read(
        levels: &'a StreamedLevels,
        level: usize,
        HistoryRange { nodes, first_child }: &HistoryRange,
    ) -> Result<Histories<'a>, CountError> {
        let n = (nodes.end - nodes.start) as usize;
        let mut children = Vec::with_capacity(n + 1);
        let mut end = *first_child as u32;
        children.push(end);
        let mut push = |n_children: u64| {
            end += n_children as u32;
            children.push(end);
        };
        let nodes_in_memory = match level.checked_sub(1).map(|below| &levels.levels[below]) {
            Some(below) => {
                let read = below.nodes.read(nodes.clone())?;
                read.iter().for_each(|&node| push(levels.n_children(below, node)));
                read
            }
            None => {
                levels.unigrams.iter().for_each(|&n_children| push(n_children));
                Vec::new()
            }
        };
        Ok(Histories {
            levels,
            level,
            first: nodes.start,
            nodes: nodes_in_memory,
            totals: vec![0; n],
            gammas: vec![0.0; n],
            children,
        })
    }

    fn own_level(&self) -> &'a StreamedLevel {
        &self.levels.levels[self.level]
    }

    /// D(a(u)), the mass taken from an n-gram: all of it if the n-gram is pruned.
    #[inline]
    fn taken(own: &StreamedLevel, value: Value, adjusted: u64) -> f64 {
        if value.is_pruned() { adjusted as f64 } else { own.discounts.of_count(adjusted) }
    }

    /// The node of `word` among `at..end`, searched with growing steps: it is often near the last one.
    #[inline]
    fn find(&self, at: usize, end: usize, word: u32) -> Option<usize> {
        if self.level == 0 {
            return Some(word as usize);
        }
        let nodes = self.nodes.get(at..end)?;
        let mut step = 1;
        while step < nodes.len() && nodes[step][0] < word {
            step *= 2;
        }
        let near = &nodes[step / 2..nodes.len().min(step + 1)];
        let found = step / 2 + near.partition_point(|node| node[0] < word);
        (nodes.get(found)?[0] == word).then_some(at + found)
    }

    /// Computes A(h) and γ(h) of all histories. Returns whether all histories exist.
    fn add_masses(&mut self, stream: &Spooled<u32>) -> Result<bool, CountError> {
        let own = self.own_level();
        let mut reader = stream.reader();
        while !reader.is_at_end() {
            let parent = read_parent(&mut reader)?;
            let (mut at, end) = self.candidates(parent);
            for _ in 0..parent.n_children {
                let (word, value) = (reader.next()?, Value(reader.next()?));
                let Some(found) = self.find(at, end, word) else { return Ok(false) };
                at = found;
                let adjusted = value.adjusted(&own.large);
                self.totals[at] += adjusted;
                self.gammas[at] += Self::taken(own, value, adjusted);
            }
        }
        for (gamma, &total) in self.gammas.iter_mut().zip(&self.totals) {
            // A node that is not a history leaves all mass to the shorter history.
            *gamma = if total == 0 { 1.0 } else { *gamma / total as f64 };
        }
        Ok(true)
    }

    /// The candidates for the histories of the children of a parent.
    fn candidates(&self, parent: Parent) -> (usize, usize) {
        let at = |node: u32| (u64::from(node) - self.first) as usize;
        (at(parent.begin), at(parent.end))
    }

    /// Computes p(w | h) of every n-gram.
    fn estimate(
        &self,
        stream: &Spooled<u32>,
        folder: &Path,
    ) -> Result<Spooled<[u32; 4]>, CountError> {
        let own = self.own_level();
        let mut reader = stream.reader();
        let mut estimated = Spool::new(folder)?;
        while !reader.is_at_end() {
            let parent = read_parent(&mut reader)?;
            let (mut at, end) = self.candidates(parent);
            for _ in 0..parent.n_children {
                let (word, value) = (reader.next()?, Value(reader.next()?));
                at = self.find(at, end, word).expect("the first pass found all histories");
                let adjusted = value.adjusted(&own.large);
                let kept = adjusted as f64 - Self::taken(own, value, adjusted);
                let prob = kept / self.totals[at] as f64 + self.gammas[at] * parent.prob;
                let (begin, end) = (self.children[at], self.children[at + 1]);
                estimated.push(Estimated { prob, begin, end }.pack())?;
            }
        }
        estimated.finish()
    }

    fn backoffs(&self) -> Vec<f32> {
        let is_kept = |at: usize| self.nodes.get(at).is_none_or(|node| !Value(node[1]).is_pruned());
        let gammas = self.gammas.iter().enumerate().filter(|&(at, _)| is_kept(at));
        gammas.map(|(_, gamma)| gamma.ln() as f32).collect()
    }
}
