//! SIMD kernels for the emissions of a model with short state lists.

use crate::space::kept_lists::KeptLists;
use crate::tables::emission::vectors::Vectors;
use latens_math::Real;
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// Computes the logits of some slots with SIMD.
pub(crate) struct Logits<'a, T> {
    pub(crate) lists: &'a KeptLists,
    pub(crate) vectors: Vectors<'a, T>,
    pub(crate) slots: Range<usize>,
    pub(crate) logits: &'a mut [T],
}

impl<T: Real> WithSimd for Logits<'_, T> {
    type Output = ();

    /// Processes four states at a time, so that they share the loads of the word vector.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Logits { lists, vectors, slots, logits } = self;
        let mut rest = logits;
        for slot in slots {
            let (word, bias, states) = (vectors.word(slot), vectors.bias[slot], lists.of(slot));
            let (row, others) = std::mem::take(&mut rest).split_at_mut(states.len());
            rest = others;
            let (fours, last) = states.as_chunks::<4>();
            let (rows, last_row) = row.as_chunks_mut::<4>();
            for (&[a, b, c, d], row) in fours.iter().zip(rows) {
                let [a, b, c, d] = [a as usize, b as usize, c as usize, d as usize];
                let states =
                    [vectors.state(a), vectors.state(b), vectors.state(c), vectors.state(d)];
                *row = dots(word, states);
            }
            for (&state, logit) in last.iter().zip(last_row) {
                [*logit] = dots(word, [vectors.state(state as usize)]);
            }
            for logit in row {
                *logit += bias;
            }
        }
    }
}

/// Adds the derivatives of some slots to those of words, biases and states, with SIMD.
pub(crate) struct AddGradients<'a, T> {
    pub(crate) lists: &'a KeptLists,
    pub(crate) vectors: Vectors<'a, T>,
    pub(crate) slots: Range<usize>,
    /// With respect to the logits.
    pub(crate) derivatives: &'a [T],
    /// With respect to word vectors, biases and state vectors.
    pub(crate) out: (&'a mut [T], &'a mut [T], &'a mut [T]),
}

/// Number of vector columns per pass, so that the columns of all states stay in the core's own cache.
const WIDTH: usize = 64;

impl<T: Real> WithSimd for AddGradients<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let AddGradients { lists, vectors, slots, derivatives, out } = self;
        let ((d_words, d_bias, d_states), dim) = (out, vectors.dim);
        for first in (0..dim).step_by(WIDTH) {
            let end = (first + WIDTH).min(dim);
            let mut rest = derivatives;
            for (i, slot) in slots.clone().enumerate() {
                let states = lists.of(slot);
                let (row, others) = rest.split_at(states.len());
                rest = others;
                let word = &vectors.word(slot)[first..end];
                let d_word = &mut d_words[i * dim + first..i * dim + end];
                for (&state, &derivative) in states.iter().zip(row) {
                    let state = state as usize;
                    let vector = &vectors.state(state)[first..end];
                    let d_state = &mut d_states[state * dim + first..state * dim + end];
                    add_scaled(d_word, derivative, vector);
                    add_scaled(d_state, derivative, word);
                }
                if first == 0 {
                    for &derivative in row {
                        d_bias[i] += derivative;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn dots<T: Real, const N: usize>(word: &[T], vectors: [&[T]; N]) -> [T; N] {
    /// Number of partial sums: the compiler may not reorder additions by itself.
    const LANES: usize = 16;
    let (words, rest) = word.as_chunks::<LANES>();
    let mut lanes = [[T::zero(); LANES]; N];
    for (at, word) in words.iter().enumerate() {
        for n in 0..N {
            let vector = &vectors[n][at * LANES..(at + 1) * LANES];
            for i in 0..LANES {
                lanes[n][i] += word[i] * vector[i];
            }
        }
    }
    let mut sums = [T::zero(); N];
    for n in 0..N {
        sums[n] = total(lanes[n]);
        for (&a, &b) in rest.iter().zip(&vectors[n][words.len() * LANES..]) {
            sums[n] += a * b;
        }
    }
    sums
}

/// The sum of 16 numbers as a balanced tree.
#[inline(always)]
fn total<T: Real>(mut lanes: [T; 16]) -> T {
    for n in [8, 4, 2, 1] {
        for i in 0..n {
            let other = lanes[i + n];
            lanes[i] += other;
        }
    }
    lanes[0]
}

/// sums += factor · values. Slices of exactly `WIDTH` take a path that the compiler vectorizes.
#[inline(always)]
pub(crate) fn add_scaled<T: Real>(sums: &mut [T], factor: T, values: &[T]) {
    if let (Ok(sums), Ok(values)) =
        (<&mut [T; WIDTH]>::try_from(&mut *sums), <&[T; WIDTH]>::try_from(values))
    {
        for i in 0..WIDTH {
            sums[i] += factor * values[i];
        }
        return;
    }
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum += factor * value;
    }
}
