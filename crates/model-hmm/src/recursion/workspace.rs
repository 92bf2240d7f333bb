//! The buffers of the recursion, and where a batch lies in them.

use crate::recursion::batch::Batch;
use crate::recursion::dense_lanes::{DenseLanes, Tokens};
use crate::space::state_space::StateSpace;
use crate::tables::probability_tables::Tables;
use latens_math::Real;
use rayon::prelude::*;
use std::ops::Range;

/// The buffers of the recursion. They are reused from batch to batch.
#[derive(Default)]
pub(crate) struct Workspace<T> {
    /// The first token of each sentence, and the end of the last one.
    pub(crate) sentence_starts: Vec<usize>,
    /// The cluster of each token, or its slot if the model has state lists: tokens of a group share their states.
    pub(crate) groups: Vec<u32>,
    /// The slot of each token, `u32::MAX` for words that no state emits.
    pub(crate) slots: Vec<u32>,
    /// The tag of each token, `u32::MAX` for tokens without a tag; empty without tags.
    pub(crate) tags: Vec<u32>,
    /// The start of the values of each token, one per state, and the end of the last ones.
    pub(crate) value_starts: Vec<usize>,
    /// The values of the tokens of a dense model; the buffers below are those of other models.
    pub(crate) lanes: DenseLanes<T>,
    /// b ∘ g of each token.
    pub(crate) local: Vec<T>,
    /// α of each token, later α/κ.
    pub(crate) alpha: Vec<T>,
    /// v = b ∘ β of each token.
    pub(crate) weighted: Vec<T>,
    /// γ of each token.
    pub(crate) nodes: Vec<T>,
}

impl<T: Real> Workspace<T> {
    /// Lays out a batch and fills in the emission probabilities of its tokens.
    pub(crate) fn place(&mut self, space: &StateSpace, tables: &Tables<T>, batch: &Batch<'_>) {
        self.sentence_starts.clear();
        self.sentence_starts.push(0);
        self.slots.clear();
        for sentence in &batch.sentences {
            let slots = sentence.iter().map(|&word| space.slot(word));
            self.slots.extend(slots.map(|slot| slot.map_or(u32::MAX, |slot| slot as u32)));
            self.sentence_starts.push(self.slots.len());
        }
        self.tags.clear();
        if !batch.tags.is_empty() {
            self.tags.resize(self.slots.len(), u32::MAX);
        }
        for (&begin, tags) in self.sentence_starts.iter().zip(&batch.tags) {
            self.tags[begin..begin + tags.len()].copy_from_slice(tags);
        }
        self.groups.clear();
        self.value_starts.clear();
        if tables.is_dense() {
            self.groups.resize(self.slots.len(), 0);
            self.value_starts.extend((0..=self.slots.len()).map(|token| token * tables.k));
            let mut lanes = std::mem::take(&mut self.lanes);
            lanes.place(space, tables, self.placed());
            self.lanes = lanes;
            return;
        }
        let has_lists = tables.lists.is_some();
        let mut n_values = 0;
        self.value_starts.push(0);
        for &word in batch.sentences.iter().copied().flatten() {
            let group = if has_lists { space.slot(word) } else { space.cluster(word) };
            // A word that no state emits gets the states of group 0 with probability 0.
            let group = group.unwrap_or(0);
            n_values += tables.states(group).len(tables.k);
            self.groups.push(group as u32);
            self.value_starts.push(n_values);
        }
        // Nothing reads what is left of the last batch.
        for values in [&mut self.local, &mut self.alpha, &mut self.weighted, &mut self.nodes] {
            values.resize(n_values, T::zero());
        }
        let mut rest = &mut self.local[..];
        let rows = (0..self.slots.len()).map(|token| {
            let n = self.value_starts[token + 1] - self.value_starts[token];
            (rest.split_off_mut(..n).expect("values of every token"), token)
        });
        let rows: Vec<_> = rows.collect();
        rows.into_par_iter().with_min_len(64).for_each(|(local, token)| {
            match self.slots[token] {
                u32::MAX => local.fill(T::zero()),
                slot => local.copy_from_slice(tables.emission_of(slot as usize)),
            }
            if let Some(&tag) = self.tags.get(token).filter(|&&tag| tag != u32::MAX) {
                let of_states = tables.tag_of(tag, tables.states(self.groups[token] as usize));
                local.iter_mut().zip(&*of_states).for_each(|(local, &tag)| *local *= tag);
            }
        });
    }

    /// The sentences and their tokens.
    pub(crate) fn placed(&self) -> Tokens<'_> {
        let Workspace { sentence_starts, slots, tags, .. } = self;
        Tokens { sentence_starts, slots, tags }
    }

    /// The number of sentences.
    pub(crate) fn n_sentences(&self) -> usize {
        self.sentence_starts.len() - 1
    }

    /// The number of tokens of a sentence.
    pub(crate) fn len(&self, sentence: usize) -> usize {
        self.tokens(sentence).len()
    }

    /// The tokens of a sentence.
    pub(crate) fn tokens(&self, sentence: usize) -> Range<usize> {
        self.sentence_starts[sentence]..self.sentence_starts[sentence + 1]
    }

    /// The range of the values of a token.
    pub(crate) fn values(&self, token: usize) -> Range<usize> {
        self.value_starts[token]..self.value_starts[token + 1]
    }

    /// b ∘ g of a token.
    pub(crate) fn local_of(&self, token: usize) -> &[T] {
        &self.local[self.values(token)]
    }
}
