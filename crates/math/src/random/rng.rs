//! The random number generator of the workspace.

use rand::{Rng as _, SeedableRng, TryRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::f64::consts::TAU;

/// The place of a mini-batch in a training run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchPlace {
    /// The epoch, counted from 0.
    pub epoch: usize,
    /// The number of the mini-batch in its epoch, counted from 0.
    pub batch: usize,
}

/// Xoshiro256++ (Blackman and Vigna 2021), seeded with one number.
///
/// The algorithm is fixed so that a seed keeps its meaning when libraries change their defaults. For the same reason
/// the distributions are written here rather than taken from `rand_distr`. The state can be saved as four `u64` and
/// restored. `Rng` implements the traits of `rand`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[u64; 4]", try_from = "[u64; 4]")]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Creates the generator of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Creates the generator of one part of parallel work, such as a shard or a document.
    ///
    /// Each part draws from its own stream, so the result does not depend on the scheduling of threads. Seed and index
    /// are both scrambled, so streams of neighboring seeds or indices are independent.
    pub fn stream(seed: u64, index: u64) -> Rng {
        Rng::new(scramble(scramble(seed) ^ index))
    }

    /// Creates the generator of one kind of random choice in one mini-batch of an epoch.
    ///
    /// Each kind and each batch has its own stream, so training that resumes from a checkpoint makes the same choices.
    pub fn at(seed: u64, kind: u8, BatchPlace { epoch, batch }: BatchPlace) -> Rng {
        Rng::stream(seed ^ (u64::from(kind) << 56), ((epoch as u64) << 32) | batch as u64)
    }

    /// Draws uniformly from the multiples of 2⁻⁵³ in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws from the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        self.normal_pair(1.0)[0]
    }

    /// Draws two independent numbers from the normal distribution with mean 0 and the given standard deviation σ.
    ///
    /// σ √(−2 ln u) (cos 2πv, sin 2πv) are two such numbers for uniform u in (0, 1] and v in [0, 1) (Box and Muller
    /// 1958).
    #[inline(always)]
    pub fn normal_pair(&mut self, deviation: f64) -> [f64; 2] {
        let radius = deviation * (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (TAU * self.uniform()).sin_cos();
        [radius * cos, radius * sin]
    }

    /// Shuffles items into a random order, all orders being equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, (self.uniform() * (i + 1) as f64) as usize);
        }
    }
}

/// Applies one step of SplitMix64, a bijection that removes similarities between numbers.
fn scramble(number: u64) -> u64 {
    SplitMix64::seed_from_u64(number).next_u64()
}

impl TryRng for Rng {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    #[inline]
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(out)
    }
}

impl From<Rng> for [u64; 4] {
    fn from(rng: Rng) -> Self {
        let bytes = rng.0.state();
        std::array::from_fn(|i| {
            let word = bytes[8 * i..8 * i + 8].try_into().expect("eight bytes per word");
            u64::from_le_bytes(word)
        })
    }
}

impl TryFrom<[u64; 4]> for Rng {
    type Error = &'static str;

    fn try_from(state: [u64; 4]) -> Result<Self, &'static str> {
        if state == [0; 4] {
            return Err("the state of a random generator cannot be all zeros");
        }
        let mut bytes = [0; 32];
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Ok(Rng(Xoshiro256PlusPlus::from_seed(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn normal_draws_have_the_moments_of_the_normal_distribution() {
        let mut rng = Rng::new(7);
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let moment = |power: i32| draws.iter().map(|x| x.powi(power)).sum::<f64>() / n as f64;
        // Five standard deviations of the mean of x^k: the variances are 1, 2, 15 and 96.
        for (power, expected, variance) in
            [(1, 0.0, 1.0f64), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)]
        {
            assert!((moment(power) - expected).abs() < 5.0 * (variance / n as f64).sqrt());
        }
    }

    #[test]
    fn draws_agree_with_the_reference_program() {
        // https://prng.di.unimi.it/xoshiro256plusplus.c from the state 1, 2, 3, 4.
        let mut rng = Rng::try_from([1, 2, 3, 4]).unwrap();
        let drawn: [u64; 4] = std::array::from_fn(|_| rng.next_u64());
        assert_eq!(drawn, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn a_seed_keeps_its_meaning() {
        let first = |mut rng: Rng| rng.next_u64();
        assert_eq!(first(Rng::new(1)), 14_971_601_782_005_023_387);
        assert_eq!(first(Rng::stream(1, 0)), 4_577_072_067_518_496_145);
    }

    #[test]
    fn a_restored_generator_continues_with_the_same_draws() {
        let mut rng = Rng::new(7);
        rng.uniform();
        let mut stored = Rng::try_from(<[u64; 4]>::from(rng.clone())).unwrap();
        assert_eq!(stored, rng);
        assert_eq!(stored.next_u64(), rng.next_u64());
        assert!(Rng::try_from([0; 4]).is_err());
    }

    #[test]
    fn streams_of_neighboring_seeds_and_indices_differ() {
        let pairs = (0..30).flat_map(|seed| (0..30).map(move |index| (seed, index)));
        let streams = pairs.map(|(seed, index)| Rng::stream(seed, index).next_u64());
        let plain = (0..30).map(|seed| Rng::new(seed).next_u64());
        assert_eq!(streams.chain(plain).collect::<HashSet<_>>().len(), 930);
    }

    #[test]
    fn each_kind_of_choice_has_its_own_stream_per_batch() {
        let kinds = (0..6).flat_map(|kind| {
            (0..12).map(move |i| (kind, BatchPlace { epoch: i / 4, batch: i % 4 }))
        });
        let drawn = kinds.map(|(kind, place)| Rng::at(1, kind, place).next_u64());
        assert_eq!(drawn.collect::<HashSet<_>>().len(), 72);
        let high = 3 << 56;
        let place = BatchPlace { epoch: 2, batch: 5 };
        assert_eq!(Rng::at(7, 3, place), Rng::stream(high + 7, 2 * 4_294_967_296 + 5));
    }

    #[test]
    fn streams_are_not_correlated() {
        let n = 10_000;
        let (mut a, mut b) = (Rng::stream(1, 0), Rng::stream(1, 1));
        let covariance: f64 =
            (0..n).map(|_| (a.uniform() - 0.5) * (b.uniform() - 0.5)).sum::<f64>() / f64::from(n);
        // Four standard deviations; the standard deviation of the product is 1/12.
        assert!(covariance.abs() < 4.0 / 12.0 / f64::from(n).sqrt(), "{covariance}");
    }

    #[test]
    fn all_orders_are_equally_likely() {
        let (mut rng, mut seen) = (Rng::new(5), std::collections::HashMap::new());
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            rng.shuffle(&mut items);
            *seen.entry(items).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        // Six standard deviations of a binomial count.
        assert!(seen.values().all(|&n: &i32| (n - 10_000).abs() < 550), "{seen:?}");
    }

    #[test]
    fn uniform_draws_are_uniform_on_the_unit_interval() {
        let mut rng = Rng::new(3);
        let mut bins = [0u32; 10];
        for _ in 0..100_000 {
            bins[(rng.uniform() * 10.0) as usize] += 1;
        }
        // Four standard deviations of a binomial count with mean 10,000.
        assert!(bins.iter().all(|&n| n.abs_diff(10_000) < 380), "{bins:?}");
    }
}
