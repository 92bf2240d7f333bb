//! What the topic models of shards share: the places of documents, topics of tokens, and counts.

use crate::dirichlet::DIRICHLET;
use crate::documents::TypedDocuments;
use latens_math::{digamma, ln_gamma};
use latens_model::FitError;
use latens_model::shards::{Arrays, Computed, Job};
use serde::{Deserialize, Serialize};

/// Name of the prior weights of topics in a broadcast.
pub(crate) const ALPHA: &str = "alpha";
const TYPES: &str = "types";
const DOCUMENTS: &str = "documents";
const TOKENS: &str = "tokens";
const ALL_TOKENS: &str = "all_tokens";
const COUNTS: &str = "counts";
const CHANGED: &str = "changed";
const TOPICS: &str = "topics";
const MIXTURES: &str = "mixtures";
const LENGTHS: &str = "lengths";
/// The largest number of tokens of all shards. Every worker skips the first random numbers of the shards before its own.
const MAX_TOKENS: u64 = 1 << 36;

/// The sizes of all documents, and where each shard begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sizes {
    /// The first document and the first token of each shard, with the ends of the last one.
    pub(crate) first_document: Vec<u64>,
    pub(crate) first_token: Vec<u64>,
    /// Tokens of all words, including those that topics cannot contain.
    pub(crate) all_tokens: u64,
}

/// An error for statistics or broadcasts that contradict themselves.
pub(crate) fn inconsistent(problem: &str) -> FitError {
    FitError::Step { action: "use the arrays of shards", source: problem.into() }
}

/// The prior weight of each topic, as a broadcast has it.
pub(crate) fn alpha_of<P>(job: &Job<'_, P>, n_topics: usize) -> Result<Vec<f64>, FitError> {
    let alpha = job.array::<f64>(ALPHA, n_topics)?;
    match alpha.iter().all(|weight| DIRICHLET.contains(weight)) {
        true => Ok(alpha.to_vec()),
        false => Err(inconsistent("prior weights of topics are out of range")),
    }
}

/// The sizes of a shard. Arrays with one value per shard are sparse, so that they add up to a list.
pub(crate) fn survey(
    shard: usize,
    documents: &TypedDocuments,
    n_types: usize,
    all_tokens: usize,
) -> Arrays {
    let of_shard = |n: usize| [(shard as u64, n as i64)];
    Arrays::new()
        .with(TYPES, documents.type_counts(n_types))
        .with(ALL_TOKENS, vec![all_tokens as u64])
        .with_sparse(DOCUMENTS, of_shard(documents.len()))
        .with_sparse(TOKENS, of_shard(documents.n_tokens()))
}

impl Sizes {
    /// The sizes of all shards, with the number of tokens of each type.
    pub(crate) fn from_survey(
        sums: &Arrays,
        n_types: usize,
        n_shards: usize,
    ) -> Result<(Sizes, Vec<u64>), FitError> {
        let begins = |name: &str| -> Result<Vec<u64>, FitError> {
            let mut begins = vec![0u64];
            for (i, (shard, n)) in sums.expect_sparse(name)?.into_iter().enumerate() {
                if shard != i as u64 || n < 0 {
                    return Err(inconsistent("sizes of shards are missing"));
                }
                begins.push(begins[i].saturating_add(n as u64));
            }
            if begins.len() == n_shards + 1 {
                Ok(begins)
            } else {
                Err(inconsistent("a size is missing"))
            }
        };
        let (first_document, first_token) = (begins(DOCUMENTS)?, begins(TOKENS)?);
        let all_tokens = sums.expect::<u64>(ALL_TOKENS, 1)?[0];
        let counts = sums.expect_counts(TYPES, n_types)?.to_vec();
        let largest = counts.iter().copied().max().unwrap_or(0);
        if largest > u64::from(u32::MAX) {
            let allows = format!("at most {} occurrences of a word", u32::MAX);
            return Err(FitError::too_much_data(allows, largest));
        }
        let sizes = Sizes { first_document, first_token, all_tokens };
        if sizes.n_tokens() > MAX_TOKENS {
            let allows = format!("at most {MAX_TOKENS} tokens");
            return Err(FitError::too_much_data(allows, sizes.n_tokens()));
        }
        if sizes.n_tokens() != counts.iter().sum::<u64>() {
            return Err(inconsistent("the sizes of shards do not add up to the counts of words"));
        }
        Ok((sizes, counts))
    }

