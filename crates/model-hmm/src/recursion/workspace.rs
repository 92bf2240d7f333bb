//! The buffers of the recursion, and where a batch lies in them.

use crate::recursion::batch::Batch;
use crate::recursion::lanes::Lanes;
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
    /// The start of the values of each token, one per state, and the end of the last ones. In a dense model, which arranges
    /// tokens in lanes, only their differences count.
    pub(crate) value_starts: Vec<usize>,
    /// Where the tokens of a dense model lie, and the row of each token; without rows in other models.
    pub(crate) lanes: Lanes,
    rows: Vec<u32>,
    /// b ∘ g of each token; empty in a dense model without tags, where it is b of the word.
    pub(crate) local: Vec<T>,
    /// b of a word that no state emits, in a dense model.
    pub(crate) zeros: Vec<T>,
    /// α of each token, later α/κ, in a dense model times a power of two.
    pub(crate) alpha: Vec<T>,
    /// v = b ∘ β of each token.
    pub(crate) weighted: Vec<T>,
    /// γ of each token.
    pub(crate) nodes: Vec<T>,
}

impl<T: Real> Workspace<T> {
    /// Lays out a batch and fills in the emission probabilities of its tokens.
    pub(crate) fn place(&mut self, space: &StateSpace, tables: &Tables<T>, batch: &Batch<'_>) {
        let has_lists = tables.lists.is_some();
        let mut n_values = 0;
        for values in [&mut self.sentence_starts, &mut self.value_starts] {
            values.clear();
            values.push(0);
        }
        self.groups.clear();
        self.slots.clear();
        for sentence in &batch.sentences {
            for &word in *sentence {
                let slot = space.slot(word);
                // A word that no state emits gets the states of group 0 with probability 0.
                let group = if has_lists { slot } else { space.cluster(word) }.unwrap_or(0);
                n_values += tables.states(group).len(tables.k);
                self.groups.push(group as u32);
                self.slots.push(slot.map_or(u32::MAX, |slot| slot as u32));
                self.value_starts.push(n_values);
            }
            self.sentence_starts.push(self.groups.len());
        }
        self.rows.clear();
        if tables.is_dense() {
            self.lanes.arrange(&self.sentence_starts, tables.k);
            self.rows.resize(self.groups.len(), 0);
            for (row, &token) in self.lanes.tokens.iter().enumerate() {
                self.rows[token as usize] = row as u32;
            }
        }
        // Nothing reads what is left of the last batch.
        for values in [&mut self.alpha, &mut self.weighted, &mut self.nodes] {
            values.resize(n_values, T::zero());
        }
        self.tags.clear();
        if tables.is_dense() {
            self.zeros.resize(tables.k, T::zero());
            if batch.tags.is_empty() {
                self.local.clear();
                return;
            }
        }
        self.local.resize(n_values, T::zero());
        let mut rest = &mut self.local[..];
        let rows = (0..self.slots.len()).map(|i| {
            let token = if tables.is_dense() { self.lanes.tokens[i] as usize } else { i };
            let n = self.value_starts[i + 1] - self.value_starts[i];
            (rest.split_off_mut(..n).expect("values of every token"), self.slots[token])
        });
        let rows: Vec<_> = rows.collect();
        rows.into_par_iter().with_min_len(64).for_each(|(local, slot)| match slot {
            u32::MAX => local.fill(T::zero()),
            slot => local.copy_from_slice(tables.emission_of(slot as usize)),
        });
        if !batch.tags.is_empty() {
            self.tags.resize(self.groups.len(), u32::MAX);
        }
        for (sentence, tags) in batch.tags.iter().enumerate() {
            for (i, &tag) in tags.iter().enumerate() {
                let at = self.sentence_starts[sentence] + i;
                self.tags[at] = tag;
                let of_states = tables.tag_of(tag, tables.states(self.groups[at] as usize));
                let values = self.values(at);
                let local = self.local[values].iter_mut();
                local.zip(&*of_states).for_each(|(local, &tag)| *local *= tag);
            }
        }
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
        let n = self.value_starts[token + 1] - self.value_starts[token];
        let begin = match self.rows.get(token) {
            Some(&row) => row as usize * n,
            None => self.value_starts[token],
        };
        begin..begin + n
    }

    /// b ∘ g of a token.
    pub(crate) fn local_of(&self, token: usize) -> &[T] {
        &self.local[self.values(token)]
    }
}
