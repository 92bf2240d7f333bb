//! The tokens of a dense model in lanes, and the buffers of their values.

use crate::recursion::lanes::Lanes;
use crate::recursion::products::add_scaled;
use crate::space::state_space::StateSpace;
use crate::tables::emitted::EmittedSlots;
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use latens_math::{Aligned, Real};

/// The tokens of a part of a batch in the lanes of a dense model, and their values.
#[derive(Default)]
pub(crate) struct DenseLanes<T> {
    lanes: Lanes,
    emitted: EmittedSlots,
    pub(super) rows: Vec<Row>,
    /// b of each emitted slot and zeros for words that no state emits; with tags, b ∘ g of each row.
    local: Aligned<T>,
    has_tags: bool,
    /// α of each row, later α/κ times a power of two.
    pub(super) alpha: Aligned<T>,
    /// v = b ∘ β of each row, in the row of the token before.
    pub(super) v: Aligned<T>,
    /// α · A or v · Aᵀ of the rows of a step.
    pub(super) incoming: Aligned<T>,
}

/// The token of a row.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(super) sentence: u32,
    /// The place of its word among the emitted ones.
    place: u32,
    /// `u32::MAX` without a tag.
    tag: u32,
    pub(super) is_first: bool,
    pub(crate) is_last: bool,
}

/// The sentences of a part of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Tokens<'a> {
    /// The first token of each sentence, and the end of the last one.
    pub(crate) sentence_starts: &'a [usize],
    /// The slot of each token, `u32::MAX` for words that no state emits.
    pub(crate) slots: &'a [u32],
    /// The tag of each token, `u32::MAX` for tokens without a tag; empty without tags.
    pub(crate) tags: &'a [u32],
}

impl<T: Real> DenseLanes<T> {
    /// Arranges tokens, and fills in their emission probabilities.
    pub(crate) fn place(&mut self, space: &StateSpace, tables: &Tables<T>, tokens: Tokens<'_>) {
        let (k, n) = (tables.k, tokens.slots.len());
        self.lanes.arrange(tokens.sentence_starts, k);
        self.emitted.find(tokens.slots.iter().copied(), space.n_slots());
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        let places = self.lanes.sentences.iter().zip(&self.lanes.tokens);
        rows.extend(places.map(|(&sentence, &token)| self.row(tokens, sentence, token as usize)));
        self.rows = rows;
        self.alpha.resize(n * k);
        self.v.resize(n * k);
        self.incoming.resize(self.steps().first().map_or(0, |n| n * k));
        self.has_tags = !tokens.tags.is_empty();
        if self.has_tags {
            self.local.resize(n * k);
            for (local, row) in self.local.chunks_exact_mut(k).zip(&self.rows) {
                match self.emitted.slots.get(row.place as usize) {
                    Some(&slot) => local.copy_from_slice(tables.emission_of(slot as usize)),
                    None => local.fill(T::zero()),
                }
                if row.tag != u32::MAX {
                    let of_states = &tables.tags[row.tag as usize * k..][..k];
                    local.iter_mut().zip(of_states).for_each(|(local, &tag)| *local *= tag);
                }
            }
            return;
        }
        // Where they lie in the tables, they would be read from far away for every token.
        self.local.resize((self.emitted.slots.len() + 1) * k);
        let (local, zeros) = self.local.split_at_mut(self.emitted.slots.len() * k);
        for (local, &slot) in local.chunks_exact_mut(k).zip(&self.emitted.slots) {
            local.copy_from_slice(tables.emission_of(slot as usize));
        }
        zeros.fill(T::zero());
    }

    /// The row that a token has.
    pub(crate) fn row(&self, tokens: Tokens<'_>, sentence: u32, token: usize) -> Row {
        let ends = &tokens.sentence_starts[sentence as usize..];
        Row {
            sentence,
            place: self.emitted.place(tokens.slots[token]),
            tag: tokens.tags.get(token).copied().unwrap_or(u32::MAX),
            is_first: token == ends[0],
            is_last: token + 1 == ends[1],
        }
    }

    /// The number of rows of each step. It never grows.
    pub(crate) fn steps(&self) -> &[usize] {
        &self.lanes.steps
    }

    /// b ∘ g of a row.
    #[inline(always)]
    pub(super) fn local(&self, row: usize, k: usize) -> &[T] {
        let place = if self.has_tags { row } else { self.rows[row].place as usize };
        &self.local[place * k..][..k]
    }

    /// Sets the counts of nodes to zero.
    pub(super) fn clear_nodes(&self, tables: &Tables<T>, out: &mut ExpectedCounts<T>) {
        out.clear_nodes(tables.k, tables.tags.len());
        out.slots.extend_from_slice(&self.emitted.slots);
        out.emission.resize(out.slots.len() * tables.k, T::zero());
    }
}

/// Adds γ of a row, which is `node` times `factor`, to the expected starts, emissions and tags.
#[inline(always)]
pub(crate) fn add_node<T: Real>(row: Row, node: &[T], factor: T, out: &mut ExpectedCounts<T>) {
    let k = node.len();
    add_scaled(&mut out.emission[row.place as usize * k..][..k], node, factor);
    if row.is_first {
        add_scaled(&mut out.start, node, factor);
    }
    if row.tag != u32::MAX {
        add_scaled(&mut out.tags[row.tag as usize * k..][..k], node, factor);
    }
}
