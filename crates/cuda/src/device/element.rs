//! Element types of device arrays.

use half::prelude::{HalfBitsVecExt, HalfFloatSliceExt};
use half::{bf16, f16};
use std::fmt::Debug;

/// Element type of a device array: `f32`, `f64`, [`f16`](struct@f16), [`bf16`] or `u32`.
pub trait Element: sealed::Stored + Copy + Debug {}

impl<T: sealed::Stored + Copy + Debug> Element for T {}

pub(super) mod sealed {
    use cudarc::driver::{DeviceRepr, ValidAsZeroBits};

    /// How an element is stored on the device. Every bit pattern must be a valid element.
    pub trait Stored: Sized {
        /// The type with the same bits that is copied to and from the device.
        type Bits: DeviceRepr + ValidAsZeroBits;

        /// Name of the type in CUDA C.
        const C_NAME: &'static str;

        fn to_bits(values: &[Self]) -> &[Self::Bits];

        fn from_bits(bits: Vec<Self::Bits>) -> Vec<Self>;
    }
}

macro_rules! stored_as_is {
    ($($element:ty: $c_name:literal),*) => {$(
        impl sealed::Stored for $element {
            type Bits = $element;

            const C_NAME: &'static str = $c_name;

            fn to_bits(values: &[$element]) -> &[$element] {
                values
            }

            fn from_bits(bits: Vec<$element>) -> Vec<$element> {
                bits
            }
        }
    )*};
}
stored_as_is!(f32: "float", f64: "double", u32: "unsigned");

macro_rules! stored_in_16_bits {
    ($($element:ty),*) => {$(
        impl sealed::Stored for $element {
            type Bits = u16;

            const C_NAME: &'static str = "unsigned short";

            fn to_bits(values: &[$element]) -> &[u16] {
                values.reinterpret_cast()
            }

            fn from_bits(bits: Vec<u16>) -> Vec<$element> {
                bits.reinterpret_into()
            }
        }
    )*};
}
stored_in_16_bits!(f16, bf16);
