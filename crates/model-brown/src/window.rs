//! The algorithm of Brown et al. 1992, §3: words come in by falling frequency, and whenever there is one
//! cluster too many, the two are merged whose merger loses the least mutual information.

use crate::bigrams::Bigrams;
use crate::table::LossTable;
use latens_model::{FitError, Progress, Watch};

/// A clustering and its hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hierarchy {
    /// The cluster of each word, if it was seen.
    pub(crate) cluster_of: Vec<Option<u32>>,
    /// The mergers that join all clusters: of two clusters, or results of earlier mergers, which are
    /// numbered on from the number of clusters. The first one is the more frequent.
    pub(crate) mergers: Vec<(u32, u32)>,
    /// The mutual information of neighbouring clusters, in bits.
    pub(crate) mutual_information: f64,
}

const NONE: usize = usize::MAX;

pub(crate) fn cluster(
    bigrams: &Bigrams,
    n_clusters: usize,
    watch: &mut Watch,
) -> Result<Hierarchy, FitError> {
    let mut words: Vec<u32> = (0..bigrams.frequency.len() as u32)
        .filter(|&word| bigrams.frequency[word as usize] > 0)
        .collect();
    words.sort_by_key(|&word| (std::cmp::Reverse(bigrams.frequency[word as usize]), word));
    let mut clusters = Clusters::new(bigrams, n_clusters);
    for (i, &word) in words.iter().enumerate() {
        clusters.insert(word);
        if i >= n_clusters {
            clusters.merge_best();
        }
        if i % 64 == 0 {
            Progress {
                phase: "cluster words",
                done: i as u64,
                total: Some(words.len() as u64),
                unit: "words",
                ..Progress::default()
            }
            .report(watch)?;
        }
    }
    Ok(clusters.finish())
}

/// Words in clusters, clusters in slots.
struct Clusters<'a> {
    bigrams: &'a Bigrams,
    table: LossTable,
    /// The slot of each word's cluster.
    slot_of: Vec<usize>,
    /// The words of the cluster in each slot.
    members: Vec<Vec<u32>>,
}

impl<'a> Clusters<'a> {
    fn new(bigrams: &'a Bigrams, n_clusters: usize) -> Clusters<'a> {
        Clusters {
            bigrams,
            table: LossTable::new(n_clusters + 1),
            slot_of: vec![NONE; bigrams.frequency.len()],
            members: vec![Vec::new(); n_clusters + 1],
        }
    }

    /// Makes a word a cluster of its own. Words that have not come yet are no neighbours yet.
    fn insert(&mut self, word: u32) {
        let slot = self.members.iter().position(Vec::is_empty).expect("there is a free slot");
        self.members[slot].push(word);
        self.slot_of[word as usize] = slot;
        let slots = |neighbours: &[(u32, u64)]| -> Vec<(usize, u64)> {
            let slots =
                neighbours.iter().map(|&(word, count)| (self.slot_of[word as usize], count));
            slots.filter(|&(slot, _)| slot != NONE).collect()
        };
        let (after, before) = (slots(self.bigrams.after(word)), slots(self.bigrams.before(word)));
        self.table.insert(slot, self.bigrams.frequency[word as usize], &after, &before);
    }

    fn merge_best(&mut self) -> Option<(usize, usize)> {
        let (v, w) = self.table.best_merger()?;
        let (kept, freed) = self.table.merge(v, w);
        let moved = std::mem::take(&mut self.members[freed]);
        for &word in &moved {
            self.slot_of[word as usize] = kept;
        }
        self.members[kept].extend(moved);
        Some((kept, freed))
    }

    fn finish(mut self) -> Hierarchy {
        let mutual_information = self.table.mutual_information(self.bigrams.n_tokens);
        let mut node_of_slot = vec![u32::MAX; self.members.len()];
        let used = (0..self.members.len()).filter(|&slot| !self.members[slot].is_empty());
        for (cluster, slot) in used.enumerate() {
            node_of_slot[slot] = cluster as u32;
        }
        let slots = self.slot_of.iter();
        let cluster_of = slots.map(|&slot| (slot != NONE).then(|| node_of_slot[slot])).collect();
        let mut next = node_of_slot.iter().filter(|&&node| node != u32::MAX).count() as u32;
        let mut mergers = Vec::new();
        loop {
            let frequency: Vec<u64> =
                (0..self.members.len()).map(|slot| self.table.frequency(slot)).collect();
            let Some((kept, freed)) = self.merge_best() else { break };
            let (mut a, mut b) = (node_of_slot[kept], node_of_slot[freed]);
            if frequency[freed] > frequency[kept] {
                (a, b) = (b, a);
            }
            mergers.push((a, b));
            node_of_slot[kept] = next;
            next += 1;
        }
        Hierarchy { cluster_of, mergers, mutual_information }
    }
}
