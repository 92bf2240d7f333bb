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

/// Dropout: its rate, the seed of its mask, and the number of numbers after which the mask repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// Probability that a number becomes 0.
    pub rate: f32,
    /// Seed of the mask.
    pub seed: u64,
    /// Number of numbers after which the mask repeats; `None` if it does not.
    pub period: Option<usize>,
}

/// What the probabilities of words are computed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Only for scores.
    Score,
    /// Also for a gradient.
    Learn,
}

impl Dropout {
    /// Dropout that drops nothing.
    pub const NONE: Dropout = Dropout { rate: 0.0, seed: 0, period: None };

    fn period(self, n: usize) -> i32 {
        int(self.period.unwrap_or(n).max(1))
    }
}

impl Device {
    /// Copies numbers with dropout.
    pub fn dropout(
        &self,
        out: &mut Array<f32>,
        (x, range): (&Array<f32>, Range<usize>),
        drop: Dropout,
    ) -> Result<(), CudaError> {
        let n = range.len();
        at_least("out", out.len(), n);
        let Dropout { rate, seed, .. } = drop;
        let (x, period) = (x.at(range), drop.period(n));
        kernels::dropout(self, for_each(n), out.all_mut(), x, int(n), period, rate, seed)
    }

    /// Applies dropout to numbers. The same seed drops the same numbers as in [`Device::dropout`].
    pub fn dropout_in_place(
        &self,
        (x, range): (&mut Array<f32>, Range<usize>),
        drop: Dropout,
    ) -> Result<(), CudaError> {
        let (n, Dropout { rate, seed, .. }) = (range.len(), drop);
        let (x, period) = (x.at_mut(range), drop.period(n));
        kernels::dropout_in_place(self, for_each(n), x, int(n), period, rate, seed)
    }

    /// Drops the rows of some words, the same words in all rows. There is one word per row. Ignores the period.
    pub fn drop_words(
        &self,
        rows: &mut Array<f32>,
        (words, word_range): (&Array<u32>, Range<usize>),
        dim: usize,
        Dropout { rate, seed, .. }: Dropout,
    ) -> Result<(), CudaError> {
        let n = word_range.len();
        at_least("rows", rows.len(), n * dim);
        if n == 0 {
            return Ok(());
        }
        let config = grid((n, 1, 1), (dim.next_multiple_of(32).clamp(32, 512), 1));
        let words = words.at(word_range);
        kernels::drop_words(self, config, rows.all_mut(), words, int(dim), rate, seed)
    }

    /// Adds `scale` times the first n numbers of x to those of y.
    pub fn add_scaled(
        &self,
        y: &mut Array<f32>,
        x: &Array<f32>,
        n: usize,
        scale: f32,
    ) -> Result<(), CudaError> {
        at_least("y", y.len(), n);
        at_least("x", x.len(), n);
        kernels::add_scaled(self, for_each(n), y.all_mut(), x.all(), int(n), scale)
    }

    /// Draws a word for each of n rows from the softmax of its logits plus the bias. The seed determines the words.
    pub fn draw_words(
        &self,
        words: &mut Array<u32>,
        logits: &Array<f32>,
        (bias, bias_range): (&Array<f32>, Range<usize>),
        n: usize,
        seed: u64,
    ) -> Result<(), CudaError> {
        let n_words = bias_range.len();
        at_least("words", words.len(), n);
        at_least("logits", logits.len(), n * n_words);
        assert!(n_words > 0, "there must be at least one word");
        if n == 0 {
            return Ok(());
        }
        let (config, bias) = (grid((n, 1, 1), (512, 1)), bias.at(bias_range));
        kernels::draw_words(self, config, words.all_mut(), logits.all(), bias, int(n_words), seed)
    }

    /// ln p of the target of each of n rows under the softmax of its logits plus the bias. To learn, the derivatives
    /// of ln p with respect to the logits replace the logits.
    pub fn next_words(
        &self,
        logits: &mut Array<f32>,
        log_probs: &mut Array<f64>,
        (bias, bias_range): (&Array<f32>, Range<usize>),
        (targets, target_range): (&Array<u32>, Range<usize>),
        n: usize,
        purpose: Purpose,
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
            i32::from(purpose == Purpose::Learn),
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
