//! Reserves probability for unknown words in the emissions.

use crate::space::state_space::StateSpace;
use crate::tables::probability_tables::Tables;
use latens_corpus::WordId;
use latens_math::Real;
use std::borrow::Cow;

/// Gives `<unk>` its fixed share of the emissions of every state that may emit it, and scales the other words down.
pub(crate) fn reserve_unknown_share<T: Real>(space: &StateSpace, tables: &mut Tables<T>) {
    let (Some(unknown), Some(cluster)) = (space.unknown, space.cluster(WordId::UNK)) else {
        return;
    };
    let Tables { emission, lists, .. } = tables;
    let emits: Vec<bool> = (0..space.k).map(|state| space.allows(unknown.slot, state)).collect();
    let (share, rest) = (T::of(unknown.share), T::of(1.0 - unknown.share));
    for slot in space.slots(cluster) {
        let (row, states): (_, Cow<'_, [u32]>) = match lists {
            Some(lists) => (lists.range(slot), lists.of(slot).into()),
            None => (slot * space.k..(slot + 1) * space.k, (0..space.k as u32).collect()),
        };
        for (b, &state) in emission[row].iter_mut().zip(&*states) {
            *b = match (slot == unknown.slot, emits[state as usize]) {
                (true, true) => share,
                (true, false) => T::zero(),
                (false, true) => *b * rest,
                (false, false) => *b,
            };
        }
    }
}
