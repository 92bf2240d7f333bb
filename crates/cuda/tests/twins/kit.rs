//! What the comparisons share: numbers that are drawn, arrays on the device, and what "near" means.

use cudarc::driver::DeviceRepr;
use latens_cuda::{Array, CudaError, Device};
use std::fmt::Debug;
use std::ops::{AddAssign, Range};

/// A device of the test's own, if there is one.
#[expect(
    clippy::print_stderr,
    reason = "a test that compares nothing must not look like one that does"
)]
pub(crate) fn device() -> Option<Device> {
    match Device::open() {
        Ok(device) => Some(device),
        Err(error @ (CudaError::NoLibrary { .. } | CudaError::NoDevice)) => {
            eprintln!("nothing is compared: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Takes a result, or fails with what was tried.
pub(crate) trait Done<T> {
    fn done(self, what: &str) -> T;
}

impl<T> Done<T> for Result<T, CudaError> {
    fn done(self, what: &str) -> T {
        self.unwrap_or_else(|error| panic!("{what}: {error}"))
    }
}

/// More numbers than the largest grid of the crate has threads (8,192 blocks of 256), so that threads take several.
pub(crate) const WIDE: (usize, usize) = (8_209, 257);

/// The same for threads that take four numbers at a time.
pub(crate) const WIDE_FOURS: (usize, usize) = (8_209, 1_028);

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

    /// Numbers of at most seven significant bits, which any precision holds, and whose products any sums hold.
    pub(crate) fn shorts(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.below(128) as f32 - 64.0) / 16.0).collect()
    }

    /// Rows of n positive numbers that sum to one.
    pub(crate) fn distributions(&mut self, n_rows: usize, n: usize) -> Vec<f32> {
        let mut values = self.positives(n_rows * n);
        for row in values.chunks_mut(n.max(1)) {
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= sum);
        }
        values
    }

    /// Rows of n logits, each with one that stands out: at the end, at the beginning, or anywhere.
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

    /// The numbers below n in some order.
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

/// Whether dropout by a seed drops the number at a place: the twin of the kernels' generator.
pub(crate) fn is_dropped(seed: u64, place: usize, rate: f32) -> bool {
    let bits = mix(seed.wrapping_add((place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    ((bits >> 40) as f32) / 16_777_216.0 < rate
}

/// What arrays are made of.
pub(crate) trait Number: DeviceRepr + Copy + Debug {
    /// What lies where nothing should be read or written.
    const HOLE: Self;

    fn raw(self) -> u64;
}

impl Number for f32 {
    const HOLE: f32 = f32::from_bits(0x7FC0_1234);

    fn raw(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Number for f64 {
    const HOLE: f64 = f64::from_bits(0x7FF8_0000_0000_1234);

    fn raw(self) -> u64 {
        self.to_bits()
    }
}

impl Number for u16 {
    /// No number in half precision, nor in bf16.
    const HOLE: u16 = 0x7FC1;

    fn raw(self) -> u64 {
        u64::from(self)
    }
}

impl Number for u32 {
    /// An index that leads nowhere would end the work of all tests; a wrong one is seen in the result.
    const HOLE: u32 = 0;

    fn raw(self) -> u64 {
        u64::from(self)
    }
}

/// An array of which a range is used; there are holes around it.
#[derive(Debug)]
pub(crate) struct Framed<T> {
    pub(crate) array: Array<T>,
    pub(crate) range: Range<usize>,
}

impl<T> Framed<T> {
    pub(crate) fn part(&self) -> (&Array<T>, Range<usize>) {
        (&self.array, self.range.clone())
    }

    pub(crate) fn part_mut(&mut self) -> (&mut Array<T>, Range<usize>) {
        (&mut self.array, self.range.clone())
    }
}

/// Numbers from the beginning of an array on.
pub(crate) fn put<T: Number>(device: &Device, values: &[T]) -> Framed<T> {
    put_at(device, 0, values)
}

/// Numbers in the middle of an array, where four of them do not lie side by side as threads like them to.
pub(crate) fn framed<T: Number>(device: &Device, values: &[T]) -> Framed<T> {
    put_at(device, 3, values)
}

fn put_at<T: Number>(device: &Device, first: usize, values: &[T]) -> Framed<T> {
    const AFTER: usize = 5;
    let mut all = vec![T::HOLE; first];
    all.extend(values);
    all.extend([T::HOLE; AFTER]);
    let array = device.upload(&all).done("upload");
    Framed { array, range: first..first + values.len() }
}

/// Room for n numbers that are none yet.
pub(crate) fn holes<T: Number>(device: &Device, n: usize) -> Framed<T> {
    put(device, &vec![T::HOLE; n])
}

/// The numbers, of an array around which nothing was written.
pub(crate) fn get<T: Number>(device: &Device, what: &str, framed: &Framed<T>) -> Vec<T> {
    let all = device.download(&framed.array).done(what);
    let range = &framed.range;
    for i in (0..range.start).chain(range.end..all.len()) {
        let x = all[i];
        assert_eq!(x.raw(), T::HOLE.raw(), "{what}: wrote {x:?} at {i}, beside {range:?}");
    }
    all[framed.range.clone()].to_vec()
}

/// What an operation gives, by bits.
pub(crate) trait Bits {
    fn bits(&self) -> Vec<u64>;
}

impl<T: Number> Bits for Vec<T> {
    fn bits(&self) -> Vec<u64> {
        self.iter().map(|x| x.raw()).collect()
    }
}

impl Bits for f64 {
    fn bits(&self) -> Vec<u64> {
        vec![self.to_bits()]
    }
}

impl<A: Bits, B: Bits> Bits for (A, B) {
    fn bits(&self) -> Vec<u64> {
        [self.0.bits(), self.1.bits()].concat()
    }
}

impl<A: Bits, B: Bits, C: Bits> Bits for (A, B, C) {
    fn bits(&self) -> Vec<u64> {
        [self.0.bits(), self.1.bits(), self.2.bits()].concat()
    }
}

impl<A: Bits, B: Bits, C: Bits, D: Bits> Bits for (A, B, C, D) {
    fn bits(&self) -> Vec<u64> {
        [self.0.bits(), self.1.bits(), self.2.bits(), self.3.bits()].concat()
    }
}

/// Does the same twice, which must give the same bits.
pub(crate) fn twice<T: Bits>(what: &str, run: impl Fn() -> T) -> T {
    let (first, again) = (run(), run());
    let (a, b) = (first.bits(), again.bits());
    if let Some(i) = a.iter().zip(&b).position(|(a, b)| a != b) {
        panic!("{what}: the same input gave the bits {:x} and {:x} at {i}", a[i], b[i]);
    }
    first
}

/// A sum, and the sum of the sizes of its terms: rounding takes a share of that, however small the sum is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) value: f64,
    pub(crate) size: f64,
}

impl Sum {
    pub(crate) fn of(terms: impl IntoIterator<Item = f64>) -> Sum {
        let mut sum = Sum::default();
        terms.into_iter().for_each(|term| sum += term);
        sum
    }

    pub(crate) fn times(self, factor: f64) -> Sum {
        Sum { value: self.value * factor, size: self.size * factor.abs() }
    }
}

impl AddAssign<f64> for Sum {
    fn add_assign(&mut self, term: f64) {
        self.value += term;
        self.size += term.abs();
    }
}

impl From<f64> for Sum {
    fn from(value: f64) -> Sum {
        Sum { value, size: value.abs() }
    }
}

impl From<f32> for Sum {
    fn from(value: f32) -> Sum {
        Sum::from(f64::from(value))
    }
}

/// Each number by itself.
pub(crate) fn sums<T: Copy + Into<Sum>>(values: &[T]) -> Vec<Sum> {
    values.iter().map(|&value| value.into()).collect()
}

/// The product of matrices in double precision: entry (r, c) of the sum over i < k of a(r, i) b(i, c).
pub(crate) fn product(
    (n, m, k): (usize, usize, usize),
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
) -> Vec<Sum> {
    let entry = |r, c| Sum::of((0..k).map(|i| f64::from(a(r, i)) * f64::from(b(i, c))));
    (0..n * m).map(|at| entry(at / m, at % m)).collect()
}

/// How much a result may differ: a share of itself, by which it is rounded at last, and a share of its terms' sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    pub(crate) of_value: f64,
    pub(crate) of_terms: f64,
}

/// Numbers that are only moved.
pub(crate) const EXACT: Tolerance = Tolerance { of_value: 0.0, of_terms: 0.0 };

/// Single precision rounds by 6e-8 of a number; functions and sums of some hundred terms by some times as much.
pub(crate) const SINGLE: Tolerance = Tolerance { of_value: 0.0, of_terms: 1e-5 };

/// One operation in single precision, or a few.
pub(crate) const ROUNDED: Tolerance = Tolerance { of_value: 0.0, of_terms: 5e-7 };

/// Sums in double precision.
pub(crate) const DOUBLE: Tolerance = Tolerance { of_value: 0.0, of_terms: 1e-12 };

/// A result that is rounded to 11 significant bits, by 2⁻¹¹ of it at most.
pub(crate) const HALF: Tolerance = Tolerance { of_value: 5e-4, of_terms: 1e-5 };

/// A result that is rounded to 8 significant bits, by 2⁻⁸ of it at most.
pub(crate) const BF16: Tolerance = Tolerance { of_value: 4e-3, of_terms: 1e-5 };

/// Factors of 11 significant bits; the hardware may cut the others off, which is 2⁻¹⁰ of each of the two.
pub(crate) const TF32: Tolerance = Tolerance { of_value: 0.0, of_terms: 2e-3 };

/// Fails with the first place at which a result is not near what is expected.
pub(crate) fn assert_near<T: Copy + Into<f64>>(
    what: &str,
    got: &[T],
    expected: &[Sum],
    Tolerance { of_value, of_terms }: Tolerance,
) {
    assert_eq!(got.len(), expected.len(), "{what}: how many numbers there are");
    let is_far = |&(_, (got, expected)): &(usize, (f64, &Sum))| {
        // What is smaller than a normal number is taken for zero on the device.
        let allowed = of_value * expected.value.abs() + of_terms * expected.size;
        let is_near = (got - expected.value).abs() <= allowed + f64::from(f32::MIN_POSITIVE);
        !(is_near || got == expected.value)
    };
    let pairs = got.iter().map(|&got| got.into()).zip(expected).enumerate();
    let far: Vec<_> = pairs.filter(is_far).collect();
    let n = got.len();
    if let Some((at, (got, Sum { value, size }))) = far.first() {
        let n_far = far.len();
        panic!(
            "{what}: expected {value:e} at {at}, got {got:e} (terms of {size:e}); {n_far} of {n} are wrong"
        );
    }
}
