//! The greedy algorithm of Brown et al. 1992, §3.
//!
//! Words are inserted by descending frequency, each as a cluster of its own. Whenever there is one cluster too many,
//! the two clusters are merged whose merger loses the least mutual information. The paper does not specify the order
//! of equally frequent words; see `Bigrams::words_by_recurrence`.

use crate::algorithms::hierarchy::Hierarchy;
use crate::algorithms::loss_table::LossTable;
use crate::algorithms::task::Task;
use crate::counts::bigrams::Bigrams;
use crate::counts::cluster_counts::{ClusterCounts, NONE};
use latens_model::{Checkpoint, CheckpointError, FitError, Progress, Watch};
use serde::{Deserialize, Serialize};

/// Number of words between two progress reports.
const STEP: usize = 64;

pub(crate) fn cluster(
    task: &Task,
    checkpoint: Option<&Checkpoint>,
    watch: &mut Watch,
) -> Result<Hierarchy, FitError> {
    let Task { bigrams, words, params, .. } = task;
    let mut clusters = match checkpoint {
        Some(checkpoint) => Clusters::from_checkpoint(task, checkpoint)?,
        None => Clusters::new(bigrams, params.n_clusters),
    };
    while clusters.n_words < words.len() {
        for &word in words[clusters.n_words..].iter().take(STEP) {
            clusters.insert(word);
            if clusters.n_words > params.n_clusters {
                clusters.merge_best();
            }
        }
        Progress {
            phase: "cluster words",
            done: clusters.n_words as u64,
            total: Some(words.len() as u64),
            unit: "words",
            checkpoint: Some(&|| Ok(clusters.checkpoint(task))),
            ..Progress::default()
        }
        .report(watch)?;
    }
    clusters.finish(watch)
}

/// Words in clusters, and clusters in slots.
struct Clusters<'a> {
    bigrams: &'a Bigrams,
    table: LossTable,
    /// Number of inserted words.
    n_words: usize,
    /// The slot of each word's cluster, or [`NONE`].
    slot_of: Vec<u32>,
    /// The words of the cluster in each slot.
    members: Vec<Vec<u32>>,
}

/// The state of a checkpoint, besides its arrays.
#[derive(Serialize, Deserialize)]
struct State {
    n_words: usize,
}

