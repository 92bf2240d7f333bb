//! The likelihood of text: the gain in nats per token over independent words from a Gaussian with the same covariance.
//!
//! Let x be the filtered state before word i, and u_i = Cᵀ w_i. Then
//!
//! gain = −½ (ln det(I + G M) − u_iᵀ Θ u_i − 2 u_iᵀ (I − Θ G) A x + xᵀ Aᵀ (G − G Θ G) A x).

use crate::linalg::dense::{identity, product};
use crate::linalg::panel::{Panel, RightFactor, view, view_mut};
use crate::system::steady_state::{Dynamics, SteadyState};
use latens_corpus::{Sentences, WordId};
use latens_counts::Boundary;
use latens_math::linalg::{Accum, Mat, MatRef, matmul};
use latens_math::{Real, dot_wide};
use rayon::prelude::*;
use std::ops::{Range, RangeInclusive};

/// Smallest number of tokens per run. Runs are scored independently, so that threads share a long text.
const RUN: usize = 1024;

/// Smallest and largest number of tokens read before a run to find its state.
const WARM_UP: RangeInclusive<usize> = 128..=1 << 16;

/// Influence of earlier tokens on the state of a run that counts as forgotten.
const FORGOTTEN: f64 = 4e-13;

/// Number of tokens read before a run: the smallest power of two n ≥ 128 at which ‖Hⁿ‖ ≤ [`FORGOTTEN`], so that x_t =
/// H x_{t−1} + B u_t has forgotten the tokens before. A slow system has longer runs in proportion, up to a limit.
pub(crate) fn warm_up(steady: &SteadyState) -> usize {
    let (mut n, mut power) = (1, steady.h.clone());
    while n < *WARM_UP.start() || (n < *WARM_UP.end() && power.norm_l2() > FORGOTTEN) {
        power = product([power.as_ref(), power.as_ref()]);
        n *= 2;
    }
    n
}

/// Number of runs filtered together.
const LANES: usize = 16;

/// A part of a text that is scored independently: reading starts at `begin` with the state 0, scoring at `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    begin: usize,
    start: usize,
    end: usize,
}

impl Run {
    /// Runs that cover a text after a warm-up; the state is 0 at the start of each file or sentence.
    pub(crate) fn all(sentences: &Sentences, boundary: Boundary, warm_up: usize) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut begin = 0;
        let mut add = |length: usize| {
            Run::cut(begin..begin + length, warm_up, &mut runs);
            begin += length;
        };
        match boundary {
            Boundary::Stream => sentences.segments().for_each(|text| add(text.len())),
            Boundary::Sentence => sentences.iter().for_each(|text| add(text.len())),
        }
        runs
    }

    /// A single run over a whole text.
    #[cfg(test)]
    pub(crate) fn whole(n_tokens: usize) -> Run {
        Run { begin: 0, start: 0, end: n_tokens }
    }

    /// Appends runs that cover a range of consecutive tokens.
    pub(crate) fn cut(tokens: Range<usize>, warm_up: usize, runs: &mut Vec<Run>) {
        let length = RUN / WARM_UP.start() * warm_up;
        for start in tokens.clone().step_by(length) {
            let begin = start.saturating_sub(warm_up).max(tokens.start);
            runs.push(Run { begin, start, end: (start + length).min(tokens.end) });
        }
    }
}

/// Number of steps whose words are looked up together.
const STEPS: usize = 32;

/// Computes the gain of texts under a model.
pub(crate) struct TextGain<'a, T> {
    c: &'a Panel<T>,
    /// 1/√μ.
    scale: Vec<T>,
    /// The right factor of words: (I − Θ G) A, Θ and Bᵀ side by side.
    of_words: RightFactor<T>,
    /// The right factor of states: Aᵀ (G − G Θ G) A and Hᵀ side by side.
    of_states: RightFactor<T>,
    log_det: f64,
}

