//! Scores many sentences together.

use super::scorer::HmmScorer;
use crate::fitted::together::waiting::{Clusters, step_together};
use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use latens_math::linalg::{Accum, MatMut, MatRef, Par, multiply};

/// A sentence, and how far it is scored.
struct Reading<'a> {
    scorer: HmmScorer<'a>,
    /// The words that are left.
    words: &'a [WordId],
    log_probs: Vec<f64>,
}

/// ln p of every word of the sentences, in their order. Each sentence starts with an empty history.
pub(super) fn log_probs<'a>(
    hmm: &'a Hmm,
    sentences: impl IntoIterator<Item = &'a [WordId]>,
) -> Vec<f64> {
    let reading = |words| Reading { scorer: HmmScorer::new(hmm), words, log_probs: Vec::new() };
    let readings = step_together(
        sentences.into_iter().map(reading).collect(),
        |reading| reading.read_alone(hmm),
        |clusters, group| read_together(hmm, group, clusters),
    );
    readings.into_iter().flat_map(|reading| reading.log_probs).collect()
}

impl Reading<'_> {
    /// Reads words until one needs a block. Returns which block; `None` at the end of the sentence.
    fn read_alone(&mut self, hmm: &Hmm) -> Option<Clusters> {
        while let Some((&word, rest)) = self.words.split_first() {
            if let (Some(StateSet::Cluster(before)), Some((StateSet::Cluster(cluster), _))) =
                (self.scorer.states(), hmm.emitters(word))
            {
                return Some((before, cluster));
            }
            let log_prob = self.scorer.step(word, None);
            self.log_probs.push(log_prob);
            self.words = rest;
        }
        None
    }
}

/// Reads the next word of sentences whose last and next words have the same clusters.
fn read_together(hmm: &Hmm, group: &mut [Reading<'_>], (before, cluster): Clusters) {
    let (k, n) = (hmm.space.k, group.len());
    let states = StateSet::Cluster(cluster);
    let pairs = hmm.blocks.pairs(&hmm.space, StateSet::Cluster(before), states);
    let mut sums = vec![0.0; n * k];
    if n > 1 {
        let alphas: Vec<f32> =
            group.iter().flat_map(|reading| reading.scorer.filtered()).copied().collect();
        let alphas = MatRef::from_row_major_slice(&alphas, n, k);
        let pairs = MatRef::from_row_major_slice(&pairs, k, k);
        let out = MatMut::from_row_major_slice_mut(&mut sums, n, k);
        multiply(out, Accum::Replace, alphas, pairs, Par::Seq);
    }
    for (reading, incoming) in group.iter_mut().zip(sums.chunks_exact(k)) {
        let (&word, rest) = reading.words.split_first().expect("a word waits");
        let log_prob = match n {
            1 => reading.scorer.step(word, Some(&pairs)),
            _ => reading.scorer.step_from(word, incoming),
        };
        reading.log_probs.push(log_prob);
        reading.words = rest;
    }
}
