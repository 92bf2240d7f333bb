//! The scaled recursions, forward and backward, over parts of a batch.

use crate::recursion::expected_counts::Engine;
use crate::tables::probability_tables::Tables;
use faer::{Accum, MatMut, MatRef, Par};
use latens_math::{BlockRef, Real};
use latens_nn::multiply;
use rayon::prelude::*;

/// How many parts of a batch are worked on side by side. It is fixed, so that the result does not depend on
/// the number of threads.
const N_PARTS: usize = 4;

impl<T: Real> Engine<T> {
    /// Cuts the batch into parts of whole sentences; with one cluster there is one part, since then all
    /// sentences share one product that is itself divided among threads.
    fn parts(&self, tables: &Tables<T>) -> (Vec<std::ops::Range<usize>>, Par) {
        let n_sentences = self.offsets.len() - 1;
        if tables.is_dense() {
            return (std::iter::once(0..n_sentences).collect(), Par::rayon(0));
        }
        let n_parts = N_PARTS.min(n_sentences).max(1);
        let cut = |part: usize| part * n_sentences / n_parts;
        ((0..n_parts).map(|part| cut(part)..cut(part + 1)).collect(), Par::Seq)
    }

    /// Fills α, and returns ln p of each sentence, NaN where logarithms are needed.
    pub(crate) fn forward(&mut self, tables: &Tables<T>) -> Vec<f64> {
        let (parts, par) = self.parts(tables);
        let mut alpha = std::mem::take(&mut self.alpha);
        let pieces = self.split(&mut alpha, &parts);
        let log_probs = parts
            .par_iter()
            .zip(pieces)
            .map(|(part, alpha)| self.forward_part(tables, part.clone(), alpha, par));
        let log_probs = log_probs.collect::<Vec<_>>().concat();
        self.alpha = alpha;
        log_probs
    }

    fn forward_part(
        &self,
        tables: &Tables<T>,
        sentences: std::ops::Range<usize>,
        alpha: &mut [T],
        par: Par,
    ) -> Vec<f64> {
        let first = self.places[self.offsets[sentences.start]];
        let range = |at: usize| self.places[at] - first..self.places[at + 1] - first;
        let smallest_share = smallest_share(tables);
        let mut log_probs = vec![0.0f64; sentences.len()];
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let longest = sentences.clone().map(|s| self.len(s)).max().unwrap_or(0);
        for step in 0..longest {
            let active = sentences
                .clone()
                .zip(&log_probs)
                .filter(|(s, log_prob)| self.len(*s) > step && !log_prob.is_nan());
            let members = active.map(|(s, _)| {
                let at = self.offsets[s] + step;
                (if step == 0 { 0 } else { self.groups[at - 1] }, self.groups[at], at, s)
            });
            for (from, to, members) in groups(&mut members.collect::<Vec<_>>()) {
                let k = tables.states(to).len(tables.k);
                if step > 0 {
                    left.clear();
                    for &(_, _, at, _) in members {
                        left.extend_from_slice(&alpha[range(at - 1)]);
                    }
                    right.resize(members.len() * k, T::zero());
                    forward_product(Pair { tables, from, to }, &left, &mut right, par);
                }
                for (i, &(_, _, at, s)) in members.iter().enumerate() {
                    let (local, alpha) = (self.local_of(at), &mut alpha[range(at)]);
                    let scale = match step {
                        0 => product(&tables.pick(&tables.start, tables.states(to)), local, alpha),
                        _ => product(&right[i * k..(i + 1) * k], local, alpha),
                    };
                    // Against the word's likeliest state, so that the rounding of what comes in, and not
                    // how rare the word is, decides.
                    let enough = |scale: &f64| *scale >= smallest_share * largest(local).wide();
                    let scale = scale.filter(enough);
                    log_probs[s - sentences.start] += scale.map_or(f64::NAN, f64::ln);
                }
            }
        }
        log_probs
    }

    /// Fills γ and v = b ∘ β, and divides α by κ; marks sentences with NaN where logarithms are needed.
    pub(crate) fn backward(&mut self, tables: &Tables<T>, log_probs: &mut [f64]) {
        let (parts, par) = self.parts(tables);
        let (mut alpha, mut weighted) =
            (std::mem::take(&mut self.alpha), std::mem::take(&mut self.weighted));
        let mut nodes = std::mem::take(&mut self.nodes);
        let cut = |values| self.split(values, &parts);
        let pieces = cut(&mut alpha).into_iter().zip(cut(&mut weighted)).zip(cut(&mut nodes));
        let mut marks = Vec::new();
        let mut rest = log_probs;
        for part in &parts {
            let (head, tail) = rest.split_at_mut(part.len());
            marks.push(head);
            rest = tail;
        }
        let work: Vec<_> = parts.iter().cloned().zip(pieces).zip(marks).collect();
        work.into_par_iter().for_each(|((part, ((alpha, weighted), nodes)), log_probs)| {
            self.backward_part(tables, part, Piece { alpha, weighted, nodes }, log_probs, par);
        });
        (self.alpha, self.weighted, self.nodes) = (alpha, weighted, nodes);
    }

