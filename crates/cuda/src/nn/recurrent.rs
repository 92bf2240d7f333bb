//! Recurrent layers, and the choice of the next word.

use crate::device::{for_each, grid, launch};
use crate::optimizer::StepResult;
use crate::{Array, CudaError, Device};
use cudarc::driver::{CudaView, PushKernelArg};
use std::ops::Range;

/// A part of an array that is read.
type Part<'a> = (&'a Array<f32>, Range<usize>);

/// A part of an array that is written.
type PartMut<'a> = (&'a mut Array<f32>, Range<usize>);

/// Which streams forget all before a step: marks, one for each stream from a place on, which are not 0 for these.
#[derive(Clone, Copy, Debug)]
pub struct Fresh<'a> {
    /// An array with the marks.
    pub marks: &'a Array<u32>,
    /// Where the marks of the step begin; no stream forgets if there is none.
    pub first: Option<usize>,
}

impl<'a> Fresh<'a> {
    fn parts(self, n: usize) -> (CudaView<'a, u32>, i32) {
        match self.first {
            Some(first) => (self.marks.at(first..first + n), 1),
            None => (self.marks.at(0..1), 0),
        }
    }
}

/// What a function of hidden units is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squash {
    /// The hyperbolic tangent.
    Tanh,
    /// The logistic function.
    Sigmoid,
}

/// Rows of the same word, whose sum is added to the word's.
#[derive(Clone, Debug)]
pub struct WordGroups<'a> {
    /// An array with all of the following.
    pub ints: &'a Array<u32>,
    /// Different words.
    pub words: Range<usize>,
    /// Where the rows of each word begin among `places`, and where those of the last one end.
    pub starts: Range<usize>,
    /// The rows of all words.
    pub places: Range<usize>,
}

impl Device {
    /// out = x, but 0 for fresh streams.
    ///
    /// # Panics
    /// If the parts are not rows of `dim` numbers for n streams.
    pub fn keep_rows(
        &self,
        out: PartMut<'_>,
        x: Part<'_>,
        fresh: Fresh<'_>,
        (n, dim): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(out.1.len() == n * dim && x.1.len() == n * dim, "a row for each stream");
        let (mut out, x, (fresh, has_fresh)) = (out.0.at_mut(out.1), x.0.at(x.1), fresh.parts(n));
        let (config, n, dim) = (for_each(n * dim), n as i32, dim as i32);
        launch!(self, "keep_rows", config, &mut out, &x, &fresh, &has_fresh, &n, &dim)
    }

    /// h ─▶ f(h), which is also what streams remember `next`, unless they are fresh then.
    ///
    /// # Panics
    /// If the parts are not rows of `dim` numbers for n streams.
    pub fn elman_step(
        &self,
        hidden: PartMut<'_>,
        next: PartMut<'_>,
        fresh: Fresh<'_>,
        squash: Squash,
        (n, dim): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(hidden.1.len() == n * dim && next.1.len() == n * dim, "a row for each stream");
        let (mut hidden, mut next) = (hidden.0.at_mut(hidden.1), next.0.at_mut(next.1));
        let ((fresh, has_fresh), config) = (fresh.parts(n), for_each(n * dim));
        let (n, dim, squash) = (n as i32, dim as i32, i32::from(squash == Squash::Sigmoid));
        launch!(
            self,
            "elman_step",
            config,
            &mut hidden,
            &mut next,
            &fresh,
            &has_fresh,
            &n,
            &dim,
            &squash
        )
    }

