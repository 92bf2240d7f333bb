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
const TOKENS: usize = if cfg!(test) { 1024 } else { 262_144 };

/// Number of shards of a corpus: a power of two, so that two or four threads get equally many.
pub(crate) fn n_shards(n_tokens: usize) -> usize {
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

/// Samples every token once. `tables` have the counts of all tokens, before and after; each thread uses one. Returns the
/// number of tokens that changed their topic.
pub(super) fn sweep(
    all: &TypedDocuments,
    shards: &[Range<usize>],
    prior: &Prior<'_>,
    tables: &mut [Table],
    topics: &mut [u16],
    seed: u64,
    sample: impl Fn(&mut Shard<'_>) + Sync,
) -> u64 {
    let tokens = |shard: usize| all.offsets[shards[shard].start]..all.offsets[shards[shard].end];
    let (before, next) = (&*topics, AtomicUsize::new(0));
    // One task per table takes shards until none is left. Its table keeps the changes of its last shard.
    let run = |table: &mut Table| {
        let mut done: Vec<(usize, Vec<u16>)> = Vec::new();
        loop {
            let shard = next.fetch_add(1, Ordering::Relaxed);
            if shard >= shards.len() {
                return done;
            }
            if let Some((last, after)) = done.last() {
                let tokens = tokens(*last);
                table.move_tokens(&all.types[tokens.clone()], after, &before[tokens]);
            }
            let own = before[tokens(shard)].to_vec();
            let topics = ShardTopics { all: before, first: tokens(shard).start, own };
            let documents = shards[shard].clone();
            let mut part = Shard { all, documents, prior, table, topics, seed };
            sample(&mut part);
            done.push((shard, part.topics.own));
        }
    };
    let done: Vec<_> = tables.par_iter_mut().map(run).collect();
    tables.par_iter_mut().zip(&done).for_each(|(table, own)| {
        let has = own.last().map(|(shard, _)| *shard);
        for (shard, after) in done.iter().flatten().filter(|(shard, _)| Some(*shard) != has) {
            let tokens = tokens(*shard);
            table.move_tokens(&all.types[tokens.clone()], &before[tokens], after);
        }
    });
    let mut n_changed = 0;
    for (shard, after) in done.iter().flatten() {
        let topics = &mut topics[tokens(*shard)];
        n_changed += topics.iter().zip(after).filter(|(a, b)| a != b).count() as u64;
        topics.copy_from_slice(after);
    }
    n_changed
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
}
