//! How well a model explains text: nats a token more than independent words would have, of a Gaussian with the
//! same covariance.
//!
//! With the filtered state x before a word i, p = A x, and u_i = Cᵀ w_i,
//!
//! gain = −½ (ln det(I + G M) − u_iᵀ Θ u_i − 2 u_iᵀ (I − Θ G) A x + xᵀ Aᵀ (G − G Θ G) A x).

use crate::dense::{identity, product};
use crate::panel::{Panel, narrow, view, view_mut};
use crate::steady::{Dynamics, Steady};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use latens_corpus::{Sentences, WordId};
use latens_counts::Boundary;
use latens_math::Real;
use rayon::prelude::*;
use std::ops::Range;

/// How many tokens are scored after a start of their own, so that long texts are shared out to threads.
const RUN: usize = 1024;

/// How many tokens before a run are read for its state. States forget: with a radius of 0.8, 4·10⁻¹³ is left
/// of what came before.
const WARM_UP: usize = 128;

/// So many runs are filtered together.
const LANES: usize = 16;

/// A part of a text that is scored apart: reading begins at `begin` with the state 0, scoring at `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    begin: usize,
    start: usize,
    end: usize,
}

impl Run {
    /// All tokens of a text, from the state 0 at the start of each file or sentence on.
    pub(crate) fn all(sentences: &Sentences, boundary: Boundary) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut begin = 0;
        let mut add = |length: usize| {
            Run::cut(begin..begin + length, &mut runs);
            begin += length;
        };
        match boundary {
            Boundary::Stream => sentences.segments().for_each(|text| add(text.len())),
            Boundary::Sentence => sentences.iter().for_each(|text| add(text.len())),
        }
        runs
    }

    /// A whole text in one piece.
    #[cfg(test)]
    pub(crate) fn whole(n_tokens: usize) -> Run {
        Run { begin: 0, start: 0, end: n_tokens }
    }

    /// Cuts tokens that follow each other into runs.
    pub(crate) fn cut(tokens: Range<usize>, runs: &mut Vec<Run>) {
        for start in tokens.clone().step_by(RUN) {
            let begin = start.saturating_sub(WARM_UP).max(tokens.start);
            runs.push(Run { begin, start, end: (start + RUN).min(tokens.end) });
        }
    }
}

/// Scores text under a model.
pub(crate) struct TextGain<'a, T> {
    c: &'a Panel<T>,
    /// 1/√μ.
    scale: Vec<T>,
    /// Hᵀ, Bᵀ and what the terms above need, as factors on the right.
    h: Mat<T>,
    b: Mat<T>,
    theta: Mat<T>,
    cross: Mat<T>,
    square: Mat<T>,
    log_det: f64,
}

impl<'a, T: Real> TextGain<'a, T> {
    pub(crate) fn new(model: &Dynamics, steady: &Steady, c: &'a Panel<T>, mu: &[f64]) -> Self {
        let Dynamics { a, g, .. } = model;
        let Steady { theta, b, h, log_det, .. } = steady;
        let g_s = g - product([g.as_ref(), theta.as_ref(), g.as_ref()]);
        let reach = identity(model.dim()) - product([theta.as_ref(), g.as_ref()]);
        TextGain {
            c,
            scale: mu.iter().map(|mu| T::of(1.0 / mu.sqrt())).collect(),
            h: narrow(h.transpose()),
            b: narrow(b.transpose()),
            theta: narrow(theta.as_ref()),
            cross: narrow(product([reach.as_ref(), a.as_ref()]).as_ref()),
            square: narrow(product([a.transpose(), g_s.as_ref(), a.as_ref()]).as_ref()),
            log_det: *log_det,
        }
    }

    /// The sum of the gains of all tokens of the runs.
    pub(crate) fn of(&self, text: &[WordId], runs: &[Run]) -> f64 {
        let sums: Vec<f64> = runs.par_chunks(LANES).map(|runs| self.together(text, runs)).collect();
        sums.into_iter().sum()
    }

    /// The gains of a few runs, which take their steps together.
    fn together(&self, text: &[WordId], runs: &[Run]) -> f64 {
        let (dim, n) = (self.c.n_cols(), runs.len());
        let n_steps = runs.iter().map(|run| run.end - run.begin).max().unwrap_or(0);
        let mut x = vec![T::zero(); n * dim];
        let [mut next, mut words] = [x.clone(), x.clone()];
        let [mut by_cross, mut by_theta, mut by_square] = [x.clone(), x.clone(), x.clone()];
        let mut sum = 0.0;
        for step in 0..n_steps {
            for (run, words) in runs.iter().zip(words.chunks_exact_mut(dim)) {
                if run.begin + step < run.end {
                    self.word(text[run.begin + step], words);
                }
            }
            times_rows(&words, &self.cross, n, &mut by_cross);
            times_rows(&words, &self.theta, n, &mut by_theta);
            times_rows(&x, &self.square, n, &mut by_square);
            for (i, run) in runs.iter().enumerate() {
                if (run.start..run.end).contains(&(run.begin + step)) {
                    let lane = i * dim..(i + 1) * dim;
                    let x = &x[lane.clone()];
                    let terms = dot(&by_square[lane.clone()], x)
                        - 2.0 * dot(&by_cross[lane.clone()], x)
                        - dot(&by_theta[lane.clone()], &words[lane]);
                    sum -= 0.5 * (self.log_det + terms);
                }
            }
            times_rows(&x, &self.h, n, &mut next);
            add_times_rows(&words, &self.b, n, &mut next);
            std::mem::swap(&mut x, &mut next);
        }
        sum
    }

    /// u_i = c_i / √μ_i.
    fn word(&self, word: WordId, out: &mut [T]) {
        let (scale, row) = (self.scale[word.index()], self.c.row(word.index()));
        out.iter_mut().zip(row).for_each(|(out, &value)| *out = value * scale);
    }
}

fn times_rows<T: Real>(left: &[T], right: &Mat<T>, n: usize, out: &mut [T]) {
    rows_into(left, right, n, Accum::Replace, out);
}

fn add_times_rows<T: Real>(left: &[T], right: &Mat<T>, n: usize, out: &mut [T]) {
    rows_into(left, right, n, Accum::Add, out);
}

fn rows_into<T: Real>(left: &[T], right: &Mat<T>, n: usize, accum: Accum, out: &mut [T]) {
    let dim = right.nrows();
    let (left, out) = (view(left, n, dim, dim), view_mut(out, n, dim, dim));
    matmul(out, accum, left, right.as_ref(), T::one(), Par::Seq);
}

fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| a.wide() * b.wide()).sum()
}
