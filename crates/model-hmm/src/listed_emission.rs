//! Emission probabilities where every word has a list of states of its own, and their gradient. It is
//! `crate::emission` without what is zero: a softmax runs over the words in whose lists a state is.

use crate::emission::{Gradients, SMALLEST_PROBABILITY, Vectors};
use crate::expectations::Expected;
use crate::lists::KeptLists;
use crate::tables::Kept;
use crate::transition::without_dust;
use latens_math::Real;
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
    lists.cut(SLOTS, out).into_par_iter().for_each(|part| {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (slot, states, row) in lists.each(part) {
                    logits(&vectors, slot, states, row);
                }
            },
        );
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

/// The gradient of Σ ln p, as `crate::emission::backward` has it.
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
        let part = Part { lists, slots, derivatives, vectors };
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || part.add_gradients(d_words, d_bias, &mut d_states),
        );
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

/// Some slots, and the derivatives by their logits.
struct Part<'a, T> {
    lists: &'a KeptLists,
    slots: Range<usize>,
    derivatives: &'a [T],
    vectors: Vectors<'a, T>,
}

/// So many columns of vectors are worked on at a time: those of all states stay in a core's own cache.
const WIDTH: usize = 64;

impl<T: Real> Part<'_, T> {
    #[inline(always)]
    fn add_gradients(&self, d_words: &mut [T], d_bias: &mut [T], d_states: &mut [T]) {
        let dim = self.vectors.dim;
        for first in (0..dim).step_by(WIDTH) {
            let columns = first..(first + WIDTH).min(dim);
            for (i, (states, derivatives)) in self.rows().enumerate() {
                let word = &self.vectors.word(self.slots.start + i)[columns.clone()];
                let d_word = &mut d_words[i * dim..][columns.clone()];
                for (&state, &derivative) in states.iter().zip(derivatives) {
                    let state = state as usize;
                    let vector = &self.vectors.state(state)[columns.clone()];
                    let d_state = &mut d_states[state * dim..][columns.clone()];
                    add_both(derivative, (d_word, vector), (d_state, word));
                }
            }
        }
        for (d_bias, (_, derivatives)) in d_bias.iter_mut().zip(self.rows()) {
            *d_bias += derivatives.iter().copied().sum::<T>();
        }
    }

    /// The states of each slot, and the derivatives by their logits.
    #[inline(always)]
    fn rows(&self) -> impl Iterator<Item = (&[u32], &[T])> {
        let first = self.lists.range(self.slots.start).start;
        self.slots.clone().map(move |slot| {
            let range = self.lists.range(slot);
            (self.lists.of(slot), &self.derivatives[range.start - first..range.end - first])
        })
    }
}

/// Adds multiples of both vectors to the derivatives by the other, with loops of a known length where they can be:
/// the compiler makes vectors of those.
#[inline(always)]
fn add_both<T: Real>(factor: T, word: (&mut [T], &[T]), state: (&mut [T], &[T])) {
    let whole = (word.0.as_chunks_mut::<WIDTH>().0, word.1.as_chunks::<WIDTH>().0);
    if let ([d_word], [vector]) = whole
        && let ([d_state], [word]) =
            (state.0.as_chunks_mut::<WIDTH>().0, state.1.as_chunks::<WIDTH>().0)
    {
        for i in 0..WIDTH {
            d_word[i] += factor * vector[i];
            d_state[i] += factor * word[i];
        }
        return;
    }
    add_scaled(word.0, factor, word.1);
    add_scaled(state.0, factor, state.1);
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

/// The logits of a slot for the states of its list, four at a time, since they share the word's vector.
#[inline(always)]
fn logits<T: Real>(vectors: &Vectors<'_, T>, slot: usize, states: &[u32], row: &mut [T]) {
    let (word, bias) = (vectors.word(slot), vectors.bias[slot]);
    let state = |i: &u32| vectors.state(*i as usize);
    let (fours, rest) = states.as_chunks::<4>();
    let (rows, last) = row.as_chunks_mut::<4>();
    for (states, row) in fours.iter().zip(rows) {
        let [a, b, c, d] = states;
        *row = dots(word, [state(a), state(b), state(c), state(d)]);
    }
    for (i, logit) in rest.iter().zip(last) {
        [*logit] = dots(word, [state(i)]);
    }
    row.iter_mut().for_each(|logit| *logit += bias);
}

#[inline(always)]
fn dots<T: Real, const N: usize>(word: &[T], vectors: [&[T]; N]) -> [T; N] {
    /// How many sums run side by side, as the compiler may not reorder additions.
    const LANES: usize = 16;
    let (words, rest) = word.as_chunks::<LANES>();
    let mut lanes = [[T::zero(); LANES]; N];
    for (at, word) in words.iter().enumerate() {
        for (lanes, vector) in lanes.iter_mut().zip(&vectors) {
            let vector = &vector[at * LANES..(at + 1) * LANES];
            for i in 0..LANES {
                lanes[i] += word[i] * vector[i];
            }
        }
    }
    let mut sums = lanes.map(total);
    for (sum, vector) in sums.iter_mut().zip(vectors) {
        for (&a, &b) in rest.iter().zip(&vector[words.len() * LANES..]) {
            *sum += a * b;
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

#[inline(always)]
fn add_scaled<T: Real>(sums: &mut [T], factor: T, values: &[T]) {
    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += factor * value);
}
