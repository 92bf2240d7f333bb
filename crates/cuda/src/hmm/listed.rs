//! The recursions where each word has its own list of states.

use super::recursion::Sequences;
use super::transition::Blocks;
use crate::device::{
    Array, CudaError, Device, View, at_least, exactly, for_each, grid, int, kernels, warps,
};
use std::ops::Range;

/// Lists of at most k states, one per group of tokens. The clusters of [`Sequences`] and [`Blocks`] are these groups.
#[derive(Clone, Debug)]
pub struct Listed<'a> {
    /// The array that contains the range below.
    pub ints: &'a Array<u32>,
    /// The k states of each group, all distinct. A shorter list is padded with `u32::MAX`.
    pub states: Range<usize>,
    /// Largest number of states of a list.
    pub k: usize,
}

impl<'a> Listed<'a> {
    /// Number of places in all lists.
    fn n_places(&self) -> usize {
        self.states.len()
    }

    #[track_caller]
    fn check(&self) {
        let (k, n) = (self.k, self.n_places());
        assert!(
            k > 0 && n.is_multiple_of(k),
            "the length of `states` must be a multiple of `k` = {k}, got {n}"
        );
    }

    fn states(&self) -> View<'a, u32> {
        self.ints.at(self.states.clone())
    }
}

/// The tokens whose lists contain a state, for each state. The indices are ranges of one array.
#[derive(Clone, Debug)]
pub struct StateTokens<'a> {
    /// The array that contains the ranges below.
    pub ints: &'a Array<u32>,
    /// Where the entries of each state begin, and where those of the last one end.
    pub begins: Range<usize>,
    /// Entries t · k + j: the state is number j in the list of token t.
    pub entries: Range<usize>,
    /// For each token, [`StateTokens::FIRST`] if it is the first of its sentence, plus [`StateTokens::LAST`] if it is
    /// the last.
    pub ends: Range<usize>,
}

impl<'a> StateTokens<'a> {
    /// Mark of the first token of a sentence.
    pub const FIRST: u32 = 1;
    /// Mark of the last token of a sentence.
    pub const LAST: u32 = 2;

    fn n_states(&self) -> usize {
        assert!(!self.begins.is_empty(), "`begins` must not be empty");
        self.begins.len() - 1
    }

    fn begins(&self) -> View<'a, u32> {
        self.ints.at(self.begins.clone())
    }

    fn entries(&self) -> View<'a, u32> {
        self.ints.at(self.entries.clone())
    }

    fn ends(&self) -> View<'a, u32> {
        self.ints.at(self.ends.clone())
    }
}

impl Device {
    /// Copies the value of each listed state to its place in the lists. Padding gets 0.
    pub fn gather_listed(
        &self,
        out: &mut Array<f32>,
        values: &Array<f32>,
        listed: &Listed<'_>,
    ) -> Result<(), CudaError> {
        let n = listed.n_places();
        at_least("out", out.len(), n);
        kernels::gather_listed(
            self,
            for_each(n),
            out.all_mut(),
            values.all(),
            listed.states(),
            int(n),
        )
    }

    /// Copies the values of each list to the places of its states in a row of n numbers. Other numbers stay as they are.
    pub fn scatter_listed(
        &self,
        out: &mut Array<f32>,
        values: &Array<f32>,
        listed: &Listed<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        let (n_places, k) = (listed.n_places(), listed.k);
        listed.check();
        at_least("values", values.len(), n_places);
        at_least("out", out.len(), n_places / k * n);
        kernels::scatter_listed(
            self,
            for_each(n_places),
            out.all_mut(),
            values.all(),
            listed.states(),
            int(n_places),
            int(k),
            int(n),
        )
    }

    /// Writes b of each token's slot and listed states to `local`. `emission` has a row of n numbers per slot.
    pub fn place_listed(
        &self,
        local: &mut Array<f32>,
        emission: &Array<f32>,
        sequences: &Sequences<'_>,
        listed: &Listed<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        let (n_tokens, k) = (sequences.n_tokens(), listed.k);
        sequences.check();
        listed.check();
        at_least("local", local.len(), n_tokens * k);
        at_least("emission", emission.len(), n_tokens.min(1) * n);
        at_least("states", listed.n_places(), n_tokens.min(1) * k);
        kernels::place_listed(
            self,
            for_each(n_tokens * k),
            local.all_mut(),
            emission.all(),
            sequences.ints.at(sequences.slots.clone()),
            sequences.ints.at(sequences.clusters.clone()),
            listed.states(),
            int(n_tokens),
            int(k),
            int(n),
        )
    }