impl<'a> Clusters<'a> {
    fn new(bigrams: &'a Bigrams, n_clusters: usize) -> Clusters<'a> {
        Clusters {
            bigrams,
            table: LossTable::new(n_clusters + 1),
            n_words: 0,
            slot_of: vec![NONE; bigrams.frequency.len()],
            members: vec![Vec::new(); n_clusters + 1],
        }
    }

    /// Inserts a word as a cluster of its own. Neighbors that are not inserted yet do not count.
    fn insert(&mut self, word: u32) {
        let slot = self.members.iter().position(Vec::is_empty).expect("one slot is free");
        self.members[slot].push(word);
        self.slot_of[word as usize] = slot as u32;
        let slots = |neighbors: &[(u32, u64)]| -> Vec<(usize, u64)> {
            let slots = neighbors.iter().map(|&(word, count)| (self.slot_of[word as usize], count));
            slots.filter(|&(slot, _)| slot != NONE).map(|(s, count)| (s as usize, count)).collect()
        };
        let (after, before) = (slots(self.bigrams.after(word)), slots(self.bigrams.before(word)));
        self.table.insert(slot, self.bigrams.frequency[word as usize], &after, &before);
        self.n_words += 1;
    }

    fn merge_best(&mut self) {
        let (v, w) = self.table.best_merger().expect("there are at least two clusters");
        let (kept, freed) = self.table.merge(v, w);
        let moved = std::mem::take(&mut self.members[freed]);
        moved.iter().for_each(|&word| self.slot_of[word as usize] = kept as u32);
        self.members[kept].extend(moved);
    }

    fn finish(self, watch: &mut Watch) -> Result<Hierarchy, FitError> {
        let Bigrams { n_tokens, n_bigrams, .. } = *self.bigrams;
        let mutual_information = self.table.counts().mutual_information(n_tokens, n_bigrams);
        Hierarchy::of(self.table, &self.slot_of, mutual_information, watch)
    }

    fn checkpoint(&self, task: &Task) -> Checkpoint {
        let n_slots = self.members.len();
        task.checkpoint(&State { n_words: self.n_words })
            .with_array("slots", &[self.slot_of.len()], &self.slot_of)
            .with_array("losses", &[n_slots, n_slots], self.table.losses())
    }

    /// Restores a checkpoint. It holds the losses but not the counts, which follow from the slots of words.
    fn from_checkpoint(
        task: &'a Task,
        checkpoint: &Checkpoint,
    ) -> Result<Clusters<'a>, CheckpointError> {
        let n_slots = task.params.n_clusters + 1;
        let State { n_words } = checkpoint.state()?;
        let slot_of = checkpoint.array("slots", &[task.bigrams.frequency.len()])?;
        let losses = checkpoint.array("losses", &[n_slots, n_slots])?;
        let members = task.members(&slot_of, n_words, n_slots)?;
        if members.iter().filter(|words| !words.is_empty()).count() != n_words.min(n_slots - 1) {
            let problem = "its number of clusters does not match its number of words";
            return Err(CheckpointError::Invalid { problem });
        }
        let is_possible = |v: usize, w: usize| {
            let loss: f64 = losses[v * n_slots + w];
            let is_pair = v != w && !members[v].is_empty() && !members[w].is_empty();
            loss == losses[w * n_slots + v]
                && if is_pair { loss.is_finite() } else { loss == f64::INFINITY }
        };
        if !(0..n_slots).all(|v| (v..n_slots).all(|w| is_possible(v, w))) {
            let problem = "its losses do not match its clusters";
            return Err(CheckpointError::Invalid { problem });
        }
        let counts = ClusterCounts::of(&task.bigrams, &slot_of, n_slots);
        let table = LossTable::with_losses(counts, losses);
        Ok(Clusters { bigrams: &task.bigrams, table, n_words, slot_of, members })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::BrownParams;
    use latens_model::{Params, unwatched};

    /// Counts and their sums beyond 32 bits must not change the result.
    #[test]
    fn scaling_all_counts_does_not_change_the_clusters() {
        let small = [
            (0, 1, 5),
            (0, 2, 4),
            (1, 0, 6),
            (1, 3, 2),
            (2, 0, 3),
            (2, 3, 2),
            (3, 1, 1),
            (3, 2, 3),
        ];
        let cluster = |factor: u64| {
            let mut frequency = vec![0; 4];
            small.iter().for_each(|&(_, next, n)| frequency[next as usize] += n * factor);
            let pairs = small.map(|(word, next, n)| (word << 32 | next, n * factor)).to_vec();
            let bigrams = Bigrams::from_pairs(frequency, pairs);
            let mut clusters = Clusters::new(&bigrams, 2);
            for word in bigrams.words_by_recurrence() {
                clusters.insert(word);
                if clusters.n_words > 2 {
                    clusters.merge_best();
                }
            }
            clusters.finish(&mut unwatched).unwrap()
        };
        let expected = cluster(1);
        for factor in [1 << 29, 1 << 31, 1_000_000_000_000] {
            let found = cluster(factor);
            assert_eq!(found.cluster_of, expected.cluster_of);
            assert_eq!(found.mergers, expected.mergers);
            assert!((found.mutual_information - expected.mutual_information).abs() < 1e-12);
        }
    }

    #[test]
    fn an_inconsistent_checkpoint_is_rejected() {
        let corpus = latens_testkit::zipfian_corpus(50, 50, 1);
        let params = BrownParams { n_clusters: 3, ..BrownParams::default() }.validate().unwrap();
        let task = Task::new(&params, &corpus).unwrap();
        let mut clusters = Clusters::new(&task.bigrams, 3);
        task.words[..3].iter().for_each(|&word| clusters.insert(word));
        let rejected = |n_words: usize, slots: &[u32], losses: &[f64]| {
            let checkpoint = task.checkpoint(&State { n_words });
            let checkpoint = checkpoint.with_array("slots", &[slots.len()], slots);
            let checkpoint = checkpoint.with_array("losses", &[4, 4], losses);
            match Clusters::from_checkpoint(&task, &checkpoint) {
                Err(CheckpointError::Invalid { .. }) => true,
                again => {
                    assert_eq!(again.unwrap().table.losses(), losses);
                    false
                }
            }
        };
        let (slots, losses) = (clusters.slot_of.clone(), clusters.table.losses().to_vec());
        assert!(!rejected(3, &slots, &losses));
        assert!(rejected(2, &slots, &losses));
        assert!(rejected(4, &slots, &losses));
        assert!(rejected(usize::MAX, &slots, &losses));
        let changed = |slot: u32| {
            let mut slots = slots.clone();
            slots[task.words[0] as usize] = slot;
            slots
        };
        assert!(rejected(3, &changed(slots[task.words[1] as usize]), &losses));
        assert!(rejected(3, &changed(4), &losses));
        for (at, loss) in [(0, 1.0), (1, f64::NAN), (1, losses[1] + 1.0), (1, f64::INFINITY)] {
            let mut losses = losses.clone();
            losses[at] = loss;
            assert!(rejected(3, &slots, &losses));
        }
    }
}
