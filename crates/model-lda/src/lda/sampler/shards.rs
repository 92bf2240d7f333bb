//! Sampling in shards, so that several threads or machines can share the work.
//!
//! As in Newman et al. (2009), "Distributed algorithms for topic models", the documents are split into fixed shards. In
//! each sweep, every shard starts from the same counts and sees its own changes only; afterwards the changes of all shards
//! are added up. The shards depend on the documents alone, so that the number of threads does not change a model. A small
//! corpus is one shard, which is ordinary Gibbs sampling.

use super::prior::Prior;
use super::table::Table;
use crate::documents::TypedDocuments;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of shards, and minimum number of tokens per shard; few in tests, so that small corpora are split, too.
///
/// The fewer tokens, the more a shard misses of the others' changes, and the more sweeps are needed.
const N_SHARDS: usize = if cfg!(test) { 4 } else { 16 };
const TOKENS: usize = if cfg!(test) { 1024 } else { 131_072 };

/// Number of tokens from which a corpus is split. To add up the changes of shards takes time, which a small corpus does not
/// win back.
const MIN_TOKENS: usize = if cfg!(test) { 2 * TOKENS } else { 4 * TOKENS };

/// Number of shards of a corpus: a power of two, so that two or four threads get equally many.
pub(crate) fn n_shards(n_tokens: usize) -> usize {
    if n_tokens < MIN_TOKENS {
        return 1;
    }
    1 << (n_tokens / TOKENS).clamp(1, N_SHARDS).ilog2()
}

/// Consecutive documents of about as many tokens each.
pub(super) fn shards(documents: &TypedDocuments) -> Vec<Range<usize>> {
    let (n_tokens, n_shards) = (documents.n_tokens(), n_shards(documents.n_tokens()));
    let end = |shard: usize| match shard + 1 {
        last if last == n_shards => documents.len(),
        next => documents.offsets.partition_point(|&offset| offset < n_tokens * next / n_shards),
    };
    let mut begin = 0;
    let mut next = |shard| {
        let documents = begin..end(shard).clamp(begin, documents.len());
        begin = documents.end;
        documents
    };
    (0..n_shards).map(&mut next).filter(|documents| !documents.is_empty()).collect()
}

/// A sweep over the documents of one shard.
pub(super) struct Shard<'a> {
    pub(super) all: &'a TypedDocuments,
    /// The documents of the shard.
    pub(super) documents: Range<usize>,
    pub(super) prior: &'a Prior<'a>,
    /// Counts at the start of the sweep, with the changes of this shard.
    pub(super) table: &'a mut Table,
    pub(super) topics: ShardTopics<'a>,
    /// Seed of the sweep. Every document has its own stream.
    pub(super) seed: u64,
}

/// The topics of all tokens: those of the shard as they are, those of others as they were at the start of the sweep.
pub(super) struct ShardTopics<'a> {
    all: &'a [u16],
    first: usize,
    own: Vec<u16>,
}

impl ShardTopics<'_> {
    /// The topic of any token.
    #[inline(always)]
    pub(super) fn get(&self, token: usize) -> u16 {
        self.own.get(token.wrapping_sub(self.first)).copied().unwrap_or_else(|| self.all[token])
    }

    /// The topics of a document of the shard.
    #[inline(always)]
    pub(super) fn document(&mut self, tokens: Range<usize>) -> &mut [u16] {
        &mut self.own[tokens.start - self.first..tokens.end - self.first]
    }

    /// Changes the topic of a token of the shard.
    #[inline(always)]
    pub(super) fn set(&mut self, token: usize, topic: u16) {
        self.own[token - self.first] = topic;
    }
}

/// Types in order, split into `n` parts of about as many tokens each.
pub(super) fn parts(type_counts: &[u64], n: usize) -> Vec<Range<u32>> {
    let n_tokens: u64 = type_counts.iter().sum();
    let (mut begin, mut n_before) = (0, 0);
    let part = |part: usize| {
        let mut end = begin;
        while end < type_counts.len()
            && (part + 1 == n || n_before < n_tokens * (part as u64 + 1) / n as u64)
        {
            n_before += type_counts[end];
            end += 1;
        }
        let types = begin as u32..end as u32;
        begin = end;
        types
    };
    (0..n).map(part).collect()
}

/// What a sweep over one shard leaves behind.
struct Swept {
    shard: usize,
    /// The topics of the shard's tokens.
    topics: Vec<u16>,
    /// The sizes of all topics with the changes of this shard.
    totals: Vec<f64>,
}