impl<'a, T: Real> TextGain<'a, T> {
    pub(crate) fn new(model: &Dynamics, steady: &SteadyState, c: &'a Panel<T>, mu: &[f64]) -> Self {
        let Dynamics { a, g, .. } = model;
        let SteadyState { theta, b, h, log_det, .. } = steady;
        let g_s = g - product([g.as_ref(), theta.as_ref(), g.as_ref()]);
        let reach = identity(model.dim()) - product([theta.as_ref(), g.as_ref()]);
        let cross = product([reach.as_ref(), a.as_ref()]);
        let square = product([a.transpose(), g_s.as_ref(), a.as_ref()]);
        TextGain {
            c,
            scale: mu.iter().map(|mu| T::of(1.0 / mu.sqrt())).collect(),
            of_words: side_by_side([cross.as_ref(), theta.as_ref(), b.transpose()]),
            of_states: side_by_side([square.as_ref(), h.transpose()]),
            log_det: *log_det,
        }
    }

    /// The sum of the gains of all tokens in the runs.
    pub(crate) fn of(&self, text: &[WordId], runs: &[Run]) -> f64 {
        // Groups of equal size, so that no small group is left over.
        let lanes = runs.len().div_ceil(runs.len().div_ceil(LANES).max(1)).max(1);
        let sums: Vec<f64> = runs.par_chunks(lanes).map(|runs| self.together(text, runs)).collect();
        sums.into_iter().sum()
    }

    /// The sum of the gains of a few runs that advance together.
    fn together(&self, text: &[WordId], runs: &[Run]) -> f64 {
        let (dim, n) = (self.c.n_cols(), runs.len());
        let n_steps = runs.iter().map(|run| run.end - run.begin).max().unwrap_or(0);
        let zeros = |len: usize| vec![T::zero(); len];
        let (mut x, mut by_states) = (zeros(n * dim), zeros(2 * n * dim));
        let (mut words, mut by_words) = (zeros(STEPS * n * dim), zeros(3 * STEPS * n * dim));
        let mut sum = 0.0;
        for first in (0..n_steps).step_by(STEPS) {
            self.read(text, runs, first, &mut words);
            multiply(&words, &self.of_words, dim, &mut by_words);
            let own = words.chunks_exact(n * dim).zip(by_words.chunks_exact(3 * n * dim));
            for (step, (words, by_words)) in (first..n_steps).zip(own) {
                multiply(&x, &self.of_states, dim, &mut by_states);
                for (i, run) in runs.iter().enumerate() {
                    let (x, words) = (&mut x[i * dim..][..dim], &words[i * dim..][..dim]);
                    let by_words = &by_words[3 * i * dim..][..3 * dim];
                    let (by_square, by_h) = by_states[2 * i * dim..][..2 * dim].split_at(dim);
                    if (run.start..run.end).contains(&(run.begin + step)) {
                        let terms = dot_wide(by_square, x)
                            - 2.0 * dot_wide(&by_words[..dim], x)
                            - dot_wide(&by_words[dim..2 * dim], words);
                        sum -= 0.5 * (self.log_det + terms);
                    }
                    let next = by_h.iter().zip(&by_words[2 * dim..]);
                    x.iter_mut().zip(next).for_each(|(x, (&by_h, &by_b))| *x = by_h + by_b);
                }
            }
        }
        sum
    }

    /// Looks up the words u_i = c_i / √μ_i of [`STEPS`] steps from `first` on, step by step.
    fn read(&self, text: &[WordId], runs: &[Run], first: usize, out: &mut [T]) {
        let dim = self.c.n_cols();
        for (step, out) in out.chunks_exact_mut(runs.len() * dim).enumerate() {
            for (run, out) in runs.iter().zip(out.chunks_exact_mut(dim)) {
                let at = run.begin + first + step;
                if at < run.end {
                    let word = text[at].index();
                    let (scale, row) = (self.scale[word], self.c.row(word));
                    out.iter_mut().zip(row).for_each(|(out, &value)| *out = value * scale);
                }
            }
        }
    }
}

fn side_by_side<T: Real, const N: usize>(parts: [MatRef<'_, f64>; N]) -> RightFactor<T> {
    let n = parts[0].ncols();
    let mut all = Mat::zeros(parts[0].nrows(), N * n);
    for (i, part) in parts.iter().enumerate() {
        all.subcols_mut(i * n, n).copy_from(part);
    }
    RightFactor::new(all.as_ref())
}

/// out = left · right, where the rows of `left` have `dim` numbers.
fn multiply<T: Real>(left: &[T], right: &RightFactor<T>, dim: usize, out: &mut [T]) {
    let (n, right) = (left.len() / dim, right.view());
    let out = view_mut(out, n, right.ncols(), right.ncols());
    matmul(out, Accum::Replace, view(left, n, dim, dim), right);
}
