//! One list of states per word, for models without word clusters.

use crate::params::HmmParams;
use crate::space::subset::draw_subset;
use latens_math::Rng;
use latens_model::{ParamError, check_that};

/// For every slot, the states that may emit it, in ascending order; all lists have the same length.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StateLists {
    /// The length of each list.
    pub(crate) n: usize,
    /// All lists, one after the other.
    pub(crate) states: Vec<u32>,
    /// Whether the lists are short enough that iterating over them beats dense rows over all states.
    pub(crate) are_short: bool,
}

/// Lists of at most one in `SHORT` states are short. Longer ones become dense rows with zeros, because general
/// matrix products reach a much higher throughput.
pub(crate) const SHORT: usize = 8;

/// Separates the random streams of the lists from other streams with the same seed.
const STREAM: u64 = 0x6c69_7374_7300_0000;

impl StateLists {
    /// Lists with `n` of the `n_states` states each.
    pub(crate) fn new(n: usize, n_states: usize, states: Vec<u32>) -> StateLists {
        StateLists { n, states, are_short: n * SHORT <= n_states }
    }

    /// Draws a subset of the states for every slot, uniformly among the subsets of its size.
    pub(crate) fn draw(params: &HmmParams, n_slots: usize) -> StateLists {
        let n = params.states_per_word();
        let mut states = Vec::with_capacity(n * n_slots);
        for slot in 0..n_slots {
            let mut rng = Rng::stream(params.seed ^ STREAM, slot as u64);
            states.extend(draw_subset(params.n_states, n, &mut rng));
        }
        StateLists::new(n, params.n_states, states)
    }

    /// Rejects states that are in no list: transitions into them would lose probability mass.
    pub(crate) fn check(&self, params: &HmmParams) -> Result<(), ParamError> {
        let mut emits = vec![false; params.n_states];
        self.states.iter().for_each(|&state| emits[state as usize] = true);
        let n_unused = emits.iter().filter(|emits| !**emits).count();
        let must = format!("small enough that every state may emit a word ({n_unused} may not)");
        check_that(n_unused == 0, "n_states", must, params.n_states)
    }

    /// The number of lists.
    pub(crate) fn len(&self) -> usize {
        self.states.len() / self.n
    }

    /// The states of a slot.
    pub(crate) fn of(&self, slot: usize) -> &[u32] {
        &self.states[slot * self.n..(slot + 1) * self.n]
    }
}
