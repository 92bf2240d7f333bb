//! Dropout, the softmax over the next word, and gradients of word vectors.

use crate::device::{Array, CudaError, Device, at_least, exactly, for_each, grid, int, kernels};
use std::ops::Range;

/// Rows grouped by their word. The indices are ranges of one array.
#[derive(Clone, Debug)]
pub struct WordGroups<'a> {
    /// The array that contains the ranges below.
    pub ints: &'a Array<u32>,
    /// The word of each group. All are distinct.
    pub words: Range<usize>,
    /// Where each group begins in `places`, and where the last one ends.
    pub starts: Range<usize>,
    /// Indices of the rows of all groups.
    pub places: Range<usize>,
}

impl Device {
    /// Copies the first n numbers with dropout.
    pub fn dropout(
        &self,
        out: &mut Array<f32>,
        x: &Array<f32>,
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        at_least("out", out.len(), n);
        at_least("x", x.len(), n);
        kernels::dropout(self, for_each(n), out.all_mut(), x.all(), int(n), rate, seed)
    }

    /// Applies dropout to the first n numbers. The same seed drops the same numbers as in [`Device::dropout`].
    pub fn dropout_in_place(
        &self,
        x: &mut Array<f32>,
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        at_least("x", x.len(), n);
        kernels::dropout_in_place(self, for_each(n), x.all_mut(), int(n), rate, seed)
    }

    /// ln p of the target of each of n rows under the softmax of its logits plus the bias. If `learns`, the derivatives
    /// of ln p by the logits replace the logits.
    pub fn next_words(
        &self,
        logits: &mut Array<f32>,
        log_probs: &mut Array<f64>,
        (bias, bias_range): (&Array<f32>, Range<usize>),
        (targets, target_range): (&Array<u32>, Range<usize>),
        n: usize,
        learns: bool,
    ) -> Result<(), CudaError> {
        let n_words = bias_range.len();
        at_least("logits", logits.len(), n * n_words);
        at_least("log_probs", log_probs.len(), n);
        exactly("targets", target_range.len(), n);
        if n == 0 {
            return Ok(());
        }
        kernels::next_words(
            self,
            grid((n, 1, 1), (512, 1)),
            logits.all_mut(),
            log_probs.all_mut(),
            bias.at(bias_range),
            targets.at(target_range),
            int(n_words),
            i32::from(learns),
        )
    }

    /// Adds the sum of the rows of each group to the row of its word in a table with `dim` columns.
    pub fn add_rows_of_words(
        &self,
        (table, table_range): (&mut Array<f32>, Range<usize>),
        rows: &Array<f32>,
        groups: &WordGroups<'_>,
        dim: usize,
    ) -> Result<(), CudaError> {
        let WordGroups { ints, words, starts, places } = groups.clone();
        let n = words.len();
        exactly("starts", starts.len(), n + 1);
        at_least("rows", rows.len(), places.len() * dim);
        at_least("table", table_range.len(), n * dim);
        if n == 0 {
            return Ok(());
        }
        kernels::add_rows_of_words(
            self,
            grid((n, 1, 1), (dim.next_multiple_of(32).min(512), 1)),
            table.at_mut(table_range),
            rows.all(),
            ints.at(words),
            ints.at(starts),
            ints.at(places),
            int(dim),
        )
    }
}
