//! State dropout: the states that a mini-batch keeps.

use crate::space::state_space::StateSpace;
use crate::space::subset::draw_subset;
use latens_math::Rng;

/// The states that a mini-batch keeps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptStates {
    /// The number of states per cluster.
    pub(crate) k: usize,
    /// The states in ascending order, and so ordered by cluster.
    pub(crate) states: Vec<u32>,
}

impl KeptStates {
    /// All states.
    pub(crate) fn all(space: &StateSpace) -> KeptStates {
        KeptStates { k: space.k, states: (0..space.n_states() as u32).collect() }
    }

    /// Keeps exactly (1 − `dropout`)·k states of every cluster, uniformly among the subsets of this size
    /// (Chiu and Rush 2020, §5.1). A word that loses its whole state list gets its first state back.
    pub(crate) fn draw(space: &StateSpace, dropout: f64, rng: &mut Rng) -> KeptStates {
        let k = (((1.0 - dropout) * space.k as f64).round() as usize).max(1);
        if k == space.k {
            return KeptStates::all(space);
        }
        let mut states = Vec::with_capacity(k * space.n_clusters());
        for cluster in 0..space.n_clusters() {
            let first = (cluster * space.k) as u32;
            states.extend(draw_subset(space.k, k, rng).iter().map(|state| first + state));
        }
        let Some(lists) = &space.lists else { return KeptStates { k, states } };
        for slot in 0..space.n_slots() {
            let list = lists.of(slot);
            if !list.iter().any(|state| states.binary_search(state).is_ok()) {
                let at = states.binary_search(&list[0]).unwrap_err();
                states.insert(at, list[0]);
            }
        }
        KeptStates { k: states.len(), states }
    }
}
