//! Emission probabilities where every word has a list of states of its own, and their gradient. It is
//! `crate::tables::emission` without what is zero: a softmax runs over the words in whose lists a state is.

use crate::recursion::expected_counts::Expected;
use crate::space::kept_lists::KeptLists;
use crate::tables::emission::{Gradients, SMALLEST_PROBABILITY, Vectors};
use crate::tables::probability_tables::Kept;
use crate::tables::transition::without_dust;
use latens_math::Real;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// How many slots one thread takes at a time; sums are made of as many whatever the number of threads.
const SLOTS: usize = 256;

/// Into so many parts the slots are cut that add to the derivatives of all states, each with a copy of its own.
const N_COPIES: usize = 8;

/// Overwrites `out` with b: for each slot the states of its list.
pub(crate) fn forward<T: Real>(
    lists: &KeptLists,
    n_states: usize,
    vectors: Vectors<'_, T>,
    out: &mut Vec<T>,
) {
    out.resize(lists.n_values(), T::zero());
    lists.cut(SLOTS, out).into_par_iter().for_each(|(slots, logits)| {
        pulp::Arch::new().dispatch(Logits { lists, vectors, slots, logits });
    });
    normalize(lists, n_states, out);
}

/// The same where `logits` writes the logits of a slot, given the states of its list.
pub(crate) fn forward_of_logits<T: Real>(
    lists: &KeptLists,
    kept: &Kept,
    out: &mut Vec<T>,
    logits: impl Fn(usize, &[u32], &mut [T]) + Sync,
) {
    out.resize(lists.n_values(), T::zero());
    lists.cut(SLOTS, out).into_par_iter().for_each(|part| {
        for (slot, states, row) in lists.each(part) {
            let states: Vec<u32> = states.iter().map(|&i| kept.states[i as usize]).collect();
            logits(slot, &states, row);
        }
    });
    normalize(lists, kept.states.len(), out);
}

/// Logits ─▶ probabilities.
fn normalize<T: Real>(lists: &KeptLists, n_states: usize, values: &mut [T]) {
    let maxima =
        reduce(lists, values, vec![T::neg_infinity(); n_states], larger, |part, maxima| {
            for (_, states, row) in lists.each(part) {
                for (&mut logit, &state) in row.iter_mut().zip(states) {
                    maxima[state as usize] = larger(maxima[state as usize], logit);
                }
            }
        });
    let sums = reduce(
        lists,
        values,
        vec![T::zero(); n_states],
        |a, b| a + b,
        |part, sums| {
            for (_, states, row) in lists.each(part) {
                for (value, &state) in row.iter_mut().zip(states) {
                    *value -= maxima[state as usize];
                }
                exp(row);
                for (&mut value, &state) in row.iter_mut().zip(states) {
                    sums[state as usize] += value;
                }
            }
        },
    );
    let (scales, floor): (Vec<T>, T) =
        (sums.iter().map(|&sum| T::one() / sum).collect(), T::of(SMALLEST_PROBABILITY));
    lists.cut(SLOTS, values).into_par_iter().for_each(|part| {
        for (_, states, row) in lists.each(part) {
            for (value, &state) in row.iter_mut().zip(states) {
                let b = *value * scales[state as usize];
                *value = if b < floor { floor } else { b };
            }
        }
    });
}

/// What is made of every part of the numbers, for each state, joined in the order of parts.
fn reduce<T: Real>(
    lists: &KeptLists,
    values: &mut [T],
    first: Vec<T>,
    join: impl Fn(T, T) -> T,
    one: impl Fn((Range<usize>, &mut [T]), &mut [T]) + Sync,
) -> Vec<T> {
    let parts = lists.cut(SLOTS, values).into_par_iter().map(|part| {
        let mut own = first.clone();
        one(part, &mut own);
        own
    });
    let parts: Vec<Vec<T>> = parts.collect();
    parts.iter().fold(first.clone(), |mut all, own| {
        all.iter_mut().zip(own).for_each(|(all, &own)| *all = join(*all, own));
        all
    })
}

