//! Partitions of symbols into classes.

use foldhash::{HashMap, HashMapExt};

/// A partition of symbols. Symbols of one class lead to the same state from every state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    of: Vec<u32>,
    /// The first symbol of each class.
    firsts: Vec<u32>,
}

impl Classes {
    /// One class with all symbols.
    pub(crate) fn one(n_symbols: usize) -> Classes {
        Classes { of: vec![0; n_symbols], firsts: vec![0] }
    }

    /// The number of symbols.
    pub(crate) fn n_symbols(&self) -> usize {
        self.of.len()
    }

    /// The number of classes.
    pub(crate) fn len(&self) -> usize {
        self.firsts.len()
    }

    /// The class of a symbol.
    pub(crate) fn of(&self, symbol: usize) -> usize {
        self.of[symbol] as usize
    }

    /// The first symbol of every class.
    pub(crate) fn firsts(&self) -> &[u32] {
        &self.firsts
    }

    /// Splits classes so that the symbols of a class share a label. Classes are numbered by their first symbols.
    pub(crate) fn refine(&self, label: impl Fn(usize) -> u32) -> Classes {
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
        let (mut of, mut firsts) = (Vec::with_capacity(self.of.len()), Vec::new());
        for (symbol, &class) in self.of.iter().enumerate() {
            let number = numbers.entry((class, label(symbol))).or_insert_with(|| {
                firsts.push(symbol as u32);
                firsts.len() as u32 - 1
            });
            of.push(*number);
        }
        Classes { of, firsts }
    }

    /// Joins classes with the same label. Classes are numbered by their first symbols.
    pub(crate) fn join(&self, label: &[u32]) -> Classes {
        Classes::one(self.n_symbols()).refine(|symbol| label[self.of(symbol)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_split_by_label_and_join_again() {
        let parity = Classes::one(6).refine(|symbol| symbol as u32 % 2);
        assert_eq!(parity.of, [0, 1, 0, 1, 0, 1]);
        let both = parity.refine(|symbol| u32::from(symbol >= 4));
        assert_eq!(both.of, [0, 1, 0, 1, 2, 3]);
        assert_eq!(both.firsts(), [0, 1, 4, 5]);
        assert_eq!(both.join(&[7, 3, 7, 3]), parity);
    }
}
