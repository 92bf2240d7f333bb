/// A small random number generator, which does not change with versions of a library.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1405_7b7e_f767_814f)
    }

    /// A number below `n`, or 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % n.max(1)
    }

    /// A number from 0 to 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }

    /// One of several things.
    pub(crate) fn choose<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_repeat_with_the_seed_and_reach_every_value() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..200).map(|_| random.below(7)).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        assert!((0..7).all(|value| draw(3).contains(&value)));
    }
}