    /// Checks sizes of a broadcast, which may be forged. Only a round after the first has them.
    pub(crate) fn check(&self, n_shards: usize) -> Result<(), FitError> {
        let are_begins =
            |begins: &[u64]| begins.len() == n_shards + 1 && begins[0] == 0 && begins.is_sorted();
        let is_good = are_begins(&self.first_document)
            && are_begins(&self.first_token)
            && (1..=MAX_TOKENS).contains(&self.n_tokens());
        if is_good {
            Ok(())
        } else {
            Err(inconsistent("the sizes of shards contradict each other"))
        }
    }

    pub(crate) fn n_tokens(&self) -> u64 {
        self.first_token.last().copied().unwrap_or(0)
    }

    pub(crate) fn n_documents(&self) -> u64 {
        self.first_document.last().copied().unwrap_or(0)
    }

    /// The documents of a shard with their numbers in the whole corpus.
    pub(crate) fn placed(
        &self,
        shard: usize,
        documents: TypedDocuments,
    ) -> Result<TypedDocuments, FitError> {
        let range = |begins: &[u64]| Some((*begins.get(shard)?, *begins.get(shard + 1)?));
        let (first, end) = range(&self.first_document).unwrap_or_default();
        let (first_token, end_token) = range(&self.first_token).unwrap_or_default();
        let is_same = end.checked_sub(first) == Some(documents.len() as u64)
            && end_token.checked_sub(first_token) == Some(documents.n_tokens() as u64);
        if !is_same {
            return Err(inconsistent("the text of the shard is not the one of the first round"));
        }
        Ok(TypedDocuments { first: first as usize, ..documents })
    }
}

/// The topics that a shard carried over from the last round.
pub(crate) fn carried(
    carry: Option<&Arrays>,
    n_tokens: usize,
    n_topics: usize,
) -> Result<Vec<u16>, FitError> {
    let missing = || inconsistent("the statistics of the shard of the last round are needed");
    let topics = carry.ok_or_else(missing)?.expect::<u16>(TOPICS, n_tokens)?.to_vec();
    if topics.iter().any(|&topic| usize::from(topic) >= n_topics) {
        return Err(inconsistent("a topic is out of range"));
    }
    Ok(topics)
}

/// Checks that the tokens of a shard are part of the counts of all shards, and that no count can overflow.
pub(crate) fn check_part_of(
    documents: &TypedDocuments,
    topics: &[u16],
    counts: &[u32],
    n_topics: usize,
) -> Result<(), FitError> {
    let mut others = counts.to_vec();
    let tokens = documents.types.iter().zip(topics);
    let is_part = tokens.into_iter().all(|(&token_type, &topic)| {
        let count = &mut others[token_type as usize * n_topics + usize::from(topic)];
        let rest = count.checked_sub(1);
        rest.inspect(|&rest| *count = rest).is_some()
    });
    if is_part && counts.iter().all(|&count| count <= u32::MAX / 2) {
        Ok(())
    } else {
        Err(inconsistent("the topics of the shard are not part of the counts"))
    }
}

/// The changes of the counts of a shard. `before` is `None` in the first sweep.
pub(crate) fn changes(
    documents: &TypedDocuments,
    before: Option<&[u16]>,
    after: Vec<u16>,
    (n_types, n_topics): (usize, usize),
    with_mixtures: bool,
) -> Computed {
    let mut counts = vec![0i64; n_types * n_topics];
    let place = |token_type: u32, topic: u16| token_type as usize * n_topics + usize::from(topic);
    for (&t, &topic) in documents.types.iter().zip(&after) {
        counts[place(t, topic)] += 1;
    }
    let mut n_changed = 0;
    if let Some(before) = before {
        for ((&t, &old), &new) in documents.types.iter().zip(before).zip(&after) {
            counts[place(t, old)] -= 1;
            n_changed += u64::from(old != new);
        }
    }
    let counts = (0..).zip(counts).filter(|&(_, n)| n != 0);
    let mut sums = Arrays::new().with_sparse(COUNTS, counts).with(CHANGED, vec![n_changed]);
    if with_mixtures {
        sums = add_mixtures(sums, documents, &after, n_topics);
    }
    Computed { sums, carry: Some(Arrays::new().with(TOPICS, after)) }
}

