//! Recursions where each word has a list of states of its own.

use crate::device::{for_each, grid, launch};
use crate::layers::warps;
use crate::{Array, Blocks, CudaError, Device, Sequences};
use cudarc::driver::PushKernelArg;
use std::ops::Range;

/// Lists of at most k states each, of groups of tokens; where the numbers lie in one array. The cluster of a token in
/// [`Sequences`], and those of [`Blocks`], are such groups.
#[derive(Clone, Debug)]
pub struct Listed<'a> {
    /// The array.
    pub ints: &'a Array<u32>,
    /// The k states of each group, different ones; `u32::MAX` after the end of a shorter list.
    pub states: Range<usize>,
    /// How many states a list has at most.
    pub k: usize,
}

/// For each state the tokens that it is in the list of; where the numbers lie in one array.
#[derive(Clone, Debug)]
pub struct StateTokens<'a> {
    /// The array.
    pub ints: &'a Array<u32>,
    /// Where the entries of each state begin, and where those of the last one end.
    pub begins: Range<usize>,
    /// Entries t · k + j: the state is number j of token t.
    pub entries: Range<usize>,
    /// Of each token: 1 for the first of a sentence, 2 for the last, 3 for both, else 0.
    pub ends: Range<usize>,
}

impl StateTokens<'_> {
    /// A token that is the first of its sentence.
    pub const FIRST: u32 = 1;
    /// A token that is the last of its sentence.
    pub const LAST: u32 = 2;

    fn n_states(&self) -> usize {
        self.begins.len() - 1
    }
}

impl Device {
    /// A number for each place of lists: that of its state, or 0.
    pub fn gather_listed(
        &self,
        out: &mut Array<f32>,
        values: &Array<f32>,
        listed: &Listed<'_>,
    ) -> Result<(), CudaError> {
        assert!(listed.states.len() <= out.len(), "a number for each place");
        assert!(listed.states.len() < 1 << 31, "so many that 32 bits count them");
        let (config, n) = (for_each(listed.states.len()), listed.states.len() as i32);
        let states = listed.ints.at(listed.states.clone());
        launch!(self, "gather_listed", config, &mut out.0, &values.0, &states, &n)
    }

    /// The other way round: each group has a row of n numbers, of which those of its states are overwritten.
    pub fn scatter_listed(
        &self,
        out: &mut Array<f32>,
        values: &Array<f32>,
        listed: &Listed<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        let n_places = listed.states.len();
        assert!(n_places < 1 << 31, "so many that 32 bits count them");
        assert!(n_places <= values.len() && n_places / listed.k * n <= out.len(), "whole rows");
        let states = listed.ints.at(listed.states.clone());
        let config = for_each(n_places);
        let (n_places, k, n) = (n_places as i32, listed.k as i32, n as i32);
        launch!(self, "scatter_listed", config, &mut out.0, &values.0, &states, &n_places, &k, &n)
    }

    /// b of each token's slot and states, of rows of n numbers.
    pub fn place_listed(
        &self,
        local: &mut Array<f32>,
        emission: &Array<f32>,
        sequences: &Sequences<'_>,
        listed: &Listed<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        sequences.check();
        let (n_tokens, k) = (sequences.n_tokens(), listed.k);
        assert!(n_tokens * k <= local.len(), "k numbers a token");
        let config = for_each(n_tokens * k);
        let (n_tokens, k, n) = (n_tokens as i32, k as i32, n as i32);
        let slots = sequences.ints.at(sequences.slots.clone());
        let groups = sequences.ints.at(sequences.clusters.clone());
        let states = listed.ints.at(listed.states.clone());
        launch!(
            self,
            "place_listed",
            config,
            &mut local.0,
            &emission.0,
            &slots,
            &groups,
            &states,
            &n_tokens,
            &k,
            &n
        )
    }