/// Samples every token once. `tables` have the counts of all tokens, before and after; each thread uses one, and adds up
/// the changes of all shards in its part of the types. Returns the number of tokens that changed their topic.
pub(super) fn sweep(
    all: &TypedDocuments,
    shards: &[Range<usize>],
    prior: &Prior<'_>,
    (tables, parts): (&mut [Table], &[Range<u32>]),
    topics: &mut [u16],
    seed: u64,
    sample: impl Fn(&mut Shard<'_>) + Sync,
) -> u64 {
    let tokens = |shard: usize| all.offsets[shards[shard].start]..all.offsets[shards[shard].end];
    let (before, next) = (&*topics, AtomicUsize::new(0));
    let mut totals = tables[0].totals().to_vec();
    // One task per table takes shards until none is left. Its table keeps the changes of its last shard.
    let run = |table: &mut Table| {
        let mut done: Vec<Swept> = Vec::new();
        loop {
            let shard = next.fetch_add(1, Ordering::Relaxed);
            if shard >= shards.len() {
                return done;
            }
            if let Some(last) = done.last() {
                let tokens = tokens(last.shard);
                let types = &all.types[tokens.clone()];
                table.move_tokens(&(0..u32::MAX), types, &last.topics, &before[tokens]);
            }
            let own = before[tokens(shard)].to_vec();
            let topics = ShardTopics { all: before, first: tokens(shard).start, own };
            let documents = shards[shard].clone();
            let mut part = Shard { all, documents, prior, table, topics, seed };
            sample(&mut part);
            let topics = part.topics.own;
            done.push(Swept { shard, topics, totals: table.totals().to_vec() });
        }
    };
    let done: Vec<_> = tables.par_iter_mut().map(run).collect();
    tables.par_iter_mut().zip(parts).zip(&done).for_each(|((table, part), own)| {
        let has = own.last().map(|last| last.shard);
        for swept in done.iter().flatten().filter(|swept| Some(swept.shard) != has) {
            let tokens = tokens(swept.shard);
            let types = &all.types[tokens.clone()];
            table.move_tokens(part, types, &before[tokens], &swept.topics);
        }
    });
    let first = totals.clone();
    for swept in done.iter().flatten() {
        let changes = swept.totals.iter().zip(&first).map(|(after, before)| after - before);
        totals.iter_mut().zip(changes).for_each(|(total, change)| *total += change);
    }
    Table::share(tables, parts, &totals);

    let mut done: Vec<Swept> = done.into_iter().flatten().collect();
    done.sort_unstable_by_key(|swept| swept.shard);
    let (mut rest, mut begin) = (topics, 0);
    let mut of_shards = Vec::with_capacity(done.len());
    for swept in &done {
        let tokens = tokens(swept.shard);
        let (topics, others) = rest[tokens.start - begin..].split_at_mut(tokens.len());
        of_shards.push(topics);
        (rest, begin) = (others, tokens.end);
    }
    let update = |(topics, swept): (&mut [u16], &Swept)| {
        let n_changed = topics.iter().zip(&swept.topics).filter(|(a, b)| a != b).count();
        topics.copy_from_slice(&swept.topics);
        n_changed as u64
    };
    of_shards.into_par_iter().zip(&done).map(update).sum()
}

/// Samples every token of one shard once, on its own. `table` has the counts of all tokens before.
pub(super) fn sweep_one(
    documents: (&TypedDocuments, Range<usize>),
    prior: &Prior<'_>,
    table: &mut Table,
    topics: &mut Vec<u16>,
    seed: u64,
    sample: impl Fn(&mut Shard<'_>),
) {
    let (all, documents) = documents;
    let topics_of_shard = ShardTopics { all: &[], first: 0, own: std::mem::take(topics) };
    let mut shard = Shard { all, documents, prior, table, topics: topics_of_shard, seed };
    sample(&mut shard);
    *topics = shard.topics.own;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_all_documents_once_and_about_as_many_tokens() {
        let lengths = [0, 3600, 12, 1200, 1200, 0, 160, 2800, 1024, 4, 2400, 0];
        let documents = TypedDocuments::new(lengths.map(|n| vec![0; n]));
        let shards = shards(&documents);
        let all: Vec<usize> = shards.iter().cloned().flatten().collect();
        assert_eq!(all, (0..lengths.len()).collect::<Vec<_>>());
        assert!(shards.len() > 3 && shards.len() <= n_shards(documents.n_tokens()));
        for shard in &shards {
            let n: usize = lengths[shard.clone()].iter().sum();
            assert!(
                n <= 3600 + documents.n_tokens() / n_shards(documents.n_tokens()),
                "{shards:?}"
            );
        }
        let few = TypedDocuments::new([[0; 10]; 3]);
        assert_eq!(super::shards(&few), vec![Range { start: 0, end: 3 }]);
    }

    #[test]
    fn parts_have_all_types_once_and_about_as_many_tokens() {
        let counts = [0, 0, 90, 40, 30, 0, 20, 10, 5, 5, 0];
        assert_eq!(parts(&counts, 1), vec![Range { start: 0, end: 11 }]);
        assert_eq!(parts(&counts, 2), [0..4, 4..11]);
        assert_eq!(parts(&counts, 3), [0..3, 3..5, 5..11]);
        assert_eq!(parts(&[0, 7], 3), [0..2, 2..2, 2..2]);
        assert_eq!(parts(&[], 2), [0..0, 0..0]);
    }
}
