//! Arrays on the device with canaries around them.

use super::device::Done;
use latens_cuda::{Array, Device, Element, bf16, f16};
use std::ops::Range;

/// More numbers than the largest grid has threads (8,192 blocks of 256), so that threads take several of them.
pub(crate) const WIDE: (usize, usize) = (8_209, 257);

/// The same for threads that take four numbers at a time.
pub(crate) const WIDE_FOURS: (usize, usize) = (8_209, 1_028);

/// An element with a canary value.
pub(crate) trait Number: Element {
    /// The canary: the value of elements that must not be read or written.
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

impl Number for f16 {
    const HOLE: f16 = f16::from_bits(0x7FC1);

    fn raw(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Number for bf16 {
    const HOLE: bf16 = bf16::from_bits(0x7FC1);

    fn raw(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Number for u32 {
    /// An index out of bounds would abort all tests. A wrong one shows up in the result.
    const HOLE: u32 = 0;

    fn raw(self) -> u64 {
        u64::from(self)
    }
}

/// An array with canaries around the range that is used.
#[derive(Debug)]
pub(crate) struct Framed<T: Element> {
    pub(crate) array: Array<T>,
    pub(crate) range: Range<usize>,
}

impl<T: Element> Framed<T> {
    pub(crate) fn part(&self) -> (&Array<T>, Range<usize>) {
        (&self.array, self.range.clone())
    }

    pub(crate) fn part_mut(&mut self) -> (&mut Array<T>, Range<usize>) {
        (&mut self.array, self.range.clone())
    }
}

/// Numbers at the beginning of an array.
pub(crate) fn put<T: Number>(device: &Device, values: &[T]) -> Framed<T> {
    put_at(device, 0, values)
}

/// Numbers in the middle of an array, where they are not aligned for reads of four at a time.
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

/// An array of n canaries, for output.
pub(crate) fn holes<T: Number>(device: &Device, n: usize) -> Framed<T> {
    put(device, &vec![T::HOLE; n])
}

/// Downloads the numbers and checks the canaries around them.
pub(crate) fn get<T: Number>(device: &Device, what: &str, framed: &Framed<T>) -> Vec<T> {
    let all = device.download(&framed.array).done(what);
    let range = &framed.range;
    for i in (0..range.start).chain(range.end..all.len()) {
        let x = all[i];
        assert_eq!(x.raw(), T::HOLE.raw(), "{what}: wrote {x:?} at {i}, outside of {range:?}");
    }
    all[framed.range.clone()].to_vec()
}

/// The bits of a result.
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

/// Runs an operation twice and panics unless both results have the same bits.
pub(crate) fn twice<T: Bits>(what: &str, run: impl Fn() -> T) -> T {
    let (first, again) = (run(), run());
    let (a, b) = (first.bits(), again.bits());
    if let Some(i) = a.iter().zip(&b).position(|(a, b)| a != b) {
        panic!("{what}: two runs gave the bits {:x} and {:x} at {i}", a[i], b[i]);
    }
    first
}
