//! Emission probabilities of a model with short state lists, and their gradient.
//!
//! The sparse version of `crate::tables::emission::clustered`: the softmax of a state runs over the words whose lists contain it.

use crate::space::kept_lists::KeptLists;
use crate::space::kept_states::KeptStates;
use crate::tables::emission::listed_kernels::{AddGradients, Logits, add_scaled};
use crate::tables::emission::vectors::{SMALLEST_PROBABILITY, VectorGradients, Vectors};
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::flush::flush_derivative;
use latens_math::Real;
use rayon::prelude::*;
use std::ops::Range;

/// Number of slots per task. It is fixed, so that sums do not depend on the number of threads.
const SLOTS_PER_TASK: usize = 256;

/// Number of parallel tasks of the backward pass, each with its own copy of the derivatives of all states.
const N_COPIES: usize = 8;

/// Overwrites `out` with b: for every slot, the states of its list.
pub(crate) fn forward<T: Real>(
    lists: &KeptLists,
    n_states: usize,
    vectors: Vectors<'_, T>,
    out: &mut Vec<T>,
) {
    out.resize(lists.n_values(), T::zero());
    lists.chunks(SLOTS_PER_TASK, out).into_par_iter().for_each(|(slots, logits)| {
        pulp::Arch::new().dispatch(Logits { lists, vectors, slots, logits });
    });
    normalize(lists, n_states, out);
}

/// Overwrites `out` with b from the logits that `logits` writes, given a slot and the states of its list.
pub(crate) fn forward_of_logits<T: Real>(
    lists: &KeptLists,
    kept: &KeptStates,
    out: &mut Vec<T>,
    logits: impl Fn(usize, &[u32], &mut [T]) + Sync,
) {
    out.resize(lists.n_values(), T::zero());
    lists.chunks(SLOTS_PER_TASK, out).into_par_iter().for_each(|part| {
        for (slot, states, row) in lists.each(part) {
            let states: Vec<u32> = states.iter().map(|&i| kept.states[i as usize]).collect();
            logits(slot, &states, row);
        }
    });
    normalize(lists, kept.states.len(), out);
}

/// Converts logits to probabilities.
fn normalize<T: Real>(lists: &KeptLists, n_states: usize, values: &mut [T]) {
    let maxima = reduce(lists, values, vec![T::neg_infinity(); n_states], max, |part, maxima| {
        for (_, states, row) in lists.each(part) {
            for (&mut logit, &state) in row.iter_mut().zip(states) {
                maxima[state as usize] = max(maxima[state as usize], logit);
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
    lists.chunks(SLOTS_PER_TASK, values).into_par_iter().for_each(|part| {
        for (_, states, row) in lists.each(part) {
            for (value, &state) in row.iter_mut().zip(states) {
                let b = *value * scales[state as usize];
                *value = if b < floor { floor } else { b };
            }
        }
    });
}

/// Reduces the values to one number per state, in parallel; joins the chunks in order.
fn reduce<T: Real>(
    lists: &KeptLists,
    values: &mut [T],
    first: Vec<T>,
    join: impl Fn(T, T) -> T,
    one: impl Fn((Range<usize>, &mut [T]), &mut [T]) + Sync,
) -> Vec<T> {
    let parts = lists.chunks(SLOTS_PER_TASK, values).into_par_iter().map(|part| {
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

/// Computes the gradient of Σ ln p, like `crate::tables::emission::clustered::backward`.
pub(crate) fn backward<T: Real>(
    lists: &KeptLists,
    vectors: Vectors<'_, T>,
    table: &mut [T],
    expected: &ExpectedCounts<T>,
    gradients: VectorGradients<'_, T>,
) {
    let (dim, n_states) = (vectors.dim, vectors.states.len() / vectors.dim);
    logit_gradient(lists, n_states, table, expected);
    let n_slots = lists.n_slots().div_ceil(N_COPIES).max(1);
    let work = lists.chunks(n_slots, table).into_par_iter();
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

/// Overwrites b with G = N − n ∘ b.
pub(crate) fn logit_gradient<T: Real>(
    lists: &KeptLists,
    n_states: usize,
    table: &mut [T],
    expected: &ExpectedCounts<T>,
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
    lists.chunks(SLOTS_PER_TASK, table).into_par_iter().for_each(|part| {
        for (_, states, row) in lists.each(part) {
            for (b, &state) in row.iter_mut().zip(states) {
                *b = flush_derivative(-totals[state as usize] * *b);
            }
        }
    });
    for (slot, counts) in emitted() {
        let row = table[lists.range(slot)].iter_mut();
        row.zip(counts).for_each(|(derivative, &count)| *derivative += count);
    }
}

#[inline(always)]
fn max<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

fn exp<T: Real>(values: &mut [T]) {
    latens_math::vectorized(
        #[inline(always)]
        || values.iter_mut().for_each(|value| *value = value.exp_of()),
    );
}
