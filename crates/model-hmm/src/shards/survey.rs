//! The first round: the counts of words, the state space and the initial model.

use super::progress::{Progress, inconsistent};
use super::space::{CLUSTERS, WORDS, recounted};
use super::{baum_welch, gradient};
use crate::params::{Constraint, HmmParams, WordEmbedding};
use crate::space::clusters::{NO_CLUSTER, clustering};
use crate::space::state_space::StateSpace;
use latens_corpus::{Sentences, Vocab, VocabLimits, WordId};
use latens_model::shards::{Arrays, Job, ShardState, Step};
use latens_model::{FitError, Params, WordClusters, unwatched};
use latens_model_brown::{BigramCounts, Brown};

const SENTENCES: &str = "sentences";
const LENGTHS: &str = "lengths";
const SHARD_TOKENS: &str = "shard_tokens";
/// The cluster of every word, as an additional input; words without a cluster have [`NO_CLUSTER`].
const GIVEN: &str = "word_clusters";

/// Counts the words of a shard, and what else the initial model needs.
pub(super) fn survey(
    job: &Job<'_, HmmParams>,
    shard: usize,
    text: &Sentences,
) -> Result<Arrays, FitError> {
    let mut counts = vec![0u64; job.lexicon.vocab.len()];
    text.tokens().iter().for_each(|word| counts[word.index()] += 1);
    let size = [(shard as u64, text.n_tokens() as i64)];
    let mut sums = Arrays::new().with(SENTENCES, vec![text.len() as u64]);
    sums = sums.with_sparse(SHARD_TOKENS, size);
    if needs_clusters(job) {
        sums = BigramCounts::of(text, counts.len())?.add_to(sums);
    }
    if !job.params.by_em() {
        let key = |i: usize| (shard as u64) << 32 | i as u64;
        let lengths = text.iter().enumerate().map(|(i, words)| (key(i), words.len() as i64));
        sums = sums.with_sparse(LENGTHS, lengths);
    }
    Ok(sums.with(WORDS, counts))
}

fn needs_clusters(job: &Job<'_, HmmParams>) -> bool {
    job.params.constraint == Constraint::Brown && !job.state.arrays.has(GIVEN)
}

/// Makes the initial model.
pub(super) fn begin(job: &Job<'_, HmmParams>, sums: &Arrays) -> Result<Step, FitError> {
    let n_words = job.lexicon.vocab.len();
    let counts = sums.expect_counts(WORDS, n_words)?.clone();
    let vocab = recounted(&job.lexicon.vocab, &counts);
    let clusters = match job.params.constraint {
        Constraint::Brown if needs_clusters(job) => Some(learned(job, sums)?),
        Constraint::Brown => Some(given(job)?),
        Constraint::None | Constraint::Uniform => None,
    };
    let space = StateSpace::from_params(&job.params, &vocab, clusters.as_ref())?;
    let sentences = sums.expect::<u64>(SENTENCES, 1)?[0];
    let shard_tokens = sums.expect_sparse(SHARD_TOKENS)?.into_iter().map(|(_, n)| n as u64);
    let progress = Progress {
        tokens: counts.iter().sum(),
        sentences,
        shard_tokens: shard_tokens.collect(),
        ..Progress::default()
    };
    let arrays =
        Arrays::new().with(WORDS, counts.to_vec()).with(CLUSTERS, space.cluster_of().to_vec());
    let state = ShardState { arrays, n_rounds: job.state.n_rounds, ..ShardState::default() };
    if job.params.by_em() {
        return baum_welch::begin(job, &vocab, space, progress, state);
    }
    let mut lengths = vec![Vec::new(); job.n_shards];
    for (key, length) in sums.expect_sparse(LENGTHS)? {
        let of_shard = lengths.get_mut((key >> 32) as usize);
        let of_shard =
            of_shard.ok_or_else(|| inconsistent("the number of a shard is out of range"))?;
        of_shard.push(u32::try_from(length).map_err(|_| inconsistent("a length is invalid"))?);
    }
    gradient::begin(job, space, progress, state, &lengths)
}

fn given(job: &Job<'_, HmmParams>) -> Result<WordClusters, FitError> {
    let of_word = job.array::<u32>(GIVEN, job.lexicon.vocab.len())?;
    let of_word = of_word.iter().map(|&cluster| (cluster != NO_CLUSTER).then_some(cluster));
    let n = job.params.n_clusters;
    let width = (usize::BITS - (n - 1).leading_zeros()).max(1) as usize;
    let paths = (0..n).map(|cluster| format!("{cluster:0width$b}")).collect();
    WordClusters::new(of_word.collect(), paths).map_err(FitError::step("use word clusters"))
}

/// Learns word clusters from the bigrams of the text.
fn learned(job: &Job<'_, HmmParams>, sums: &Arrays) -> Result<WordClusters, FitError> {
    let mut counts = BigramCounts::from_arrays(sums, job.lexicon.vocab.len())?;
    let mut lexicon = job.lexicon.clone();
    if job.params.word_vectors == WordEmbedding::Chars {
        let limits = VocabLimits { min_count: lexicon.limits.min_count.max(2), ..lexicon.limits };
        let all = lexicon.vocab.words().zip(lexicon.vocab.counts().iter().copied());
        lexicon.vocab = Vocab::from_counts(all, &limits);
        counts = renamed(counts, &job.lexicon.vocab, &lexicon.vocab);
    }
    let brown = clustering(&job.params).validate()?;
    let brown = Brown::from_counts(&brown, &lexicon, counts, &mut unwatched)?;
    Ok(brown.clusters().for_words(&lexicon.vocab, &job.lexicon.vocab))
}

/// The counts in the ids of a smaller vocabulary.
fn renamed(counts: BigramCounts, from: &Vocab, to: &Vocab) -> BigramCounts {
    let id = |word: u64| u64::from(to.id(from.word(WordId(word as u32))).0);
    let mut frequency = vec![0; to.len()];
    for (word, &count) in counts.frequency.iter().enumerate().filter(|(_, count)| **count > 0) {
        frequency[id(word as u64) as usize] += count;
    }
    let rename = |(key, count): (u64, u64)| (id(key >> 32) << 32 | id(key & 0xffff_ffff), count);
    let mut pairs: Vec<(u64, u64)> = counts.pairs.into_iter().map(rename).collect();
    pairs.sort_unstable_by_key(|&(key, _)| key);
    pairs.dedup_by(|next, sum| {
        let is_same = next.0 == sum.0;
        sum.1 += if is_same { next.1 } else { 0 };
        is_same
    });
    BigramCounts { frequency, pairs }
}
