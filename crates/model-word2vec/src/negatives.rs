//! Negative samples, drawn in constant time (alias method, Walker 1977; Vose 1991).

use latens_math::{AliasTable, Rng};
use rand::Rng as _;

/// Alias table of the distribution p(w) ∝ count(w)^power.
pub(crate) struct Negatives {
    /// One slot per word, all equally likely.
    slots: Vec<Slot>,
}

/// A slot yields its own word with probability `own` / 2³², otherwise `other`.
#[derive(Clone, Copy)]
struct Slot {
    own: u32,
    other: u32,
}

impl Negatives {
    /// Builds the table from word counts. Words with a count of zero are never drawn.
    ///
    /// # Panics
    /// If all counts are zero.
    pub(crate) fn new(counts: &[u64], power: f64) -> Negatives {
        let weight = |&count: &u64| if count == 0 { 0.0 } else { (count as f64).powf(power) };
        let weights: Vec<f64> = counts.iter().map(weight).collect();
        // 8 bytes per word instead of 16, and one comparison of integers per draw.
        let slot =
            |&(share, other): &(f64, u32)| Slot { own: (share * 2f64.powi(32)) as u32, other };
        let slots = AliasTable::new(&weights).columns().iter().map(slot).collect();
        Negatives { slots }
    }

    /// Draws a word.
    #[inline(always)]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u32 {
        let bits = rng.next_u64();
        let slot_idx = below(self.slots.len() as u32, bits);
        let Slot { own, other } = self.slots[slot_idx as usize];
        if (bits as u32) < own { slot_idx } else { other }
    }
}

/// Maps the upper 32 bits of `bits` to a number in 0..n.
#[inline(always)]
pub(crate) fn below(n: u32, bits: u64) -> u32 {
    (((bits >> 32) * u64::from(n)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probability of each word implied by the slots.
    fn probabilities(negatives: &Negatives) -> Vec<f64> {
        let n = negatives.slots.len();
        let mut probs = vec![0.0; n];
        for (word, slot) in negatives.slots.iter().enumerate() {
            let own = f64::from(slot.own) / 2f64.powi(32);
            probs[word] += own / n as f64;
            probs[slot.other as usize] += (1.0 - own) / n as f64;
        }
        probs
    }

    #[test]
    fn slot_probabilities_agree_with_the_definition() {
        let zipf: Vec<u64> =
            (0..5000).map(|rank| if rank == 1 { 0 } else { 100_000 / (rank + 1) }).collect();
        for counts in [&[0, 0, 7][..], &[3, 0, 100, 1, 1], &[1; 10], &zipf] {
            for power in [0.75, 0.0, 1.0, -0.5] {
                let weights = counts
                    .iter()
                    .map(|&count| if count == 0 { 0.0 } else { (count as f64).powf(power) });
                let weights: Vec<f64> = weights.collect();
                let total: f64 = weights.iter().sum();
                let probs = probabilities(&Negatives::new(counts, power));
                for (prob, weight) in probs.into_iter().zip(weights) {
                    assert!((prob - weight / total).abs() < 2e-9, "{prob} for {}", weight / total);
                    assert!(weight > 0.0 || prob == 0.0);
                }
            }
        }
    }

    #[test]
    fn draw_frequencies_agree_with_the_slot_probabilities() {
        let counts = [0, 0, 81, 16, 1];
        let negatives = Negatives::new(&counts, 0.5);
        let (mut rng, mut drawn, n) = (Rng::new(1), [0u32; 5], 140_000);
        (0..n).for_each(|_| drawn[negatives.draw(&mut rng) as usize] += 1);
        // Weights 9, 4 and 1; four standard deviations.
        for (drawn, weight) in drawn.into_iter().zip([0.0, 0.0, 9.0, 4.0, 1.0]) {
            let p: f64 = weight / 14.0;
            let allowed = 4.0 * (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((f64::from(drawn) - f64::from(n) * p).abs() <= allowed, "{drawn}");
        }
    }
}
