//! Packed sequences of vectors and the windows that slide over them.

use crate::tensors::Buffer;
use latens_math::Real;
use latens_math::linalg::Par;
use latens_math::rows::{Rows, for_each_chunk, row_mut, rows_per_chunk};
use std::ops::Range;

/// Packed sequences of vectors.
///
/// Sequence i consists of the vectors from `offsets[i]` up to `offsets[i + 1]`.
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a, T> {
    /// Values of all vectors.
    pub values: &'a [T],
    /// Length of a vector.
    pub dim: usize,
    /// Start of each sequence, followed by the end of the last one.
    pub offsets: &'a [usize],
}

impl<T> Sequences<'_, T> {
    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Range of the vectors of sequence `idx`.
    pub fn range(&self, idx: usize) -> Range<usize> {
        self.offsets[idx]..self.offsets[idx + 1]
    }
}

/// A window of `width` positions that holds vectors of a sequence, padded with zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Range of its values in the packed values.
    pub(crate) values: Range<usize>,
    /// Offset of the first of them in the window.
    pub(crate) start: usize,
}

impl Window {
    /// Returns window t = 0, 1, …, n + width − 2 of a sequence of n vectors of length `dim`.
    ///
    /// It ends with vector t, counted from 0: position k holds vector t + k − (width − 1).
    #[inline]
    pub(crate) fn new(vectors: Range<usize>, t: usize, width: usize, dim: usize) -> Window {
        let last = width - 1;
        let first = (vectors.start + t).saturating_sub(last).max(vectors.start);
        let end = vectors.end.min(vectors.start + t + 1);
        Window { values: first * dim..end * dim, start: last.saturating_sub(t) * dim }
    }

    /// Range of its values in the window.
    #[inline]
    pub(crate) fn places(&self) -> Range<usize> {
        self.start..self.start + self.values.len()
    }
}

/// Number of windows of `n_sequences` sequences with `n_vectors` vectors in total.
pub(crate) fn n_windows(n_vectors: usize, n_sequences: usize, width: usize) -> usize {
    n_vectors + n_sequences * (width - 1)
}

/// Splits sequences into blocks of at most `max_windows` windows; a longer sequence is a block of its own.
pub(crate) fn blocks(
    offsets: &[usize],
    width: usize,
    max_windows: usize,
) -> impl Iterator<Item = Range<usize>> {
    let n = offsets.len().saturating_sub(1);
    let fits = move |start: usize, end: usize| {
        n_windows(offsets[end] - offsets[start], end - start, width) <= max_windows
    };
    let mut start = 0;
    std::iter::from_fn(move || {
        let begin = start;
        while start < n && (start == begin || fits(begin, start + 1)) {
            start += 1;
        }
        (begin < start).then_some(begin..start)
    })
}

/// Writes the windows of a range of sequences to the rows of `columns`.
pub(crate) fn lay_out<T: Real>(
    x: Sequences<'_, T>,
    sequences: Range<usize>,
    width: usize,
    windows: &mut Vec<Window>,
    columns: &mut Buffer<T>,
    par: Par,
) {
    windows.clear();
    for vectors in sequences.map(|idx| x.range(idx)) {
        let n = n_windows(vectors.len(), 1, width);
        windows.extend((0..n).map(|t| Window::new(vectors.clone(), t, width, x.dim)));
    }
    columns.resize(windows.len(), width * x.dim);
    let size = rows_per_chunk(width * x.dim);
    for_each_chunk((columns.view_mut(), &windows[..]), size, par, |(mut columns, windows)| {
        for (i, window) in windows.iter().enumerate() {
            let column = row_mut(&mut columns, i);
            let places = window.places();
            column[..places.start].fill(T::zero());
            column[places.end..].fill(T::zero());
            column[places].copy_from_slice(&x.values[window.values.clone()]);
        }
    });
}

/// Mutable packed sequences, which can be split between sequences.
pub(crate) struct SequencesMut<'a, T> {
    /// Values of these sequences only.
    pub(crate) values: &'a mut [T],
    pub(crate) dim: usize,
    /// Their offsets among all vectors, starting with `offsets[0]`.
    pub(crate) offsets: &'a [usize],
}

impl<T: Send> Rows for SequencesMut<'_, T> {
    fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    fn cut(self, at: usize) -> (Self, Self) {
        let SequencesMut { values, dim, offsets } = self;
        let (left, right) = values.split_at_mut((offsets[at] - offsets[0]) * dim);
        (
            SequencesMut { values: left, dim, offsets: &offsets[..=at] },
            SequencesMut { values: right, dim, offsets: &offsets[at..] },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_window_that_overlaps_a_sequence_is_laid_out() {
        let x = Sequences { values: &[1.0, 2.0, 3.0], dim: 1, offsets: &[0, 2, 2, 3] };
        let (mut windows, mut columns) = (vec![], Buffer::new());
        lay_out(x, 0..3, 3, &mut windows, &mut columns, Par::Seq);
        let expected = [
            [0.0, 0.0, 1.0],
            [0.0, 1.0, 2.0],
            [1.0, 2.0, 0.0],
            [2.0, 0.0, 0.0],
            [0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0],
            [0.0, 0.0, 3.0],
            [0.0, 3.0, 0.0],
            [3.0, 0.0, 0.0],
        ];
        assert_eq!(columns.values(), expected.concat());
    }

    #[test]
    fn blocks_cover_all_sequences_and_respect_the_maximum_size() {
        let offsets = [0, 3, 3, 10, 30, 31];
        let found: Vec<_> = blocks(&offsets, 2, 9).collect();
        assert_eq!(found, [0..2, 2..3, 3..4, 4..5]);
        assert_eq!(blocks(&[0], 2, 9).count(), 0);
        assert_eq!(blocks(&[], 2, 9).count(), 0);
        assert_eq!(blocks(&[0, 0, 0], 1, 9).collect::<Vec<_>>(), vec![0..2]);
    }
}
