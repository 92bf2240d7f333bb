//! What the comparisons share: a device, random inputs, arrays with canaries, and tolerances.

mod device;
mod rng;
mod arrays;
mod near;
mod formats;

pub(crate) use arrays::{Bits, Framed, Number, WIDE, WIDE_FOURS, framed, get, holes, put, twice};
pub(crate) use device::{Done, device};
pub(crate) use formats::Format;
pub(crate) use near::{
    BF16, DOUBLE, EXACT, HALF, ROUNDED, SINGLE, Sum, TF32, Tolerance, assert_near, log_sums,
    product, sums,
};
pub(crate) use rng::{Rng, gumbel, is_dropped};
