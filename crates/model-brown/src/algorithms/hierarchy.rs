use crate::algorithms::loss_table::LossTable;
use crate::counts::cluster_counts::NONE;
use latens_model::{FitError, Progress, Watch};

/// A clustering and its binary tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hierarchy {
    /// The cluster of each word; `None` for words that do not occur.
    pub(crate) cluster_of: Vec<Option<u32>>,
    /// The mergers that join all clusters into one. A node is a cluster or the result of an earlier merger, numbered
    /// from the number of clusters on. The more frequent node comes first.
    pub(crate) mergers: Vec<(u32, u32)>,
    /// The mutual information of adjacent clusters before these mergers, in bits.
    pub(crate) mutual_information: f64,
}

impl Hierarchy {
    /// Merges the clusters of a table down to one, always the pair with the smallest loss. `slot_of` holds the slot of
    /// each word's cluster, or [`NONE`].
    pub(crate) fn of(
        mut table: LossTable,
        slot_of: &[u32],
        mutual_information: f64,
        watch: &mut Watch,
    ) -> Result<Hierarchy, FitError> {
        let mut nodes = vec![NONE; table.counts().n_clusters];
        let mut n_nodes = 0;
        for (node, _) in nodes.iter_mut().zip(&table.counts().frequency).filter(|(_, f)| **f > 0) {
            *node = n_nodes;
            n_nodes += 1;
        }
        let cluster = |&slot: &u32| (slot != NONE).then(|| nodes[slot as usize]);
        let cluster_of = slot_of.iter().map(cluster).collect();
        let n_mergers = n_nodes as usize - 1;
        let mut mergers = Vec::with_capacity(n_mergers);
        while let Some((v, w)) = table.best_merger() {
            let frequency = [v, w].map(|slot| table.counts().frequency[slot]);
            let (kept, freed) = table.merge(v, w);
            let [of_kept, of_freed] = if kept == v { [0, 1] } else { [1, 0] };
            let swap = frequency[of_freed] > frequency[of_kept];
            let (first, second) = if swap { (freed, kept) } else { (kept, freed) };
            mergers.push((nodes[first], nodes[second]));
            nodes[kept] = n_nodes;
            n_nodes += 1;
            if mergers.len() % 64 == 0 {
                let (done, total) = (mergers.len() as u64, Some(n_mergers as u64));
                let (phase, unit) = ("join clusters", "mergers");
                Progress { phase, done, total, unit, ..Progress::default() }.report(watch)?;
            }
        }
        Ok(Hierarchy { cluster_of, mergers, mutual_information })
    }

    /// The path of each cluster from the root: 0 to the first node of a merger, 1 to the second.
    pub(crate) fn paths(&self) -> Vec<String> {
        let n_clusters = self.mergers.len() + 1;
        let mut paths = vec![String::new(); n_clusters + self.mergers.len()];
        for (i, &(a, b)) in self.mergers.iter().enumerate().rev() {
            let path = paths[n_clusters + i].clone();
            paths[a as usize] = path.clone() + "0";
            paths[b as usize] = path + "1";
        }
        paths.truncate(n_clusters);
        paths
    }
}