/// The gradient of Σ ln p, as `crate::tables::emission::backward` has it.
pub(crate) fn backward<T: Real>(
    lists: &KeptLists,
    vectors: Vectors<'_, T>,
    table: &mut [T],
    expected: &Expected<T>,
    gradients: Gradients<'_, T>,
) {
    let (dim, n_states) = (vectors.dim, vectors.states.len() / vectors.dim);
    logit_gradient(lists, n_states, table, expected);
    let n_slots = lists.n_slots().div_ceil(N_COPIES).max(1);
    let work = lists.cut(n_slots, table).into_par_iter();
    let work = work
        .zip(gradients.words.par_chunks_mut(n_slots * dim))
        .zip(gradients.bias.par_chunks_mut(n_slots));
    let copies = work.map(|(((slots, derivatives), d_words), d_bias)| {
        let mut d_states = vec![T::zero(); n_states * dim];
        let out = (d_words, d_bias, &mut d_states[..]);
        pulp::Arch::new().dispatch(AddGradients { lists, vectors, slots, derivatives, out });
        d_states
    });
    let copies: Vec<Vec<T>> = copies.collect();
    gradients.states.par_chunks_mut(dim).enumerate().for_each(|(state, d_state)| {
        d_state.fill(T::zero());
        for copy in &copies {
            add_scaled(d_state, T::one(), &copy[state * dim..(state + 1) * dim]);
        }
    });
}

/// Overwrites the logits of some slots, in vectors of any length.
struct Logits<'a, T> {
    lists: &'a KeptLists,
    vectors: Vectors<'a, T>,
    slots: Range<usize>,
    logits: &'a mut [T],
}

impl<T: Real> WithSimd for Logits<'_, T> {
    type Output = ();

    /// Four states at a time, since they share the word's vector.
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

/// Adds the derivatives of some slots to those of their words, of the biases, and of all states, in vectors of any
/// length.
struct AddGradients<'a, T> {
    lists: &'a KeptLists,
    vectors: Vectors<'a, T>,
    slots: Range<usize>,
    /// By the logits.
    derivatives: &'a [T],
    out: (&'a mut [T], &'a mut [T], &'a mut [T]),
}

/// So many columns of vectors are worked on at a time: those of all states stay in a core's own cache.
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

/// b ─▶ G = N − n ∘ b.
pub(crate) fn logit_gradient<T: Real>(
    lists: &KeptLists,
    n_states: usize,
    table: &mut [T],
    expected: &Expected<T>,
) {
    let emitted = || {
        let mut rest = &expected.emission[..];
        expected.slots.iter().map(move |&slot| {
            let (counts, others) = rest.split_at(lists.of(slot as usize).len());
            rest = others;
            (slot as usize, counts)
        })
    };
    let mut totals = vec![T::zero(); n_states];
    for (slot, counts) in emitted() {
        let states = lists.of(slot).iter().zip(counts);
        states.for_each(|(&state, &count)| totals[state as usize] += count);
    }
    lists.cut(SLOTS, table).into_par_iter().for_each(|part| {
        for (_, states, row) in lists.each(part) {
            for (b, &state) in row.iter_mut().zip(states) {
                *b = without_dust(-totals[state as usize] * *b);
            }
        }
    });
    for (slot, counts) in emitted() {
        let row = table[lists.range(slot)].iter_mut();
        row.zip(counts).for_each(|(derivative, &count)| *derivative += count);
    }
}

#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

fn exp<T: Real>(values: &mut [T]) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || values.iter_mut().for_each(|value| *value = value.exp_of()),
    );
}

#[inline(always)]
fn dots<T: Real, const N: usize>(word: &[T], vectors: [&[T]; N]) -> [T; N] {
    /// How many sums run side by side, as the compiler may not reorder additions.
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

/// The sum of numbers, by halves.
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

/// In pieces of a known length where they can be, of which the compiler makes vectors.
#[inline(always)]
fn add_scaled<T: Real>(sums: &mut [T], factor: T, values: &[T]) {
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