    /// δ = (`d_out` + later) f′(h). `later` comes from the next step, if there is one, and counts for streams that are
    /// not fresh in it.
    ///
    /// # Panics
    /// If the parts are not rows of `dim` numbers for n streams.
    pub fn elman_backward(
        &self,
        delta: PartMut<'_>,
        (d_out, hidden): (Part<'_>, Part<'_>),
        later: (&Array<f32>, bool),
        fresh: Fresh<'_>,
        squash: Squash,
        (n, dim): (usize, usize),
    ) -> Result<(), CudaError> {
        for len in [delta.1.len(), d_out.1.len(), hidden.1.len()] {
            assert_eq!(len, n * dim, "a row for each stream");
        }
        assert!(later.0.len() >= n * dim, "a row for each stream");
        let mut delta = delta.0.at_mut(delta.1);
        let (d_out, hidden) = (d_out.0.at(d_out.1), hidden.0.at(hidden.1));
        let ((fresh, has_fresh), has_later) = (fresh.parts(n), i32::from(later.1));
        let (config, squash) = (for_each(n * dim), i32::from(squash == Squash::Sigmoid));
        let (n, dim) = (n as i32, dim as i32);
        launch!(
            self,
            "elman_backward",
            config,
            &mut delta,
            &d_out,
            &later.0.0,
            &has_later,
            &fresh,
            &has_fresh,
            &hidden,
            &n,
            &dim,
            &squash
        )
    }

    /// One step of long short-term memory: sums without their bias ─▶ gates, output and tanh of the cell. `cells` are
    /// those before the step, then those after it; these and the output are what streams remember `next`, unless they
    /// are fresh then.
    ///
    /// # Panics
    /// If the parts are not rows for n streams, of 4 · `dim` numbers for gates and of `dim` for others.
    pub fn lstm_step(
        &self,
        gates: PartMut<'_>,
        (hidden, tanh_cell): (PartMut<'_>, PartMut<'_>),
        (next, cells): (PartMut<'_>, PartMut<'_>),
        bias: Part<'_>,
        fresh: Fresh<'_>,
        (n, dim): (usize, usize),
    ) -> Result<(), CudaError> {
        for len in [&hidden.1, &tanh_cell.1, &next.1].map(Range::len) {
            assert_eq!(len, n * dim, "a row for each stream");
        }
        assert!(gates.1.len() == 4 * n * dim && bias.1.len() == 4 * dim, "four gates");
        assert_eq!(cells.1.len(), 2 * n * dim, "cells before and after");
        let mut gates = gates.0.at_mut(gates.1);
        let (mut hidden, mut tanh_cell) =
            (hidden.0.at_mut(hidden.1), tanh_cell.0.at_mut(tanh_cell.1));
        let (mut next, mut cells) = (next.0.at_mut(next.1), cells.0.at_mut(cells.1));
        let (bias, (fresh, has_fresh)) = (bias.0.at(bias.1), fresh.parts(n));
        let (config, n, dim) = (for_each(n * dim), n as i32, dim as i32);
        launch!(
            self,
            "lstm_step",
            config,
            &mut gates,
            &mut hidden,
            &mut tanh_cell,
            &mut next,
            &mut cells,
            &bias,
            &fresh,
            &has_fresh,
            &n,
            &dim
        )
    }

    /// Gates ─▶ derivatives by what they are functions of; `later_cell` ─▶ what the step before gets of the derivatives
    /// by the cell. What is later comes from the next step, if there is one, and counts for streams that are not fresh
    /// in it.
    ///
    /// # Panics
    /// If the parts are not rows for n streams, of 4 · `dim` numbers for gates and of `dim` for others.
    pub fn lstm_backward(
        &self,
        gates: PartMut<'_>,
        d_out: Part<'_>,
        (later, later_cell, has_later): (&Array<f32>, &mut Array<f32>, bool),
        (previous_cell, tanh_cell): (Part<'_>, Part<'_>),
        fresh: Fresh<'_>,
        (n, dim): (usize, usize),
    ) -> Result<(), CudaError> {
        for len in [&d_out.1, &previous_cell.1, &tanh_cell.1].map(Range::len) {
            assert_eq!(len, n * dim, "a row for each stream");
        }
        assert!(gates.1.len() == 4 * n * dim, "four gates");
        assert!(later.len() >= n * dim && later_cell.len() >= n * dim, "a row for each stream");
        let (mut gates, d_out) = (gates.0.at_mut(gates.1), d_out.0.at(d_out.1));
        let (previous_cell, tanh_cell) =
            (previous_cell.0.at(previous_cell.1), tanh_cell.0.at(tanh_cell.1));
        let ((fresh, has_fresh), has_later) = (fresh.parts(n), i32::from(has_later));
        let (config, n, dim) = (for_each(n * dim), n as i32, dim as i32);
        launch!(
            self,
            "lstm_backward",
            config,
            &mut gates,
            &mut later_cell.0,
            &d_out,
            &later.0,
            &has_later,
            &fresh,
            &has_fresh,
            &previous_cell,
            &tanh_cell,
            &n,
            &dim
        )
    }