/// Adds how many documents have n tokens of topic k, and how many have n tokens: all that mixtures depend on.
fn add_mixtures(
    sums: Arrays,
    documents: &TypedDocuments,
    topics: &[u16],
    n_topics: usize,
) -> Arrays {
    let (mut mixtures, mut lengths) = (Vec::new(), Vec::new());
    let mut counts = vec![0u32; n_topics];
    for range in (0..documents.len()).map(|d| documents.range(d)).filter(|range| !range.is_empty())
    {
        lengths.push(range.len() as u64);
        let topics = &topics[range];
        topics.iter().for_each(|&k| counts[usize::from(k)] += 1);
        for &k in topics {
            let n = std::mem::take(&mut counts[usize::from(k)]);
            if n > 0 {
                mixtures.push(u64::from(k) << 32 | u64::from(n));
            }
        }
    }
    sums.with_sparse(MIXTURES, tally(mixtures)).with_sparse(LENGTHS, tally(lengths))
}

fn tally(mut keys: Vec<u64>) -> Vec<(u64, i64)> {
    keys.sort_unstable();
    let runs = keys.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len() as i64)).collect()
}

/// Applies merged changes to the counts. Returns the share of tokens that changed their topic.
pub(crate) fn apply(counts: &mut [u32], sums: &Arrays, n_tokens: u64) -> Result<f64, FitError> {
    for (at, change) in sums.expect_sparse(COUNTS)? {
        let count = counts
            .get_mut(at as usize)
            .ok_or_else(|| inconsistent("the index of a count is out of range"))?;
        let sum = i64::from(*count).checked_add(change).and_then(|sum| u32::try_from(sum).ok());
        *count = sum.ok_or_else(|| inconsistent("a count is out of range"))?;
    }
    Ok(sums.expect::<u64>(CHANGED, 1)?[0] as f64 / n_tokens.max(1) as f64)
}

/// Documents by their numbers of tokens, in all and of each topic.
pub(crate) struct Mixtures {
    by_topic: Vec<(u64, i64)>,
    by_length: Vec<(u64, i64)>,
}

impl Mixtures {
    pub(crate) fn of(sums: &Arrays, n_topics: usize) -> Result<Mixtures, FitError> {
        let (by_topic, by_length) = (sums.expect_sparse(MIXTURES)?, sums.expect_sparse(LENGTHS)?);
        if by_topic.iter().any(|&(key, _)| (key >> 32) as usize >= n_topics) {
            return Err(inconsistent("a topic is out of range"));
        }
        Ok(Mixtures { by_topic, by_length })
    }

    /// ln p(z); see [`crate::dirichlet::log_mixtures`].
    pub(crate) fn log_prob(&self, alpha: &[f64]) -> f64 {
        let total: f64 = alpha.iter().sum();
        let of_length = |&(n, times): &(u64, i64)| {
            times as f64 * (ln_gamma(total) - ln_gamma(total + n as f64))
        };
        let of_topic = |&(key, times): &(u64, i64)| {
            let (a, n) = (alpha[(key >> 32) as usize], (key & 0xffff_ffff) as f64);
            times as f64 * (ln_gamma(a + n) - ln_gamma(a))
        };
        let lengths: f64 = self.by_length.iter().map(of_length).sum();
        lengths + self.by_topic.iter().map(of_topic).sum::<f64>()
    }

    /// One step of the estimate of α; see [`crate::dirichlet::improve_alpha`].
    pub(crate) fn improve_alpha(&self, alpha: &mut [f64]) {
        let total: f64 = alpha.iter().sum();
        let of_length =
            |&(n, times): &(u64, i64)| times as f64 * (digamma(n as f64 + total) - digamma(total));
        let denominator: f64 = self.by_length.iter().map(of_length).sum();
        let mut gains = vec![0.0; alpha.len()];
        for &(key, times) in &self.by_topic {
            let (k, n) = ((key >> 32) as usize, (key & 0xffff_ffff) as f64);
            gains[k] += times as f64 * (digamma(n + alpha[k]) - digamma(alpha[k]));
        }
        crate::dirichlet::step_alpha(alpha, &gains, denominator);
    }
}
