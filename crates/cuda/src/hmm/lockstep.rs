//! The scaled recursions where all words have the same states: a product of matrices for each token of the sentences.

use crate::device::{grid, launch};
use crate::{Array, Columns, CudaError, Device, Precision, Transposed};
use cudarc::driver::PushKernelArg;
use std::ops::Range;

/// Sentences side by side, the longest first: all first tokens, then all second tokens, and so on.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    /// How many sentences have a first token, a second one, ….
    pub sizes: &'a [usize],
    /// How many states there are.
    pub k: usize,
    /// How exactly products are computed.
    pub precision: Precision,
}

impl Steps<'_> {
    fn n_tokens(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// The numbers of the tokens of each step.
    fn rows(&self) -> impl DoubleEndedIterator<Item = Range<usize>> {
        let k = self.k;
        let mut end = 0;
        let rows = self.sizes.iter().map(|size| {
            end += size * k;
            end - size * k..end
        });
        rows.collect::<Vec<_>>().into_iter()
    }
}

impl Device {
    /// α of each token, scaled to a sum of one, and ln p of each sentence. `predicted` is scratch.
    pub fn forward_in_steps(
        &self,
        (alpha, log_probs): (&mut Array<f32>, &mut Array<f64>),
        (local, start, transitions): (&Array<f32>, &Array<f32>, &Array<f32>),
        steps: Steps<'_>,
        predicted: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let Steps { sizes, k, precision } = steps;
        assert!(sizes.first().is_none_or(|&n| n <= log_probs.len()), "a number for each sentence");
        assert!(steps.n_tokens() * k <= alpha.len().min(local.len()), "k numbers a token");
        self.reserve(predicted, sizes.first().map_or(0, |n| n * k))?;
        let mut last: Option<Range<usize>> = None;
        for rows in steps.rows() {
            let n = rows.len() / k;
            let is_first = i32::from(last.is_none());
            if let Some(last) = last {
                let from = (&*alpha, last.start..last.start + n * k, Transposed::No);
                let to = (transitions, 0..k * k, Transposed::No);
                self.multiply((predicted, 0..n * k), 0.0, from, to, (n, k, k), precision)?;
            }
            let from = if is_first == 1 { start } else { &*predicted };
            let (config, k) = (grid((n, 1, 1), (256, 1)), k as i32);
            let words = local.at(rows.clone());
            let mut out = alpha.at_mut(rows.clone());
            let log_probs = &mut log_probs.0;
            launch!(
                self,
                "forward_rows",
                config,
                &mut out,
                log_probs,
                &from.0,
                &words,
                &is_first,
                &k
            )?;
            last = Some(rows);
        }
        Ok(())
    }

    /// β of each token, and b ∘ β, scaled to a maximum of one. `predicted` is scratch.
    pub fn backward_in_steps(
        &self,
        (betas, weighted): (&mut Array<f32>, &mut Array<f32>),
        (local, transitions): (&Array<f32>, &Array<f32>),
        steps: Steps<'_>,
        predicted: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let Steps { sizes, k, precision } = steps;
        for array in [&*betas, weighted, local] {
            assert!(steps.n_tokens() * k <= array.len(), "k numbers a token");
        }
        self.reserve(predicted, sizes.first().map_or(0, |n| n * k))?;
        let mut next: Option<Range<usize>> = None;
        for rows in steps.rows().rev() {
            let n_predicted = next.as_ref().map_or(0, |next| next.len() / k);
            if let Some(next) = next {
                let from = (&*weighted, next, Transposed::No);
                let to = (transitions, 0..k * k, Transposed::Yes);
                let (out, sizes) = ((&mut *predicted, 0..n_predicted * k), (n_predicted, k, k));
                self.multiply(out, 0.0, from, to, sizes, precision)?;
            }
            let config = grid((rows.len() / k, 1, 1), (256, 1));
            let (n_predicted, k) = (n_predicted as i32, k as i32);
            let words = local.at(rows.clone());
            let (mut betas, mut out) = (betas.at_mut(rows.clone()), weighted.at_mut(rows.clone()));
            launch!(
                self,
                "backward_rows",
                config,
                &mut betas,
                &mut out,
                &predicted.0,
                &words,
                &n_predicted,
                &k
            )?;
            next = Some(rows);
        }
        Ok(())
    }

    /// Σ α_{t−1}/κ ⊗ v_t over the tokens from the second step on; `previous` has the number of the token before each.
    /// `before` is scratch.
    pub fn ratios_in_steps(
        &self,
        ratios: &mut Array<f32>,
        (alpha, weighted): (&Array<f32>, &Array<f32>),
        previous: (&Array<u32>, Range<usize>),
        steps: Steps<'_>,
        before: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let Steps { sizes, k, precision } = steps;
        let (n_tokens, n_first) = (steps.n_tokens(), sizes.first().copied().unwrap_or(0));
        let n = n_tokens - n_first;
        assert_eq!(n, previous.1.len(), "a token before each");
        if n == 0 {
            return Ok(());
        }
        assert!(n_tokens * k <= alpha.len().min(weighted.len()), "k numbers a token");
        self.reserve(before, n * k)?;
        let (out, table) = ((&mut *before, Columns::all(k)), (alpha, 0..n_tokens * k));
        self.gather_rows(out, table, previous, (n, k))?;
        let before = (&*before, 0..n * k, Transposed::Yes);
        let weighted = (weighted, n_first * k..n_tokens * k, Transposed::No);
        self.multiply((ratios, 0..k * k), 0.0, before, weighted, (k, k, n), precision)
    }

    /// β of n tokens ─▶ γ, and α ─▶ α/κ.
    pub fn join_passes(
        &self,
        alpha: &mut Array<f32>,
        nodes: &mut Array<f32>,
        (n, k): (usize, usize),
    ) -> Result<(), CudaError> {
        assert!(n * k <= alpha.len().min(nodes.len()), "k numbers a token");
        let (config, n, k) = (crate::layers::warps(n), n as i32, k as i32);
        launch!(self, "join_passes", config, &mut alpha.0, &mut nodes.0, &n, &k)
    }
}
