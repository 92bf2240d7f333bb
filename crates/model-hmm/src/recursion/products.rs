//! The products of one step of the recursion.

use crate::tables::probability_tables::Tables;
use latens_math::{BlockRef, Real};
use std::array;
use std::ops::Add;

/// A token and its sentence, with the groups of two adjacent tokens. They are the 32-bit digits of one number, which is
/// faster to sort: group before, group, token, sentence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member(u128);

impl Member {
    pub(crate) fn new(from: u32, to: u32, token: usize, sentence: usize) -> Member {
        let digits = [u128::from(from), u128::from(to), token as u128, sentence as u128];
        Member(digits.into_iter().fold(0, |number, digit| number << 32 | digit))
    }

    #[inline(always)]
    pub(crate) fn token(self) -> usize {
        (self.0 >> 32) as u32 as usize
    }

    #[inline(always)]
    pub(crate) fn sentence(self) -> usize {
        self.0 as u32 as usize
    }

    /// Both groups.
    fn groups(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

/// Sorts tokens and returns those that share both groups together.
pub(crate) fn by_groups(members: &mut [Member]) -> impl Iterator<Item = (usize, usize, &[Member])> {
    members.sort_unstable();
    let groups = members.chunk_by(|a, b| a.groups() == b.groups());
    groups.map(|members| {
        let groups = members[0].groups();
        ((groups >> 32) as usize, groups as u32 as usize, members)
    })
}

/// The values of the tokens of a group, one after another: in place if there is one token, else in a buffer.
pub(crate) fn stacked<'v, T: Real>(
    members: &[Member],
    buffer: &'v mut Vec<T>,
    values: impl Fn(usize) -> &'v [T],
) -> &'v [T] {
    if let [member] = members {
        return values(member.token());
    }
    buffer.clear();
    members.iter().for_each(|member| buffer.extend_from_slice(values(member.token())));
    buffer
}

/// The transitions between the states of two groups: a k × k block of the table, or gathered entries.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a, T> {
    pub(crate) tables: &'a Tables<T>,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl<'a, T: Real> Pair<'a, T> {
    fn rows(self) -> BlockRef<'a, T> {
        let (k, n) = (self.tables.k, self.tables.n_states());
        if self.tables.blocks.is_empty() {
            let states = |cluster: usize| cluster * k..(cluster + 1) * k;
            let transition = &self.tables.transition;
            return BlockRef::new(transition, n, states(self.from), states(self.to));
        }
        let at = (self.from * (n / k) + self.to) * k * k;
        BlockRef::new(&self.tables.blocks[at..at + k * k], k, 0..k, 0..k)
    }

    /// The transitions and their number of columns, if they are not a block of the stored table.
    fn gathered(self) -> Option<(Vec<T>, usize)> {
        let Pair { tables, from, to } = self;
        if let Some(lists) = &tables.lists {
            return Some((tables.pairs(lists.of(from), lists.of(to)), lists.of(to).len()));
        }
        let states = |cluster: usize| cluster * tables.k..(cluster + 1) * tables.k;
        let factors = tables.factors.as_ref().filter(|_| tables.transition.is_empty())?;
        Some((factors.block(states(from), states(to)), tables.k))
    }
}

/// A block with all of `values`.
fn whole<T: Real>(values: &[T], n_cols: usize) -> BlockRef<'_, T> {
    BlockRef::new(values, n_cols, 0..values.len() / n_cols, 0..n_cols)
}

/// out = left · block.
pub(crate) fn forward_product<T: Real>(pair: Pair<'_, T>, left: &[T], out: &mut [T]) {
    match pair.gathered() {
        Some((values, n_cols)) => whole(&values, n_cols).times_rows(left, out),
        None => pair.rows().times_rows(left, out),
    }
}

/// out = left · blockᵀ.
pub(crate) fn backward_product<T: Real>(pair: Pair<'_, T>, left: &[T], out: &mut [T]) {
    match pair.gathered() {
        Some((values, n_cols)) => whole(&values, n_cols).transposed_times_rows(left, out),
        None => pair.rows().transposed_times_rows(left, out),
    }
}

/// out = a ∘ b, scaled to sum to 1. Returns the sum before scaling, unless it underflowed.
///
/// It is part of the loop of its caller, which chooses the instructions of the processor once for many tokens.
#[inline(always)]
pub(crate) fn product<T: Real>(a: &[T], b: &[T], out: &mut [T]) -> Option<f64> {
    let sum = product_sum(a, b, out)?;
    scale(out, T::of(1.0 / sum));
    Some(sum)
}

/// out = a ∘ b. Returns the sum, unless it underflowed. Like [`product`], it is part of the loop of its caller.
#[inline(always)]
pub(crate) fn product_sum<T: Real>(a: &[T], b: &[T], out: &mut [T]) -> Option<f64> {
    let sum = sum(multiplied(a, b, out, plus));
    // The reciprocal of a smaller sum would be infinite.
    let smallest = T::min_positive_value().wide();
    (smallest..f64::MAX).contains(&sum).then_some(sum)
}

