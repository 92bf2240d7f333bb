//! The scaled recursions where all words have the same states: one matrix product per token position advances all
//! sentences at once.

use crate::blas::{Precision, Transposed};
use crate::device::{Array, CudaError, Device, at_least, exactly, grid, int, kernels};
use crate::nn::Columns;
use crate::shape::{ProductShape, Shape};
use std::ops::Range;

/// Sentences in lockstep, the longest first: all first tokens, then all second tokens, and so on.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    /// Number of sentences that have a first token, a second one, and so on.
    pub sizes: &'a [usize],
    /// Number of states.
    pub k: usize,
    /// Precision of the products.
    pub precision: Precision,
}

impl Steps<'_> {
    pub(super) fn n_sentences(&self) -> usize {
        self.sizes.first().copied().unwrap_or(0)
    }

    pub(super) fn n_tokens(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// The numbers of the tokens of each step.
    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = Range<usize>> {
        let k = self.k;
        let mut end = 0;
        let rows = self.sizes.iter().map(|size| {
            end += size * k;
            end - size * k..end
        });
        rows.collect::<Vec<_>>().into_iter()
    }

    /// Panics unless the longest sentences come first.
    #[track_caller]
    pub(super) fn check(&self) {
        assert!(self.k > 0, "`k` must be at least 1, got 0");
        let is_sorted = self.sizes.is_sorted_by(|before, after| before >= after);
        assert!(
            is_sorted && self.sizes.last() != Some(&0),
            "`sizes` must be positive and must not increase, got {:?}",
            self.sizes
        );
    }
}

impl Device {
    /// α of each token, scaled to a sum of 1, and ln p of each sentence. `predicted` is scratch.
    pub fn forward_in_steps(
        &self,
        (alpha, log_probs): (&mut Array<f32>, &mut Array<f64>),
        (local, start, transitions): (&Array<f32>, &Array<f32>, &Array<f32>),
        steps: Steps<'_>,
        predicted: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let Steps { k, precision, .. } = steps;
        steps.check();
        at_least("log_probs", log_probs.len(), steps.n_sentences());
        at_least("alpha", alpha.len(), steps.n_tokens() * k);
        at_least("local", local.len(), steps.n_tokens() * k);
        at_least("start", start.len(), steps.n_sentences().min(1) * k);
        self.reserve(predicted, steps.n_sentences() * k)?;
        let mut previous: Option<Range<usize>> = None;
        for rows in steps.rows() {
            let (n, is_first) = (rows.len() / k, previous.is_none());
            if let Some(previous) = previous {
                let from = (&*alpha, previous.start..previous.start + n * k, Transposed::No);
                let to = (transitions, 0..k * k, Transposed::No);
                let shape = ProductShape { n, m: k, k };
                self.multiply((predicted, 0..n * k), 0.0, from, to, shape, precision)?;
            }
            kernels::forward_rows(
                self,
                grid((n, 1, 1), (256, 1)),
                alpha.at_mut(rows.clone()),
                log_probs.all_mut(),
                if is_first { start.all() } else { predicted.all() },
                local.at(rows.clone()),
                i32::from(is_first),
                int(k),
            )?;
            previous = Some(rows);
        }
        Ok(())
    }

    /// β of each token, and b ∘ β scaled to a maximum of 1. `predicted` is scratch.
    pub fn backward_in_steps(
        &self,
        (betas, weighted): (&mut Array<f32>, &mut Array<f32>),
        (local, transitions): (&Array<f32>, &Array<f32>),
        steps: Steps<'_>,
        predicted: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let Steps { k, precision, .. } = steps;
        steps.check();
        at_least("betas", betas.len(), steps.n_tokens() * k);
        at_least("weighted", weighted.len(), steps.n_tokens() * k);
        at_least("local", local.len(), steps.n_tokens() * k);
        self.reserve(predicted, steps.n_sentences() * k)?;
        let mut next: Option<Range<usize>> = None;
        for rows in steps.rows().rev() {
            let n_predicted = next.as_ref().map_or(0, |next| next.len() / k);
            if let Some(next) = next {
                let from = (&*weighted, next, Transposed::No);
                let to = (transitions, 0..k * k, Transposed::Yes);
                let out = (&mut *predicted, 0..n_predicted * k);
                let shape = ProductShape { n: n_predicted, m: k, k };
                self.multiply(out, 0.0, from, to, shape, precision)?;
            }
            kernels::backward_rows(
                self,
                grid((rows.len() / k, 1, 1), (256, 1)),
                betas.at_mut(rows.clone()),
                weighted.at_mut(rows.clone()),
                predicted.all(),
                local.at(rows.clone()),
                int(n_predicted),
                int(k),
            )?;
            next = Some(rows);
        }
        Ok(())
    }

    /// Σ α_{t−1}/κ ⊗ v_t over the tokens t from the second step on. `previous` has the index of the token before each of
    /// them. `before` is scratch.
    pub fn ratios_in_steps(
        &self,
        ratios: &mut Array<f32>,
        (alpha, weighted): (&Array<f32>, &Array<f32>),
        previous: (&Array<u32>, Range<usize>),
        steps: Steps<'_>,
        before: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let Steps { k, precision, .. } = steps;
        steps.check();
        let (n_tokens, n_first) = (steps.n_tokens(), steps.n_sentences());
        let n = n_tokens - n_first;
        exactly("previous", previous.1.len(), n);
        if n == 0 {
            return Ok(());
        }
        at_least("ratios", ratios.len(), k * k);
        at_least("alpha", alpha.len(), n_tokens * k);
        at_least("weighted", weighted.len(), n_tokens * k);
        self.reserve(before, n * k)?;
        let (out, table) = ((&mut *before, Columns::all(k)), (alpha, 0..n_tokens * k));
        self.gather_rows(out, table, previous, Shape { rows: n, columns: k })?;
        let before = (&*before, 0..n * k, Transposed::Yes);
        let weighted = (weighted, n_first * k..n_tokens * k, Transposed::No);
        let shape = ProductShape { n: k, m: k, k: n };
        self.multiply((ratios, 0..k * k), 0.0, before, weighted, shape, precision)
    }
}