    /// The transition probabilities of blocks between lists, from the states `rows` on. `logits` has a row of n numbers
    /// for each of them. Padding gets 0.
    pub fn gather_listed_blocks(
        &self,
        out: &mut Array<f32>,
        (logits, rows): (&Array<f32>, Range<usize>),
        log_sums: &Array<f32>,
        blocks: &Blocks<'_>,
        listed: &Listed<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        let (n_blocks, k) = (blocks.len(), listed.k);
        if n_blocks == 0 {
            return Ok(());
        }
        listed.check();
        at_least("out", out.len(), n_blocks * k * k);
        at_least("logits", logits.len(), rows.len() * n);
        at_least("log_sums", log_sums.len(), rows.end);
        at_least("states", listed.n_places(), k);
        exactly("to", blocks.to.len(), n_blocks);
        kernels::gather_listed_blocks(
            self,
            grid((n_blocks, k.min(32), 1), (k.next_multiple_of(32).min(256), 1)),
            out.all_mut(),
            logits.all(),
            log_sums.all(),
            blocks.ints.at(blocks.from.clone()),
            blocks.ints.at(blocks.to.clone()),
            listed.states(),
            int(k),
            int(n),
            int(rows.start) as u32,
            int(rows.len()) as u32,
        )
    }

    /// Σ γ over the tokens of each state: over all, over the first ones of sentences, and over those that are not the
    /// last.
    pub fn sum_listed(
        &self,
        (all, first, left): (&mut Array<f32>, &mut Array<f32>, &mut Array<f32>),
        nodes: &Array<f32>,
        tokens: &StateTokens<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let n = tokens.n_states();
        at_least("all", all.len(), n);
        at_least("first", first.len(), n);
        at_least("left", left.len(), n);
        at_least("nodes", nodes.len(), tokens.ends.len() * k);
        kernels::sum_listed(
            self,
            warps(n),
            all.all_mut(),
            first.all_mut(),
            left.all_mut(),
            nodes.all(),
            tokens.begins(),
            tokens.entries(),
            tokens.ends(),
            int(k),
            int(n),
        )
    }

    /// Logits ─▶ the derivatives (R − left) ∘ a, where R = Σ α_t/κ ⊗ v_{t+1}, and `blocks` has a for the pairs
    /// of tokens.
    pub fn listed_transition_gradient(
        &self,
        (logits, log_sums): (&mut Array<f32>, &Array<f32>),
        (left, blocks): (&Array<f32>, &Array<f32>),
        (alpha, weighted): (&Array<f32>, &Array<f32>),
        sequences: &Sequences<'_>,
        listed: &Listed<'_>,
        tokens: &StateTokens<'_>,
    ) -> Result<(), CudaError> {
        let (n, k, n_tokens) = (tokens.n_states(), listed.k, sequences.n_tokens());
        sequences.check();
        sequences.check_blocks(blocks, k);
        listed.check();
        at_least("logits", logits.len(), n * n);
        at_least("log_sums", log_sums.len(), n);
        at_least("left", left.len(), n);
        at_least("alpha", alpha.len(), n_tokens * k);
        at_least("weighted", weighted.len(), n_tokens * k);
        exactly("ends", tokens.ends.len(), n_tokens);
        kernels::listed_transition_gradient(
            self,
            grid((n, 1, 1), (256, 1)),
            logits.all_mut(),
            log_sums.all(),
            left.all(),
            blocks.all(),
            alpha.all(),
            weighted.all(),
            sequences.ints.at(sequences.clusters.clone()),
            sequences.ints.at(sequences.block_of_pair.clone()),
            listed.states(),
            tokens.begins(),
            tokens.entries(),
            tokens.ends(),
            int(k),
            int(n),
        )
    }
}
