//! Adjusted counts in 32 bits.

/// The adjusted count of an n-gram, and whether the n-gram is pruned.
///
/// Bit 31 is set for pruned n-grams. Bit 30 is set for counts that do not fit in 30 bits; the other bits are then their
/// index in a list. A text of n tokens has at most n/2³⁰ of them per order.
#[derive(Clone, Copy)]
pub(super) struct Value(pub(super) u32);

const PRUNED: u32 = 1 << 31;
const LARGE: u32 = 1 << 30;

impl Value {
    pub(super) fn new(adjusted: u64, is_pruned: bool, large: &mut Vec<u64>) -> Value {
        let low = match u32::try_from(adjusted) {
            Ok(small) if small < LARGE => small,
            _ => {
                large.push(adjusted);
                LARGE | (large.len() - 1) as u32
            }
        };
        Value(low | if is_pruned { PRUNED } else { 0 })
    }

    #[inline]
    pub(super) fn is_pruned(self) -> bool {
        self.0 & PRUNED != 0
    }

    #[inline]
    pub(super) fn adjusted(self, large: &[u64]) -> u64 {
        let low = self.0 & (LARGE - 1);
        if self.0 & LARGE == 0 { low.into() } else { large[low as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_counts_survive() {
        let mut large = Vec::new();
        let all = [0, 1, 5, (1 << 30) - 1, 1 << 30, 1 << 31, u64::from(u32::MAX), u64::MAX];
        for adjusted in all {
            for is_pruned in [false, true] {
                let value = Value::new(adjusted, is_pruned, &mut large);
                assert_eq!((value.adjusted(&large), value.is_pruned()), (adjusted, is_pruned));
            }
        }
        assert_eq!(large.len(), 8);
    }
}