/// Sets values whose products with a factor are less than [`SMALLEST`] to zero, and multiplies the others by the factor.
/// Multiplying first could produce subnormal numbers.
#[inline(always)]
pub(crate) fn scale<T: Real>(values: &mut [T], factor: T) {
    let smallest = T::of(SMALLEST) / factor;
    for value in values {
        *value = flush(*value, smallest) * factor;
    }
}

/// sums += values · factor, without small values.
#[inline(always)]
pub(crate) fn add_scaled<T: Real>(sums: &mut [T], values: &[T], factor: T) {
    let smallest = T::of(SMALLEST) / factor;
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum += flush(value, smallest) * factor;
    }
}

/// Smaller values of α and β are set to zero, so that no factor is subnormal, which slows processors down a
/// hundredfold.
const SMALLEST: f64 = 1e-30;

/// The smallest share of the probability mass at which the values set to zero are negligible. They add up to at most
/// k·10⁻²⁸, or to k·10⁻²⁰ in a dense model, which also sets small transitions to zero.
pub(crate) fn smallest_share<T: Real>(tables: &Tables<T>) -> f64 {
    if tables.is_dense() { 1e-14 } else { 1e-22 }
}

#[inline(always)]
fn flush<T: Real>(value: T, smallest: T) -> T {
    if value < smallest { T::zero() } else { value }
}

/// Number of partial results: the compiler may not reorder additions and comparisons by itself.
const LANES: usize = 16;

/// Merges every sixteenth value into one of the partial results, which start from zero. Merging zero changes none of them.
///
/// Chunks of a known length stay in registers, and so do the partial results, since no index of theirs is computed at run time.
#[inline(always)]
fn lanes<T: Real>(values: &[T], merge: impl Fn(T, T) -> T) -> [T; LANES] {
    let mut lanes = [T::zero(); LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        lanes = merged(lanes, chunk, &merge);
    }
    if !rest.is_empty() {
        let mut last = [T::zero(); LANES];
        last[..rest.len()].copy_from_slice(rest);
        lanes = merged(lanes, &last, &merge);
    }
    lanes
}

/// out = a ∘ b, whose numbers are merged as by [`lanes`] while they are in registers. All have the same length: the rests
/// of a longer slice would be other numbers.
#[inline(always)]
fn multiplied<T: Real>(a: &[T], b: &[T], out: &mut [T], merge: impl Fn(T, T) -> T) -> [T; LANES] {
    assert!(a.len() == out.len() && b.len() == out.len());
    let mut lanes = [T::zero(); LANES];
    let (out, rest) = out.as_chunks_mut::<LANES>();
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = array::from_fn(
            #[inline(always)]
            |i| a[i] * b[i],
        );
        lanes = merged(lanes, out, &merge);
    }
    if !rest.is_empty() {
        let mut last = [T::zero(); LANES];
        for (((last, out), &a), &b) in last.iter_mut().zip(rest).zip(a_rest).zip(b_rest) {
            *out = a * b;
            *last = *out;
        }
        lanes = merged(lanes, &last, &merge);
    }
    lanes
}

#[inline(always)]
fn merged<T: Real>(
    lanes: [T; LANES],
    values: &[T; LANES],
    merge: impl Fn(T, T) -> T,
) -> [T; LANES] {
    array::from_fn(
        #[inline(always)]
        |i| merge(lanes[i], values[i]),
    )
}

/// The first half of the values merged with the second, so that the processor merges all pairs at the same time.
#[inline(always)]
fn halved<const N: usize, const HALF: usize, T: Copy>(
    values: [T; N],
    merge: impl Fn(T, T) -> T,
) -> [T; HALF] {
    array::from_fn(
        #[inline(always)]
        |i| merge(values[i], values[i + HALF]),
    )
}

#[inline(always)]
fn sum<T: Real>(lanes: [T; LANES]) -> f64 {
    let lanes = lanes.map(
        #[inline(always)]
        |lane| lane.wide(),
    );
    let eight: [f64; 8] = halved(lanes, plus);
    let four: [f64; 4] = halved(eight, plus);
    (four[0] + four[2]) + (four[1] + four[3])
}

#[inline(always)]
fn plus<T: Add<Output = T>>(a: T, b: T) -> T {
    a + b
}

#[inline(always)]
fn greater<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

#[inline(always)]
pub(crate) fn largest<T: Real>(values: &[T]) -> T {
    greatest(lanes(values, greater))
}

#[inline(always)]
fn greatest<T: Real>(lanes: [T; LANES]) -> T {
    let eight: [T; 8] = halved(lanes, greater);
    let four: [T; 4] = halved(eight, greater);
    greater(greater(four[0], four[2]), greater(four[1], four[3]))
}

/// out = a ∘ b, scaled to a maximum of 1. Like [`product`], it is part of the loop of its caller.
#[inline(always)]
pub(crate) fn scaled_product<T: Real>(a: &[T], b: &[T], out: &mut [T]) {
    let max = product_max(a, b, out);
    scale(out, T::one() / max);
}

/// out = a ∘ b. Returns the maximum. Like [`product`], it is part of the loop of its caller.
#[inline(always)]
pub(crate) fn product_max<T: Real>(a: &[T], b: &[T], out: &mut [T]) -> T {
    greatest(multiplied(a, b, out, greater))
}

#[inline(always)]
pub(crate) fn add<T: Real>(sums: &mut [T], values: &[T]) {
    sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += value);
}