    fn backward_part(
        &self,
        tables: &Tables<T>,
        sentences: std::ops::Range<usize>,
        piece: Piece<'_, T>,
        log_probs: &mut [f64],
        par: Par,
    ) {
        let first = self.places[self.offsets[sentences.start]];
        let range = |at: usize| self.places[at] - first..self.places[at + 1] - first;
        let smallest_share = smallest_share(tables);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let ones = vec![T::one(); tables.k];
        let longest = sentences.clone().map(|s| self.len(s)).max().unwrap_or(0);
        for step in (0..longest).rev() {
            for s in sentences.clone().filter(|&s| self.len(s) == step + 1) {
                let at = self.offsets[s] + step;
                piece.nodes[range(at)].copy_from_slice(&piece.alpha[range(at)]);
                scaled_product(self.local_of(at), &ones, &mut piece.weighted[range(at)]);
            }
            let active = sentences
                .clone()
                .zip(&*log_probs)
                .filter(|(s, log_prob)| self.len(*s) > step + 1 && !log_prob.is_nan());
            let members = active.map(|(s, _)| {
                let at = self.offsets[s] + step;
                (self.groups[at], self.groups[at + 1], at, s)
            });
            for (from, to, members) in groups(&mut members.collect::<Vec<_>>()) {
                left.clear();
                for &(_, _, at, _) in members {
                    left.extend_from_slice(&piece.weighted[range(at + 1)]);
                }
                let k = tables.states(from).len(tables.k);
                right.resize(members.len() * k, T::zero());
                backward_product(Pair { tables, from, to }, &left, &mut right, par);
                for (i, &(_, _, at, s)) in members.iter().enumerate() {
                    let beta = &right[i * k..(i + 1) * k];
                    let (alpha, nodes) = (&mut piece.alpha[range(at)], &mut piece.nodes[range(at)]);
                    let total = product(alpha, beta, nodes);
                    let Some(total) = total.filter(|&total| total >= smallest_share) else {
                        log_probs[s - sentences.start] = f64::NAN;
                        continue;
                    };
                    let scale = T::of(1.0 / total);
                    alpha.iter_mut().for_each(|alpha| *alpha *= scale);
                    scaled_product(beta, self.local_of(at), &mut piece.weighted[range(at)]);
                }
            }
        }
    }

    pub(crate) fn local_of(&self, at: usize) -> &[T] {
        &self.local[self.places[at]..self.places[at + 1]]
    }

    /// Cuts numbers of all tokens where parts of sentences begin.
    fn split<'v>(&self, values: &'v mut [T], parts: &[std::ops::Range<usize>]) -> Vec<&'v mut [T]> {
        let mut rest = values;
        let pieces = parts.iter().map(|part| {
            let n = self.places[self.offsets[part.end]] - self.places[self.offsets[part.start]];
            rest.split_off_mut(..n).expect("parts of all tokens")
        });
        pieces.collect()
    }
}

/// The parts of the arrays that belong to some sentences.
struct Piece<'a, T> {
    alpha: &'a mut [T],
    weighted: &'a mut [T],
    nodes: &'a mut [T],
}

/// A token by the groups of two neighbours: (group before, group, token, sentence).
pub(crate) type Member = (u32, u32, usize, usize);

/// Sorts tokens, and gives those that share both groups together.
pub(crate) fn groups(members: &mut [Member]) -> impl Iterator<Item = (usize, usize, &[Member])> {
    members.sort_unstable();
    let groups = members.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    groups.map(|members| (members[0].0 as usize, members[0].1 as usize, members))
}

/// The transitions between the states of two groups: a k × k block of the table, or picked out of it.
#[derive(Clone, Copy)]
struct Pair<'a, T> {
    tables: &'a Tables<T>,
    from: usize,
    to: usize,
}

