//! The kept states of a step on the device, and their order.

use crate::cuda::plan::listed_plan::push;
use crate::recursion::batch::Batch;
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::weights::state_vectors::Use;
use std::ops::Range;

/// The kept states, ordered by the use of their clusters in a batch.
///
/// Clusters that a transition of the batch starts from come first, then the others that have tokens, then the rest. What a
/// state would transition to or emit affects neither ln p nor the gradient if its cluster has no such token. So a step
/// computes transitions from the first `n_from` states only, and emissions of the first `n_emit` states.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptPlan {
    /// The ranges below.
    pub(crate) ints: Vec<u32>,
    /// The number of states per cluster.
    pub(crate) k: usize,
    /// The states, at the beginning.
    pub(crate) states: Range<usize>,
    /// The place of each cluster in the order.
    pub(crate) places: Range<usize>,
    /// The clusters in their order.
    pub(crate) clusters: Range<usize>,
    /// The cluster of each state, if factored vectors need it.
    pub(crate) cluster_of: Range<usize>,
    pub(crate) n_from: usize,
    pub(crate) n_emit: usize,
}

impl KeptPlan {
    /// All states, all in use.
    pub(crate) fn all(space: &StateSpace, is_factored: bool) -> KeptPlan {
        let clusters: Vec<u32> = (0..space.n_clusters() as u32).collect();
        KeptPlan::new(&KeptStates::all(space), &clusters, is_factored)
    }

    /// The states that a batch keeps.
    pub(crate) fn by_use(
        space: &StateSpace,
        batch: &Batch<'_>,
        kept: &KeptStates,
        is_factored: bool,
    ) -> KeptPlan {
        const FROM: u8 = 0;
        const LAST: u8 = 1;
        const NONE: u8 = 2;
        let mut uses = vec![NONE; space.n_clusters()];
        for sentence in &batch.sentences {
            for (i, &word) in sentence.iter().enumerate() {
                let at = &mut uses[space.cluster(word).expect("the model emits the word")];
                *at = (*at).min(if i + 1 < sentence.len() { FROM } else { LAST });
            }
        }
        let mut clusters: Vec<u32> = (0..uses.len() as u32).collect();
        // Stable, so the same batch always has the same order.
        clusters.sort_by_key(|&cluster| uses[cluster as usize]);
        let mut plan = KeptPlan::new(kept, &clusters, is_factored);
        // One cluster at least, since products need a row. Without transitions its derivatives are 0.
        let n_states = |last: u8| uses.iter().filter(|&&of| of <= last).count().max(1) * kept.k;
        (plan.n_from, plan.n_emit) = (n_states(FROM), n_states(LAST));
        plan
    }

    fn new(kept: &KeptStates, clusters: &[u32], is_factored: bool) -> KeptPlan {
        let k = kept.k;
        let mut plan = KeptPlan { k, ..KeptPlan::default() };
        for &cluster in clusters {
            plan.ints.extend(&kept.states[cluster as usize * k..][..k]);
        }
        plan.states = 0..plan.ints.len();
        let mut places = vec![0; clusters.len()];
        for (place, &cluster) in clusters.iter().enumerate() {
            places[cluster as usize] = place as u32;
        }
        plan.places = push(&mut plan.ints, &places);
        plan.clusters = push(&mut plan.ints, clusters);
        if is_factored {
            let cluster_of: Vec<u32> =
                clusters.iter().flat_map(|&cluster| std::iter::repeat_n(cluster, k)).collect();
            plan.cluster_of = push(&mut plan.ints, &cluster_of);
        }
        (plan.n_from, plan.n_emit) = (plan.states.len(), plan.states.len());
        plan
    }

    /// The number of all kept states.
    pub(crate) fn n(&self) -> usize {
        self.states.len()
    }

    /// The number of states with a use in the batch. Every state is a possible start, and the target of a transition.
    pub(crate) fn n_of(&self, of: Use) -> usize {
        match of {
            Use::Start | Use::To => self.n(),
            Use::From => self.n_from,
            Use::Emit => self.n_emit,
        }
    }

    /// The place of each cluster in the order.
    pub(crate) fn places(&self) -> &[u32] {
        &self.ints[self.places.clone()]
    }
}
