//! Absolute discounts of modified Kneser–Ney smoothing.

/// D(1), D(2) and D(3 or more) of one order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Discounts(pub(crate) [f64; 3]);

/// Discounts for texts too small to estimate them, as in other toolkits
/// (`lmplz --discount_fallback`).
const FALLBACK: Discounts = Discounts([0.5, 1.0, 1.5]);

/// Numbers of n-grams with the adjusted counts 1 to 4, after that of all others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers([u64; 5]);

impl Numbers {
    #[inline]
    pub(crate) fn add(&mut self, adjusted: u64) {
        self.0[(adjusted.min(5) % 5) as usize] += 1;
    }
}

impl Discounts {
    /// Estimates discounts (Chen & Goodman 1998, eq. 26): Y = n_1/(n_1 + 2 n_2), D(k) = k − (k+1) Y n_{k+1}/n_k, with n_k
    /// the number of n-grams whose adjusted count is k.
    pub(crate) fn of(adjusted: &[u64]) -> Discounts {
        let mut numbers = Numbers::default();
        adjusted.iter().for_each(|&a| numbers.add(a));
        Discounts::from_numbers(&numbers)
    }

    /// Estimates discounts from the numbers n_1 to n_4.
    pub(crate) fn from_numbers(Numbers(n): &Numbers) -> Discounts {
        let [_, n_1, n_2, n_3, n_4] = n.map(|n| n as f64);
        let y = n_1 / (n_1 + 2.0 * n_2);
        let d = [1.0 - 2.0 * y * n_2 / n_1, 2.0 - 3.0 * y * n_3 / n_2, 3.0 - 4.0 * y * n_4 / n_3];
        // A discount of zero would give words unseen after a history a probability of zero.
        let sound = d.iter().zip([1.0, 2.0, 3.0]).all(|(&d, k)| d > 0.0 && d <= k);
        if sound { Discounts(d) } else { FALLBACK }
    }

    /// D(count).
    #[inline]
    pub(crate) fn of_count(&self, count: u64) -> f64 {
        match count {
            0 => 0.0,
            1 => self.0[0],
            2 => self.0[1],
            _ => self.0[2],
        }
    }
}