impl<'a, T: Real> Pair<'a, T> {
    fn rows(self) -> BlockRef<'a, T> {
        let (k, n) = (self.tables.k, self.tables.n_states());
        BlockRef::new(&self.tables.transition, n, (self.from * k, k), (self.to * k, k))
    }

    /// The transitions, if they do not lie in the table as a block: each row after the other, and how many there
    /// are in a row.
    fn gathered(self) -> Option<(Vec<T>, usize)> {
        let Pair { tables, from, to } = self;
        if let Some(lists) = &tables.lists {
            return Some((tables.pairs(lists.of(from), lists.of(to)), lists.of(to).len()));
        }
        let states = |cluster: usize| cluster * tables.k..(cluster + 1) * tables.k;
        let factors = tables.factors.as_ref().filter(|_| tables.transition.is_empty())?;
        Some((factors.block(states(from), states(to)), tables.k))
    }

    fn matrix(self) -> MatRef<'a, T> {
        let (k, n) = (self.tables.k, self.tables.n_states());
        let all = MatRef::from_row_major_slice(&self.tables.transition[..], n, n);
        all.submatrix(self.from * k, self.to * k, k, k)
    }
}

fn whole<T: Real>(values: &[T], n_cols: usize) -> BlockRef<'_, T> {
    BlockRef::new(values, n_cols, (0, values.len() / n_cols), (0, n_cols))
}

/// out = left · block. Where there is one block only, many rows share it, and a general product is faster.
fn forward_product<T: Real>(pair: Pair<'_, T>, left: &[T], out: &mut [T], par: Par) {
    if let Some((values, n_cols)) = pair.gathered() {
        return whole(&values, n_cols).times_rows(left, out);
    }
    let (k, n) = (pair.tables.k, left.len() / pair.tables.k);
    if !pair.tables.is_dense() || n < 4 {
        return pair.rows().times_rows(left, out);
    }
    let out = MatMut::from_row_major_slice_mut(out, n, k);
    let left = MatRef::from_row_major_slice(left, n, k);
    multiply(out, Accum::Replace, left, pair.matrix(), par);
}

/// out = left · blockᵀ.
fn backward_product<T: Real>(pair: Pair<'_, T>, left: &[T], out: &mut [T], par: Par) {
    if let Some((values, n_cols)) = pair.gathered() {
        return whole(&values, n_cols).transposed_times_rows(left, out);
    }
    let (k, n) = (pair.tables.k, left.len() / pair.tables.k);
    if !pair.tables.is_dense() || n < 4 {
        return pair.rows().transposed_times_rows(left, out);
    }
    let out = MatMut::from_row_major_slice_mut(out, n, k);
    let left = MatRef::from_row_major_slice(left, n, k);
    multiply(out, Accum::Replace, left, pair.matrix().transpose(), par);
}

/// out = a ∘ b, scaled to a sum of one; returns what the sum was, unless it is too small.
fn product<T: Real>(a: &[T], b: &[T], out: &mut [T]) -> Option<f64> {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = a * b;
            }
            let sum = sum(out);
            if !(f64::MIN_POSITIVE..f64::MAX).contains(&sum) {
                return None;
            }
            let scale = T::of(1.0 / sum);
            out.iter_mut().for_each(|out| *out = without_dust(*out * scale));
            Some(sum)
        },
    )
}

/// What is smaller is taken for zero in α and β, so that no factor is a subnormal number, with which
/// processors are a hundred times slower.
const SMALLEST: f64 = 1e-30;

/// Below this share of the mass, what was taken for zero could be missed: k·10⁻²⁸ at most, or k·10⁻²⁰ where small
/// transitions are taken for zero too.
fn smallest_share<T: Real>(tables: &Tables<T>) -> f64 {
    if tables.is_dense() { 1e-14 } else { 1e-22 }
}

/// Transitions that are smaller are taken for zero where all words share all states: a general product
/// then adds them up, in which sums could be subnormal; and there, other transitions outweigh them.
pub(crate) const SMALLEST_TRANSITION: f64 = 1e-20;

#[inline(always)]
fn without_dust<T: Real>(value: T) -> T {
    if value < T::of(SMALLEST) { T::zero() } else { value }
}

#[inline(always)]
fn sum<T: Real>(values: &[T]) -> f64 {
    /// How many sums run side by side, as the compiler may not reorder additions.
    const LANES: usize = 16;
    let mut lanes = [T::zero(); LANES];
    values.chunks(LANES).for_each(|chunk| add(&mut lanes, chunk));
    lanes.iter().map(|lane| lane.wide()).sum()
}

#[inline(always)]
fn largest<T: Real>(values: &[T]) -> T {
    values.iter().fold(T::zero(), |max, &value| if value > max { value } else { max })
}

/// out = a ∘ b, scaled to a maximum of one.
fn scaled_product<T: Real>(a: &[T], b: &[T], out: &mut [T]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let mut max = T::zero();
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = a * b;
                max = if *out > max { *out } else { max };
            }
            let scale = T::one() / max;
            out.iter_mut().for_each(|out| *out = without_dust(*out * scale));
        },
    );
}

#[inline(always)]
pub(crate) fn add<T: Real>(sums: &mut [T], values: &[T]) {
    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += value);
}