    /// The probabilities of blocks between lists, as far as they lead from the states `rows`, of which there are logits
    /// of n numbers each. What is in no list is 0.
    pub fn gather_listed_blocks(
        &self,
        out: &mut Array<f32>,
        (logits, rows): (&Array<f32>, Range<usize>),
        log_sums: &Array<f32>,
        blocks: &Blocks<'_>,
        listed: &Listed<'_>,
        n: usize,
    ) -> Result<(), CudaError> {
        let (n_blocks, k) = (blocks.from.len(), listed.k);
        if n_blocks == 0 {
            return Ok(());
        }
        assert!(n_blocks * k * k <= out.len(), "room for all blocks");
        assert_eq!(n_blocks, blocks.to.len(), "two groups a block");
        assert!(rows.len() * n <= logits.len() && rows.end <= log_sums.len(), "whole rows");
        let (from, to) = (blocks.ints.at(blocks.from.clone()), blocks.ints.at(blocks.to.clone()));
        let states = listed.ints.at(listed.states.clone());
        let config = grid((n_blocks, k.min(32), 1), (k.next_multiple_of(32).min(256), 1));
        let (first, n_rows) = (rows.start as u32, rows.len() as u32);
        let (k, n) = (k as i32, n as i32);
        launch!(
            self,
            "gather_listed_blocks",
            config,
            &mut out.0,
            &logits.0,
            &log_sums.0,
            &from,
            &to,
            &states,
            &k,
            &n,
            &first,
            &n_rows
        )
    }

    /// Of each state Σ γ over the tokens in whose lists it is: over all, over first ones, and over those that are not the
    /// last.
    pub fn sum_listed(
        &self,
        (all, first, left): (&mut Array<f32>, &mut Array<f32>, &mut Array<f32>),
        nodes: &Array<f32>,
        tokens: &StateTokens<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let n = tokens.n_states();
        assert!(n <= all.len().min(first.len()).min(left.len()), "all states");
        assert!(tokens.ends.len() * k <= nodes.len(), "k numbers a token");
        let begins = tokens.ints.at(tokens.begins.clone());
        let entries = tokens.ints.at(tokens.entries.clone());
        let ends = tokens.ints.at(tokens.ends.clone());
        let (config, k, n) = (warps(n), k as i32, n as i32);
        launch!(
            self,
            "sum_listed",
            config,
            &mut all.0,
            &mut first.0,
            &mut left.0,
            &nodes.0,
            &begins,
            &entries,
            &ends,
            &k,
            &n
        )
    }

    /// Logits ─▶ the derivatives (R − left) ∘ a by them, with R = Σ α_t/κ ⊗ v_{t+1}; `blocks` has a of the pairs of
    /// tokens.
    pub fn listed_transition_gradient(
        &self,
        (logits, log_sums): (&mut Array<f32>, &Array<f32>),
        (left, blocks): (&Array<f32>, &Array<f32>),
        (alpha, weighted): (&Array<f32>, &Array<f32>),
        sequences: &Sequences<'_>,
        listed: &Listed<'_>,
        tokens: &StateTokens<'_>,
    ) -> Result<(), CudaError> {
        let (n, k) = (tokens.n_states(), listed.k);
        assert!(n * n <= logits.len() && n <= log_sums.len().min(left.len()), "all states");
        let n_values = sequences.n_tokens() * k;
        sequences.check();
        assert_eq!(tokens.ends.len(), sequences.n_tokens(), "an end for each token");
        assert!(n_values <= alpha.len().min(weighted.len()), "k numbers a token");
        let groups = sequences.ints.at(sequences.clusters.clone());
        let block_of_pair = sequences.ints.at(sequences.block_of_pair.clone());
        let states = listed.ints.at(listed.states.clone());
        let begins = tokens.ints.at(tokens.begins.clone());
        let entries = tokens.ints.at(tokens.entries.clone());
        let ends = tokens.ints.at(tokens.ends.clone());
        let config = grid((n, 1, 1), (256, 1));
        let (k, n) = (k as i32, n as i32);
        launch!(
            self,
            "listed_transition_gradient",
            config,
            &mut logits.0,
            &log_sums.0,
            &left.0,
            &blocks.0,
            &alpha.0,
            &weighted.0,
            &groups,
            &block_of_pair,
            &states,
            &begins,
            &entries,
            &ends,
            &k,
            &n
        )
    }
}
