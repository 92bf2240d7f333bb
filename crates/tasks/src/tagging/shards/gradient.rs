//! The loss of a shard and its gradient.

use super::progress::{Progress, inconsistent};
use super::tables::read_strings;
use crate::tagging::features::examples::Examples;
use crate::tagging::features::lexical::Lexical;
use crate::tagging::learn::error::MAX_TAGS;
use crate::tagging::learn::objective::Objective;
use crate::tagging::params::{Kind, TaggerParams};
use crate::tagging::weights::layout::Layout;
use latens_corpus::TaggedSentences;
use latens_model::FitError;
use latens_model::shards::{Arrays, Job};
use latens_store::StringTable;
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::Xxh3;

/// Names of the arrays of a broadcast: the table of attributes, the places of their weights, and the weights.
pub(super) const ATTRIBUTES: &str = "attributes";
pub(super) const OFFSETS: &str = "layout.offsets";
pub(super) const TAGS: &str = "layout.tags";
pub(super) const TRANSITIONS: &str = "layout.transitions";
pub(super) const WEIGHTS: &str = "weights";
/// Names of the arrays of statistics.
pub(super) const LOSS: &str = "loss";
pub(super) const GRADIENT: &str = "gradient";

/// The objective of a shard, with a key that identifies the places of its weights.
pub(super) struct Prepared {
    key: u64,
    objective: Objective<f32>,
}

/// The loss of a shard and its gradient at the weights of the broadcast, without the penalty.
pub(super) fn gradient(
    job: &Job<'_, TaggerParams>,
    shard: usize,
    text: &TaggedSentences,
    prepared: &Mutex<Option<Prepared>>,
) -> Result<Arrays, FitError> {
    // Taken out, because the lock must not be held while tasks of the thread pool run.
    let lock = || prepared.lock().unwrap_or_else(PoisonError::into_inner);
    let (key, cached) = (key(job)?, lock().take());
    let mut own = match cached.filter(|prepared| prepared.key == key) {
        Some(prepared) => prepared,
        None => {
            let layout = Arc::new(layout(job)?);
            let examples = Arc::new(examples(job, shard, text)?);
            let objective = Objective::new(&examples, &layout, Kind::Crf, 0.0);
            Prepared { key, objective }
        }
    };
    let weights = job.array::<f64>(WEIGHTS, own.objective.n_weights())?;
    let mut gradient = vec![0.0; weights.len()];
    let loss = own.objective.evaluate(weights, &mut gradient);
    *lock() = Some(own);
    Ok(Arrays::new().with(LOSS, vec![loss]).with(GRADIENT, gradient))
}

/// Identifies attributes, tags and the places of weights.
fn key(job: &Job<'_, TaggerParams>) -> Result<u64, FitError> {
    let arrays = &job.state.arrays;
    let mut hash = Xxh3::new();
    hash.update(arrays.expect_any::<u8>(&format!("{ATTRIBUTES}.letters"))?);
    let numbers = [format!("{ATTRIBUTES}.ends"), OFFSETS.to_owned()];
    for name in numbers {
        arrays.expect_any::<u64>(&name)?.iter().for_each(|n| hash.update(&n.to_le_bytes()));
    }
    arrays.expect_any::<u16>(TAGS)?.iter().for_each(|tag| hash.update(&tag.to_le_bytes()));
    hash.update(arrays.expect_any::<u8>(TRANSITIONS)?);
    Ok(hash.digest())
}

/// The places of weights, checked: a broadcast may be forged.
pub(super) fn layout(job: &Job<'_, TaggerParams>) -> Result<Layout, FitError> {
    let Progress { tags: names, .. } = job.progress()?;
    let (arrays, n_tags) = (&job.state.arrays, names.len());
    if !(1..=MAX_TAGS).contains(&n_tags) {
        return Err(inconsistent("the number of tags is 0 or above the maximum"));
    }
    let n_attributes = arrays.expect_any::<u64>(&format!("{ATTRIBUTES}.ends"))?.len();
    let offsets = arrays.expect::<u64>(OFFSETS, n_attributes + 1)?;
    let tags = arrays.expect_any::<u16>(TAGS)?;
    let is_whole = offsets[0] == 0 && offsets[n_attributes] == tags.len() as u64;
    if !is_whole || !offsets.is_sorted() || tags.iter().any(|&tag| usize::from(tag) >= n_tags) {
        return Err(inconsistent("the places of the weights are inconsistent"));
    }
    let transitions = arrays.expect::<u8>(TRANSITIONS, n_tags * n_tags)?;
    Ok(Layout {
        attributes: offsets.iter().map(|&offset| offset as usize).collect(),
        tags: tags.to_vec(),
        n_tags,
        transitions: transitions.iter().map(|&seen| seen != 0).collect(),
        width: n_tags,
        columns: Vec::new(),
        n_positions: 2 * job.params.window + 1,
        n_hidden: 0,
    })
}

/// The text of a shard in the form that the objective uses.
fn examples(
    job: &Job<'_, TaggerParams>,
    shard: usize,
    text: &TaggedSentences,
) -> Result<Examples, FitError> {
    let progress: Progress = job.progress()?;
    let tags = number_tags(job, &progress, shard, text)?;
    let attributes = read_strings(&job.state.arrays, ATTRIBUTES)?;
    let lexical = Lexical::read(text, job.params.pos_column, 1).numbered_as(attributes);
    let ends = text.iter().scan(0, |end, sentence| {
        *end += sentence.len();
        Some(*end)
    });
    Ok(Examples {
        n_tags: progress.tags.len(),
        ends: ends.collect(),
        counts: vec![true; tags.len()],
        tags,
        lexical,
        blocks: Vec::new(),
        window: job.params.window,
    })
}

/// The tag of each token of a shard. Fails if the text is not that of the first round.
pub(super) fn number_tags(
    job: &Job<'_, TaggerParams>,
    progress: &Progress,
    shard: usize,
    text: &TaggedSentences,
) -> Result<Vec<u16>, FitError> {
    let changed = || inconsistent("its text is not the one of the first round");
    if progress.tags.len() > MAX_TAGS {
        return Err(inconsistent("the number of tags is above the maximum"));
    }
    if progress.shard_tokens.get(shard) != Some(&(text.n_tokens() as u64)) {
        return Err(changed());
    }
    if job.params.pos_column.is_some_and(|column| text.check_column(column).is_err()) {
        return Err(changed());
    }
    let names: StringTable = progress.tags.iter().collect();
    let number = |tag: &str| names.find(tag).map(|tag| tag as u16).ok_or_else(changed);
    let mut tags = Vec::with_capacity(text.n_tokens());
    for sentence in text.iter() {
        let own = sentence.column(progress.column as usize).ok_or_else(changed)?;
        match progress.are_spans {
            true => {
                for tag in job.params.spans.write(&own) {
                    tags.push(number(&tag)?);
                }
            }
            false => {
                for tag in own {
                    tags.push(number(tag)?);
                }
            }
        }
    }
    Ok(tags)
}
