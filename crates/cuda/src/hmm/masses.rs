//! The probability of each token given those before it in its sentence.
//!
//! The recursions add up their logarithms. Here they are computed from α alone, all tokens at once.

use super::lockstep::Steps;
use super::recursion::{MAX_STATES, Sequences};
use crate::blas::Transposed;
use crate::device::{Array, CudaError, Device, at_least, grid, int, kernels};
use crate::shape::ProductShape;
use std::ops::Range;

impl Device {
    /// p(x_t | x_1 … x_{t−1}) of each token, from α with rows of any scale, b of tokens, the start probabilities and the
    /// blocks of transitions.
    pub fn token_masses(
        &self,
        masses: &mut Array<f64>,
        (alpha, local): (&Array<f32>, &Array<f32>),
        (start, blocks): (&Array<f32>, &Array<f32>),
        sequences: &Sequences<'_>,
        k: usize,
    ) -> Result<(), CudaError> {
        let Sequences { ints, offsets, clusters, block_of_pair, .. } = sequences;
        let n_tokens = sequences.n_tokens();
        sequences.check_tables((local, start, blocks), k);
        at_least("masses", masses.len(), n_tokens);
        at_least("alpha", alpha.len(), n_tokens * k);
        if n_tokens == 0 {
            return Ok(());
        }
        assert!(k <= MAX_STATES, "a token can have at most {MAX_STATES} states, got {k}");
        let mut config = grid((n_tokens, 1, 1), (k.next_multiple_of(32).min(512), 1));
        config.shared_mem_bytes = (k * size_of::<f32>()) as u32;
        kernels::token_masses(
            self,
            config,
            masses.all_mut(),
            alpha.all(),
            local.all(),
            start.all(),
            blocks.all(),
            ints.at(offsets.clone()),
            ints.at(clusters.clone()),
            ints.at(block_of_pair.clone()),
            int(sequences.n_sentences()),
            int(k),
        )
    }

    /// The same for sentences in lockstep. `predicted` is scratch.
    pub fn masses_in_steps(
        &self,
        masses: &mut Array<f64>,
        (alpha, local): (&Array<f32>, &Array<f32>),
        (start, transitions): (&Array<f32>, &Array<f32>),
        steps: Steps<'_>,
        predicted: &mut Array<f32>,
    ) -> Result<(), CudaError> {
        let Steps { k, precision, .. } = steps;
        steps.check();
        at_least("masses", masses.len(), steps.n_tokens());
        at_least("alpha", alpha.len(), steps.n_tokens() * k);
        at_least("local", local.len(), steps.n_tokens() * k);
        at_least("start", start.len(), steps.n_sentences().min(1) * k);
        self.reserve(predicted, steps.n_sentences() * k)?;
        let mut previous: Option<Range<usize>> = None;
        for rows in steps.rows() {
            let (n, is_first) = (rows.len() / k, previous.is_none());
            // The first tokens have none before them, and the kernel does not read this.
            let before = previous.map_or(rows.clone(), |rows| rows.start..rows.start + n * k);
            if !is_first {
                let from = (alpha, before.clone(), Transposed::No);
                let to = (transitions, 0..k * k, Transposed::No);
                let shape = ProductShape { n, m: k, k };
                self.multiply((&mut *predicted, 0..n * k), 0.0, from, to, shape, precision)?;
            }
            kernels::mass_rows(
                self,
                grid((n, 1, 1), (256, 1)),
                masses.at_mut(rows.start / k..rows.end / k),
                if is_first { start.all() } else { predicted.all() },
                alpha.at(before),
                local.at(rows.clone()),
                i32::from(is_first),
                int(k),
            )?;
            previous = Some(rows);
        }
        Ok(())
    }
}
