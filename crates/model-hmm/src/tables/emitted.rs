//! The words of some text.

/// The slots of some tokens.
#[derive(Default)]
pub(crate) struct EmittedSlots {
    /// In ascending order.
    pub(crate) slots: Vec<u32>,
    /// The place of each emitted slot among them.
    places: Vec<u32>,
}

impl EmittedSlots {
    /// Finds the slots of tokens, which are `u32::MAX` or less than `n_slots`.
    pub(crate) fn find(&mut self, tokens: impl IntoIterator<Item = u32>, n_slots: usize) {
        const UNUSED: u32 = u32::MAX;
        let EmittedSlots { slots, places } = self;
        slots.drain(..).for_each(|slot| places[slot as usize] = UNUSED);
        places.resize(n_slots, UNUSED);
        for slot in tokens {
            if let Some(place) = places.get_mut(slot as usize).filter(|place| **place == UNUSED) {
                *place = 0;
                slots.push(slot);
            }
        }
        slots.sort_unstable();
        slots.iter().zip(0..).for_each(|(&slot, place)| places[slot as usize] = place);
    }

    /// The place of an emitted slot, and the place after the last one for `u32::MAX`.
    pub(crate) fn place(&self, slot: u32) -> u32 {
        self.places.get(slot as usize).copied().unwrap_or(self.slots.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emitted_slots_are_found_once_in_ascending_order() {
        let mut emitted = EmittedSlots::default();
        for (tokens, n_slots, expected) in [
            (&[5, 2, 5, u32::MAX, 0][..], 6, &[0, 2, 5][..]),
            (&[3, 3, 1], 4, &[1, 3]),
            (&[], 9, &[]),
            (&[8, 0, 8], 9, &[0, 8]),
        ] {
            emitted.find(tokens.iter().copied(), n_slots);
            assert_eq!(emitted.slots, expected);
            for (&slot, place) in expected.iter().zip(0..) {
                assert_eq!(emitted.place(slot), place);
            }
            assert_eq!(emitted.place(u32::MAX), expected.len() as u32);
        }
    }
}
