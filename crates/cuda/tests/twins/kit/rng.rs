//! Random inputs.

/// Splitmix64 (Steele et al. 2014).
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    pub(crate) fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        (radius * (std::f64::consts::TAU * self.uniform()).cos()) as f32
    }

    pub(crate) fn normals(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.normal()).collect()
    }

    /// Numbers in (0, 1].
    pub(crate) fn positives(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (1.0 - self.uniform()).max(1e-3) as f32).collect()
    }

    /// Numbers with at most seven significant bits. Every format holds them, and sums hold their products, exactly.
    pub(crate) fn shorts(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.below(128) as f32 - 64.0) / 16.0).collect()
    }

    /// Rows of n positive numbers that sum to 1.
    pub(crate) fn distributions(&mut self, n_rows: usize, n: usize) -> Vec<f32> {
        let mut values = self.positives(n_rows * n);
        for row in values.chunks_mut(n.max(1)) {
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= sum);
        }
        values
    }

    /// Rows of n logits with a peak each: at the end, at the beginning, or anywhere.
    pub(crate) fn logits(&mut self, n_rows: usize, n: usize) -> Vec<f32> {
        let mut values = self.normals(n_rows * n);
        for (r, row) in values.chunks_mut(n.max(1)).enumerate() {
            let peak = [n - 1, 0, self.below(n)][r % 3];
            row[peak] += 9.0;
        }
        values
    }

    pub(crate) fn idxs(&mut self, n: usize, below: usize) -> Vec<u32> {
        (0..n).map(|_| self.below(below) as u32).collect()
    }

    /// The numbers below n in random order.
    pub(crate) fn shuffled(&mut self, n: usize) -> Vec<u32> {
        let mut idxs: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            idxs.swap(i, self.below(i + 1));
        }
        idxs
    }
}

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Whether dropout with this seed drops the number at an index: the twin of the kernels' generator.
pub(crate) fn is_dropped(seed: u64, place: usize, rate: f32) -> bool {
    ((bits_of(seed, place) >> 40) as f32) / 16_777_216.0 < rate
}

/// The number of the Gumbel distribution that belongs to a seed and an index: the twin of the kernels' generator.
pub(crate) fn gumbel(seed: u64, place: usize) -> f64 {
    let u = ((bits_of(seed, place) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    -(-(-u).ln_1p()).ln()
}

fn bits_of(seed: u64, place: usize) -> u64 {
    mix(seed.wrapping_add((place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

#[test]
fn dropout_drops_about_the_given_share() {
    let n = 100_000;
    for (rate, seed) in [(0.1f32, 1), (0.5, 2), (0.9, u64::MAX - 3)] {
        let dropped = (0..n).filter(|&at| is_dropped(seed, at, rate)).count() as f64;
        let (mean, variance) =
            (f64::from(rate) * n as f64, f64::from(rate * (1.0 - rate)) * n as f64);
        assert!((dropped - mean).abs() < 5.0 * variance.sqrt(), "{dropped} of {n} at {rate}");
    }
}
