//! Sizes, and how joint states lie in memory.

use std::ops::Range;

/// How many layers, states a layer and words there are.
///
/// A joint state s = (s¹ … s^M) is a number to the base K, the first layer's digit first. Layers are in two
/// groups, so that a table over joint states is a matrix: digits of the first group are its rows, those of the
/// second its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) n_layers: usize,
    pub(crate) n_states: usize,
    pub(crate) n_words: usize,
}

impl Shape {
    /// How many numbers a token or a word has: one a state of each layer.
    pub(crate) fn row(self) -> usize {
        self.n_layers * self.n_states
    }

    /// Where a layer lies in such a row.
    pub(crate) fn layer(self, layer: usize) -> Range<usize> {
        layer * self.n_states..(layer + 1) * self.n_states
    }

    /// Where layers lie in such a row.
    pub(crate) fn layers(self, layers: Range<usize>) -> Range<usize> {
        layers.start * self.n_states..layers.end * self.n_states
    }

    /// The layers of the first group: none if there is one layer.
    pub(crate) fn first(self) -> Range<usize> {
        0..self.n_layers / 2
    }

    /// The layers of the second group.
    pub(crate) fn second(self) -> Range<usize> {
        self.n_layers / 2..self.n_layers
    }

    /// The group of a layer.
    pub(crate) fn group(self, layer: usize) -> Range<usize> {
        if layer < self.first().end { self.first() } else { self.second() }
    }

    /// The joint states of so many layers.
    pub(crate) fn joint(self, n_layers: usize) -> usize {
        self.n_states.pow(n_layers as u32)
    }

    /// Rows of a table over joint states.
    pub(crate) fn n_rows(self) -> usize {
        self.joint(self.first().len())
    }

    /// Columns of a table over joint states.
    pub(crate) fn n_columns(self) -> usize {
        self.joint(self.second().len())
    }

    /// All joint states.
    pub(crate) fn n_joint(self) -> usize {
        self.joint(self.n_layers)
    }
}
