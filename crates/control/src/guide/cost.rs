//! The memory and the work of tables.

use super::lookahead::Lookahead;
use super::options::{LookaheadOptions, Precision};
use crate::automaton::Automaton;
use crate::error::ControlError;
use latens_model::{AvailableMemory, Cost};
use latens_model_hmm::Hmm;

impl Lookahead {
    /// The memory of the tables, and the multiplications for each word of the maximum length.
    pub fn cost(hmm: &Hmm, automaton: &Automaton, options: &LookaheadOptions) -> Cost {
        Lookahead::cost_of(hmm, automaton, options, Precision::of_tables(hmm.n_states()))
    }

    /// [`Lookahead::cost`] with that of [`Guide::most_probable`](super::Guide::most_probable), which has tables of its own.
    pub fn cost_with_most_probable(
        hmm: &Hmm,
        automaton: &Automaton,
        options: &LookaheadOptions,
    ) -> Cost {
        let own = Lookahead::cost_of(hmm, automaton, options, Precision::Double);
        Lookahead::cost(hmm, automaton, options)
            .part("most probable text", own.memory_bytes() as f64, Some("max_words"))
            .multiply_adds(own.multiply_adds_per_iteration())
    }

    fn cost_of(
        hmm: &Hmm,
        automaton: &Automaton,
        options: &LookaheadOptions,
        precision: Precision,
    ) -> Cost {
        let distances = automaton.distances();
        let n_live = distances.iter().flatten().count() as f64;
        let n_edges: usize = (0..automaton.n_states())
            .filter(|&state| distances[state].is_some())
            .map(|state| {
                automaton.edges(state).iter().filter(|(to, _)| distances[*to].is_some()).count()
            })
            .sum();
        let n_hidden = hmm.n_states() as f64;
        let size = f64::from(precision as u8);
        let n_words = options.lengths.max as f64;
        Cost::new(options.lengths.max)
            .part("tables", n_words * n_live * n_hidden * size, Some("max_words"))
            // Masses are summed in double precision first.
            .part("edges", n_edges as f64 * n_hidden * (size + 8.0), Some("automaton states"))
            .part("products", 3.0 * n_live * n_hidden * size, Some("automaton states"))
            .products(n_live * n_hidden * n_hidden)
    }

    pub(super) fn check_memory(
        hmm: &Hmm,
        automaton: &Automaton,
        options: &LookaheadOptions,
        precision: Precision,
    ) -> Result<(), ControlError> {
        let needed = Lookahead::cost_of(hmm, automaton, options, precision).memory_bytes();
        match AvailableMemory::now().filter(|available| available.bytes < needed) {
            None => Ok(()),
            Some(available) => Err(ControlError::TooLittleMemory {
                n_states: automaton.n_states(),
                n_hidden: hmm.n_states(),
                n_words: options.lengths.max,
                needed,
                available,
            }),
        }
    }
}
