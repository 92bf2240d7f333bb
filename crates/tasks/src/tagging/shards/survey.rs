//! The first two rounds: tags and words, then attributes, and the layout of the weights.

use super::gradient::{ATTRIBUTES, OFFSETS, TAGS, TRANSITIONS, WEIGHTS, number_tags};
use super::progress::{Progress, inconsistent, to_json};
use super::search::WORDS;
use super::tables::{Counted, write_strings};
use crate::tagging::features::lexical::Lexical;
use crate::tagging::learn::error::{MAX_TAGS, TaggerError};
use crate::tagging::params::{Pairs, TaggerParams};
use crate::tagging::spans::are_chunk_tags;
use latens_corpus::TaggedSentences;
use latens_model::FitError;
use latens_model::shards::{Arrays, Job, ShardState, Step};
use latens_store::StringTable;

/// Tables of the first round: words, tags as written, and tags of spans in the scheme of the parameters.
const NAMES: [&str; 3] = ["words", "tags", "spans"];
const SENTENCES: &str = "sentences";
const SHARD_TOKENS: &str = "shard_tokens";
/// Attributes that occur with a tag: the number of the attribute × 2¹⁶ + the number of the tag, in ascending order.
const PAIRS: &str = "pairs";

/// The words and tags of a shard.
pub(super) fn names(
    job: &Job<'_, TaggerParams>,
    shard: usize,
    text: &TaggedSentences,
) -> Result<Arrays, FitError> {
    let Progress { column, .. } = job.progress()?;
    let column = column as usize;
    let checked = [Some(column), job.params.pos_column].into_iter().flatten();
    for column in checked {
        text.check_column(column).map_err(FitError::step("read the tags of a shard"))?;
    }
    let [mut words, mut tags, mut spans] = NAMES.map(|_| Counted::default());
    for sentence in text.iter() {
        let own = sentence.column(column).expect("the column was checked");
        for tag in job.params.spans.write(&own) {
            spans.add(&tag, 1)?;
        }
        for (word, tag) in sentence.words().iter().zip(own) {
            words.add(word, 1)?;
            tags.add(tag, 1)?;
        }
    }
    let size = [(shard as u64, text.n_tokens() as i64)];
    let sums = Arrays::new().with(SENTENCES, vec![text.len() as u64]);
    let sums = sums.with_sparse(SHARD_TOKENS, size);
    let tables = NAMES.iter().zip([words, tags, spans]);
    Ok(tables.fold(sums, |sums, (name, table)| table.write(sums, name)))
}

/// The state of the second round: the tags are known.
pub(super) fn tags(job: &Job<'_, TaggerParams>, sums: &Arrays) -> Result<Step, FitError> {
    let [words, written, spans] = NAMES.map(|name| Counted::read(sums, name));
    let (words, written, spans) = (words?, written?, spans?);
    let mut progress: Progress = job.progress()?;
    progress.are_spans = are_chunk_tags(written.strings.iter());
    let tags = if progress.are_spans { &spans.strings } else { &written.strings };
    if tags.len() > MAX_TAGS {
        let (column, n_tags) = (progress.column as usize + 1, tags.len());
        let error = TaggerError::TooManyTags { column, n_tags };
        return Err(FitError::step("read the tags")(error));
    }
    progress.tags = tags.iter().map(str::to_owned).collect();
    progress.sentences = sums.expect::<u64>(SENTENCES, 1)?[0];
    let sizes = sums.expect_sparse(SHARD_TOKENS)?;
    progress.shard_tokens = sizes.into_iter().map(|(_, n)| n as u64).collect();
    let arrays = words.write(Arrays::new(), WORDS);
    Ok(Step::Next(ShardState { progress: to_json(&progress), arrays, ..ShardState::default() }))
}

