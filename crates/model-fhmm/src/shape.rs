//! Sizes of a model, and the memory layout of joint states.

use std::ops::Range;

/// Numbers of layers, states per layer and words.
///
/// A joint state s = (s¹ … s^M) is a number in base K, with the digit of the first layer first. Layers form two
/// groups, so that a table over joint states is a matrix: the digits of the first group give its row, those of the
/// second its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) n_layers: usize,
    pub(crate) n_states: usize,
    pub(crate) n_words: usize,
}

impl Shape {
    /// Length of the row of a token or word: layers × states.
    pub(crate) fn row(self) -> usize {
        self.n_layers * self.n_states
    }

    /// Range of a layer in such a row.
    pub(crate) fn layer(self, layer: usize) -> Range<usize> {
        layer * self.n_states..(layer + 1) * self.n_states
    }

    /// Range of several layers in such a row.
    pub(crate) fn layers(self, layers: Range<usize>) -> Range<usize> {
        layers.start * self.n_states..layers.end * self.n_states
    }

    /// Layers of the first group; empty if there is only one layer.
    pub(crate) fn first(self) -> Range<usize> {
        0..self.n_layers / 2
    }

    /// Layers of the second group.
    pub(crate) fn second(self) -> Range<usize> {
        self.n_layers / 2..self.n_layers
    }

    /// Layers of the group that contains `layer`.
    pub(crate) fn group(self, layer: usize) -> Range<usize> {
        if layer < self.first().end { self.first() } else { self.second() }
    }

    /// Number of joint states of `n_layers` layers.
    pub(crate) fn joint(self, n_layers: usize) -> usize {
        self.n_states.pow(n_layers as u32)
    }

    /// Number of rows of a table over joint states.
    pub(crate) fn n_rows(self) -> usize {
        self.joint(self.first().len())
    }

    /// Number of columns of a table over joint states.
    pub(crate) fn n_columns(self) -> usize {
        self.joint(self.second().len())
    }

    /// Number of joint states.
    pub(crate) fn n_joint(self) -> usize {
        self.joint(self.n_layers)
    }
}