    /// Copies the first n numbers, each of which is dropped with probability `rate`, by the seed.
    ///
    /// # Panics
    /// If an array is too short.
    pub fn dropout(
        &self,
        out: &mut Array<f32>,
        x: &Array<f32>,
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        assert!(n <= out.len() && n <= x.len() && n < 1 << 31, "a place for each number");
        let (config, n) = (for_each(n), n as i32);
        launch!(self, "dropout", config, &mut out.0, &x.0, &n, &rate, &seed)
    }

    /// Drops some of the first n numbers; the same ones as [`Device::dropout`] by the same seed.
    ///
    /// # Panics
    /// If the array is too short.
    pub fn dropout_in_place(
        &self,
        x: &mut Array<f32>,
        n: usize,
        (rate, seed): (f32, u64),
    ) -> Result<(), CudaError> {
        assert!(n <= x.len() && n < 1 << 31, "a place for each number");
        let (config, n) = (for_each(n), n as i32);
        launch!(self, "dropout_in_place", config, &mut x.0, &n, &rate, &seed)
    }

    /// ln p of the target of each of n rows under the softmax of its logits plus the bias; if it `learns`, the
    /// derivatives of these by the logits take their place.
    ///
    /// # Panics
    /// If an array is too short.
    pub fn next_words(
        &self,
        logits: &mut Array<f32>,
        log_probs: &mut Array<f64>,
        bias: Part<'_>,
        targets: (&Array<u32>, Range<usize>),
        n: usize,
        learns: bool,
    ) -> Result<(), CudaError> {
        let n_words = bias.1.len();
        assert!(n * n_words <= logits.len() && n <= log_probs.len(), "whole rows");
        assert_eq!(targets.1.len(), n, "a target for each row");
        if n == 0 {
            return Ok(());
        }
        let (bias, targets) = (bias.0.at(bias.1), targets.0.at(targets.1));
        let (config, n_words, learns) =
            (grid((n, 1, 1), (512, 1)), n_words as i32, i32::from(learns));
        launch!(
            self,
            "next_words",
            config,
            &mut logits.0,
            &mut log_probs.0,
            &bias,
            &targets,
            &n_words,
            &learns
        )
    }

    /// Adds the sum of the rows of each word to the word's row of a table.
    ///
    /// # Panics
    /// If there are not as many groups as words.
    pub fn add_rows_of_words(
        &self,
        table: PartMut<'_>,
        rows: &Array<f32>,
        groups: &WordGroups<'_>,
        dim: usize,
    ) -> Result<(), CudaError> {
        let n = groups.words.len();
        assert_eq!(groups.starts.len(), n + 1, "where rows begin, and where they end");
        assert!(groups.places.len() * dim <= rows.len(), "whole rows");
        if n == 0 {
            return Ok(());
        }
        let mut table = table.0.at_mut(table.1);
        let at = |range: &Range<usize>| groups.ints.at(range.clone());
        let (words, starts, places) = (at(&groups.words), at(&groups.starts), at(&groups.places));
        let config = grid((n, 1, 1), (dim.next_multiple_of(32).min(512), 1));
        let dim = dim as i32;
        launch!(
            self,
            "add_rows_of_words",
            config,
            &mut table,
            &rows.0,
            &words,
            &starts,
            &places,
            &dim
        )
    }

    /// One plain step, unless its result is lost.
    ///
    /// # Panics
    /// If there is not one derivative for each weight.
    pub fn sgd(
        &self,
        weights: &mut Array<f32>,
        gradient: &Array<f32>,
        result: &StepResult,
        rate: f64,
    ) -> Result<(), CudaError> {
        assert_eq!(weights.len(), gradient.len(), "one for each weight");
        let (config, n, rate) = (for_each(weights.len()), weights.len() as i64, rate as f32);
        let result = result.array();
        launch!(self, "sgd", config, &mut weights.0, &gradient.0, &n, &result.0, &rate)
    }
}