/// The attributes of a shard, and what they occur with.
pub(super) fn attributes(
    job: &Job<'_, TaggerParams>,
    shard: usize,
    text: &TaggedSentences,
) -> Result<Arrays, FitError> {
    let progress: Progress = job.progress()?;
    let tags = number_tags(job, &progress, shard, text)?;
    let lexical = Lexical::read(text, job.params.pos_column, 1);
    let mut counts = vec![0u64; lexical.attributes.len()];
    let mut pairs = Vec::new();
    for (token, &tag) in tags.iter().enumerate() {
        for attribute in lexical.attributes_of(token) {
            counts[attribute] += 1;
            pairs.push((attribute as u64) << 16 | u64::from(tag));
        }
        // The pairs of a few tokens at a time, so that they need little memory.
        if token % (1 << 16) == 0 {
            pairs.sort_unstable();
            pairs.dedup();
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    let n_tags = progress.tags.len();
    let mut transitions = vec![0u64; n_tags * n_tags];
    let mut begin = 0;
    for sentence in text.iter() {
        for pair in tags[begin..begin + sentence.len()].windows(2) {
            transitions[usize::from(pair[0]) * n_tags + usize::from(pair[1])] += 1;
        }
        begin += sentence.len();
    }
    let sums = Counted { strings: lexical.attributes, counts }.write(Arrays::new(), ATTRIBUTES);
    Ok(sums.with(PAIRS, pairs).with(TRANSITIONS, transitions))
}

/// Adds up statistics. Tables keep the order of the text: `a` comes before `b`.
pub(super) fn merge(a: Arrays, b: Arrays) -> Result<Arrays, FitError> {
    let add = |a: Arrays, b: Arrays| a.plus(b).map_err(|problem| inconsistent(&problem));
    let tables: &[&str] = match (a.has(PAIRS), a.has(SENTENCES)) {
        (true, _) => &[ATTRIBUTES],
        (_, true) => &NAMES,
        _ => return add(a, b),
    };
    let mut merged = add(dense(&a)?, dense(&b)?)?;
    for name in tables {
        let mut table = Counted::read(&a, name)?;
        let numbers = table.extend(&Counted::read(&b, name)?)?;
        merged = table.write(merged, name);
        if a.has(PAIRS) {
            merged = merged.with(PAIRS, merge_pairs(&a, &b, &numbers)?);
        }
    }
    Ok(merged)
}

/// The arrays of the first two rounds that add up by place.
fn dense(arrays: &Arrays) -> Result<Arrays, FitError> {
    if arrays.has(PAIRS) {
        let transitions = arrays.expect_any::<u64>(TRANSITIONS)?.clone();
        return Ok(Arrays::new().with(TRANSITIONS, transitions));
    }
    let sentences = arrays.expect_any::<u64>(SENTENCES)?.clone();
    let sizes = arrays.expect_sparse(SHARD_TOKENS)?;
    Ok(Arrays::new().with(SENTENCES, sentences).with_sparse(SHARD_TOKENS, sizes))
}

/// The pairs of both. `numbers` are the attributes of `b` in the merged table.
fn merge_pairs(a: &Arrays, b: &Arrays, numbers: &[u32]) -> Result<Vec<u64>, FitError> {
    let mut pairs = a.expect_any::<u64>(PAIRS)?.to_vec();
    for pair in b.expect_any::<u64>(PAIRS)?.iter() {
        let number = numbers.get((pair >> 16) as usize);
        let number = number.ok_or_else(|| inconsistent("a pair has no attribute"))?;
        pairs.push(u64::from(*number) << 16 | (pair & 0xffff));
    }
    pairs.sort_unstable();
    pairs.dedup();
    Ok(pairs)
}

/// The state of the first gradient: the weights have places, and are zero.
pub(super) fn layout(job: &Job<'_, TaggerParams>, sums: &Arrays) -> Result<Step, FitError> {
    let progress: Progress = job.progress()?;
    let n_tags = progress.tags.len();
    let found = Counted::read(sums, ATTRIBUTES)?;
    let mut attributes = StringTable::default();
    let kept = |(name, &count): (&str, &u64)| {
        (count >= job.params.min_count).then(|| attributes.intern(name))
    };
    let numbers: Vec<Option<u32>> = found.strings.iter().zip(&found.counts).map(kept).collect();
    let mut offsets = vec![0u64; attributes.len() + 1];
    let mut tags = Vec::new();
    match job.params.pairs {
        Pairs::All => {
            (0..attributes.len()).for_each(|_| tags.extend(0..n_tags as u16));
            offsets.iter_mut().zip(0..).for_each(|(offset, i)| *offset = i * n_tags as u64);
        }
        Pairs::Observed => {
            // Numbers ascend, so that pairs stay in order.
            for pair in sums.expect_any::<u64>(PAIRS)?.iter() {
                let tag = (pair & 0xffff) as u16;
                let number = numbers.get((pair >> 16) as usize).copied();
                let number = number.ok_or_else(|| inconsistent("a pair has no attribute"))?;
                if let Some(number) = number {
                    offsets[number as usize + 1] += 1;
                    tags.push(tag);
                }
            }
            (0..attributes.len()).for_each(|i| offsets[i + 1] += offsets[i]);
        }
    }
    let seen = sums.expect::<u64>(TRANSITIONS, n_tags * n_tags)?;
    let is_all = job.params.pairs == Pairs::All;
    let transitions: Vec<u8> = seen.iter().map(|&n| u8::from(is_all || n > 0)).collect();
    let n_weights = tags.len() + transitions.len();
    let words = Counted::read(&job.state.arrays, WORDS)?.write(Arrays::new(), WORDS);
    let arrays = write_strings(&attributes, words, ATTRIBUTES)
        .with(OFFSETS, offsets)
        .with(TAGS, tags)
        .with(TRANSITIONS, transitions)
        .with(WEIGHTS, vec![0f64; n_weights]);
    Ok(Step::Next(ShardState { progress: to_json(&progress), arrays, ..ShardState::default() }))
}
