//! The state space of a run, which does not change after the first round.

use super::progress::inconsistent;
use crate::params::{Constraint, HmmParams};
use crate::space::clusters::NO_CLUSTER;
use crate::space::state_lists::StateLists;
use crate::space::state_space::StateSpace;
use latens_corpus::Vocab;
use latens_model::FitError;
use latens_model::shards::{Arrays, Job};

pub(super) const WORDS: &str = "words";
pub(super) const CLUSTERS: &str = "clusters";

/// The state space of a run.
pub(super) fn space(job: &Job<'_, HmmParams>) -> Result<StateSpace, FitError> {
    let (params, n_words) = (&job.params, job.lexicon.vocab.len());
    let clusters = job.array::<u32>(CLUSTERS, n_words)?;
    let vocab = recounted(&job.lexicon.vocab, job.state.arrays.expect_counts(WORDS, n_words)?);
    let n = if params.constraint == Constraint::Brown { params.n_clusters } else { 1 };
    if clusters.iter().any(|&cluster| cluster != NO_CLUSTER && cluster as usize >= n) {
        return Err(inconsistent("the cluster of a word is out of range"));
    }
    let mut space = StateSpace::new(params.n_states / n, n, clusters.to_vec());
    if params.constraint == Constraint::Uniform {
        space.lists = Some(StateLists::draw(params, space.n_slots()));
    }
    Ok(space.with_unknown_share(params, &vocab))
}

/// The arrays of a run that do not change between rounds.
pub(super) fn constants(job: &Job<'_, HmmParams>) -> Result<Arrays, FitError> {
    let n_words = job.lexicon.vocab.len();
    let counts = job.state.arrays.expect_counts(WORDS, n_words)?.clone();
    Ok(Arrays::new()
        .with(WORDS, counts)
        .with(CLUSTERS, job.array::<u32>(CLUSTERS, n_words)?.clone()))
}

/// The vocabulary with the counts of the text.
pub(super) fn recounted(vocab: &Vocab, counts: &[u64]) -> Vocab {
    Vocab::from_parts(vocab.words(), counts.to_vec()).expect("words of a vocabulary are distinct")
}
