//! Scores many sentences together.

use super::scorer::HmmScorer;
use crate::fitted::together::products::{per_task, product, stacked};
use crate::fitted::together::waiting::{Clusters, step_together};
use crate::model::Hmm;
use crate::space::state_set::StateSet;
use latens_corpus::WordId;
use rayon::prelude::*;

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
    let (k, states) = (hmm.space.k, StateSet::Cluster(cluster));
    let pairs = hmm.blocks.pairs(&hmm.space, StateSet::Cluster(before), states);
    let alphas = stacked(group.iter().map(|reading| reading.scorer.filtered()), k);
    let sums = product(&alphas, &pairs, k, false);
    let readings = group.par_iter_mut().zip(sums.par_chunks_exact(k)).with_min_len(per_task(k));
    readings.for_each(|(reading, incoming)| {
        let (&word, rest) = reading.words.split_first().expect("a word waits");
        reading.log_probs.push(reading.scorer.step_from(word, incoming));
        reading.words = rest;
    });
}
