//! The words before a word, packed into one number.

use crate::table::count_table::Item;
use latens_corpus::WordId;

/// How contexts are packed: every word before the last one takes `bits` bits, and the nearest word
/// takes the highest. Numbers are therefore sorted like the reversed words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packing {
    n_context: u32,
    bits: u32,
    /// Fills positions before the start of a sentence.
    begin: u32,
}

impl Packing {
    /// Packing for n-grams of `order` words over a vocabulary of `n_words` words. Returns `None` if a
    /// context needs more than 128 bits.
    pub(crate) fn new(order: usize, n_words: usize) -> Option<Packing> {
        let begin = u32::try_from(n_words).ok()?;
        let bits = (u32::BITS - begin.leading_zeros()).max(1);
        let packing = Packing { n_context: order as u32 - 1, bits, begin };
        (packing.n_bits() <= 128).then_some(packing)
    }

    /// Maximum number of words that [`Packing::new`] accepts for this order.
    pub(crate) fn max_words(order: usize) -> usize {
        let bits = (128 / (order as u32 - 1).max(1)).min(u32::BITS);
        u32::MAX as usize >> (u32::BITS - bits)
    }

    pub(crate) fn n_bits(self) -> u32 {
        self.n_context * self.bits
    }

    /// Packs the words before a word. The nearest word is the last of `past`, which is shorter at the
    /// start of a sentence.
    #[inline]
    pub(crate) fn pack<C: Context>(self, past: &[WordId]) -> C {
        let words = past.iter().rev().map(|word| word.0);
        let packed = words.fold(C::EMPTY, |context, word| context.push(word, self.bits));
        let n_missing = self.n_context as usize - past.len();
        (0..n_missing).fold(packed, |context, _| context.push(self.begin, self.bits))
    }

    /// Unpacks the words of a context, the nearest first.
    #[inline]
    pub(crate) fn unpack<C: Context>(self, context: C, words: &mut [WordId]) {
        let mask = u32::MAX >> (u32::BITS - self.bits);
        for (i, word) in words.iter_mut().rev().enumerate() {
            *word = WordId(context.low_bits_from(i as u32 * self.bits) & mask);
        }
    }

    /// Whether [`Packing::pack`] can return this number: all words are below `n_words`, and only
    /// padding precedes padding.
    pub(crate) fn is_valid<C: Context>(self, context: C) -> bool {
        let mut words = [WordId::default(); 8];
        let words = &mut words[..self.n_context as usize];
        self.unpack(context, words);
        let n_known = words.iter().take_while(|word| word.0 < self.begin).count();
        words[n_known..].iter().all(|word| word.0 == self.begin) && context.fits(self.n_bits())
    }
}

/// A number that holds a packed context.
pub(crate) trait Context: Item {
    const EMPTY: Self;

    /// Appends a word in the lowest bits.
    fn push(self, word: u32, bits: u32) -> Self;

    /// The lowest 32 bits after a shift to the right.
    fn low_bits_from(self, shift: u32) -> u32;

    /// Whether the number fits in `n_bits` bits.
    fn fits(self, n_bits: u32) -> bool;
}

impl Context for u64 {
    const EMPTY: u64 = 0;

    #[inline]
    fn push(self, word: u32, bits: u32) -> u64 {
        self << bits | u64::from(word)
    }

    #[inline]
    fn low_bits_from(self, shift: u32) -> u32 {
        (self >> shift) as u32
    }

    fn fits(self, n_bits: u32) -> bool {
        self.checked_shr(n_bits).unwrap_or(0) == 0
    }
}

/// The higher half first. Not a `u128`, which would need an alignment of 16 bytes in files.
impl Context for [u64; 2] {
    const EMPTY: [u64; 2] = [0; 2];

    #[inline]
    fn push(self, word: u32, bits: u32) -> [u64; 2] {
        halves(whole(self) << bits | u128::from(word))
    }

    #[inline]
    fn low_bits_from(self, shift: u32) -> u32 {
        (whole(self) >> shift) as u32
    }

    fn fits(self, n_bits: u32) -> bool {
        whole(self).checked_shr(n_bits).unwrap_or(0) == 0
    }
}

fn whole([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn halves(whole: u128) -> [u64; 2] {
    [(whole >> 64) as u64, whole as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unpacked<C: Context>(packing: Packing, past: &[WordId]) -> Vec<u32> {
        let mut words = [WordId(0); 5];
        let words = &mut words[..packing.n_context as usize];
        packing.unpack(packing.pack::<C>(past), words);
        words.iter().map(|word| word.0).collect()
    }

    proptest! {
        #[test]
        fn unpacking_returns_the_words_nearest_first(
            n_words in 1_usize..5_000,
            n_context in 0_usize..=5,
            ids in prop::collection::vec(0_u32..5_000, 0..=5),
        ) {
            let past: Vec<WordId> = ids.iter().map(|&id| WordId(id % n_words as u32)).collect();
            let past = &past[..past.len().min(n_context)];
            let mut expected: Vec<u32> = past.iter().rev().map(|word| word.0).collect();
            expected.resize(n_context, n_words as u32);
            let packing = Packing::new(n_context + 1, n_words).unwrap();
            prop_assert_eq!(unpacked::<[u64; 2]>(packing, past), expected.clone());
            if packing.n_bits() <= 64 {
                prop_assert_eq!(unpacked::<u64>(packing, past), expected);
                prop_assert!(packing.is_valid(packing.pack::<u64>(past)));
            }
        }
    }

    #[test]
    fn invalid_contexts_are_detected() {
        let packing = Packing::new(3, 5).unwrap(); // 3 bits per word, padding is 5
        let valid: Vec<u64> = (0..200).filter(|&context| packing.is_valid(context)).collect();
        let known = (0..5).flat_map(|near| (0..=5).map(move |far| near << 3 | far));
        assert_eq!(valid, known.chain([5 << 3 | 5]).collect::<Vec<u64>>());
    }

    #[test]
    fn max_words_is_the_largest_vocabulary_that_fits_128_bits() {
        for order in 1..=6 {
            let limit = Packing::max_words(order);
            assert!(Packing::new(order, limit).is_some(), "order {order}");
            assert!(Packing::new(order, limit + 1).is_none(), "order {order}");
        }
        assert_eq!(Packing::max_words(6), (1 << 25) - 1);
    }
}
