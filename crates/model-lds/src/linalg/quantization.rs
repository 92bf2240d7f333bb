//! Numbers in half the memory: each one of 16 bits, with a factor for the row that it stands in.
//!
//! A row is then known to about 2⁻¹⁶ of its largest number, which is nothing beside what the random start of the
//! decomposition leaves open. Double precision, with which tests compare, stays as it is.

use latens_math::Real;

/// Numbers that can be packed.
pub(crate) trait Packing: Real {
    /// What a number becomes.
    type Packed: Copy + Default + Send + Sync;

    /// What a row of packed numbers must be multiplied with.
    type Factor: Copy + Default + Send + Sync;

    /// How far a number may be from what it was, as a share of the largest one of its row.
    const ROUNDING: f64;

    /// Packs a row; the factor that it must be multiplied with again comes back.
    fn pack(row: &[Self], out: &mut [Self::Packed]) -> Self::Factor;

    fn unpack(row: &[Self::Packed], factor: Self::Factor, out: &mut [Self]);
}

impl Packing for f32 {
    type Packed = i16;

    /// The first half of the bits of a number in single precision.
    type Factor = u16;

    // A factor may be greater by 2⁻⁷ than it need be.
    const ROUNDING: f64 = 0.5 * (1.0 + 1.0 / 128.0) / 32_767.0;

    #[inline(always)]
    fn pack(row: &[f32], out: &mut [i16]) -> u16 {
        // As whole numbers they have the same order, and what is no number is the largest of all, so that it is not
        // lost.
        let bits = row.iter().map(|value| (value.to_bits() & 0x7fff_ffff) as i32);
        let largest = f32::from_bits(bits.fold(0, i32::max) as u32);
        if largest < 1e-30 {
            out.fill(0);
            return 0;
        }
        /// Adding it leaves the nearest whole number in the last bits.
        const ROUND: f32 = 12_582_912.0;
        /// The first half of its bits; others that are no numbers would be rounded up beyond all.
        const NOT_A_NUMBER: u32 = 0x7fc0;
        // Rounded up, so that the largest number still has room.
        let half = (((largest / 32_767.0).to_bits() + 0xffff) >> 16).min(NOT_A_NUMBER) as u16;
        let scale = 1.0 / wide(half);
        for (out, value) in out.iter_mut().zip(row) {
            *out = (value * scale + ROUND).to_bits() as i16;
        }
        half
    }

    #[inline(always)]
    fn unpack(row: &[i16], factor: u16, out: &mut [f32]) {
        let factor = wide(factor);
        out.iter_mut().zip(row).for_each(|(out, &value)| *out = f32::from(value) * factor);
    }
}

/// The number that a half stands for.
#[inline(always)]
fn wide(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

impl Packing for f64 {
    type Packed = f64;

    type Factor = ();

    const ROUNDING: f64 = 0.0;

    fn pack(row: &[f64], out: &mut [f64]) {
        out.copy_from_slice(row);
    }

    fn unpack(row: &[f64], (): (), out: &mut [f64]) {
        out.copy_from_slice(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    #[test]
    fn rows_are_known_to_a_small_part_of_their_largest_number() {
        let mut rng = Rng::new(1);
        for scale in [1e-20, 1e-3, 1.0, 1.01, 1.99, 1e20] {
            let row: Vec<f32> = (0..50).map(|_| (scale * rng.normal()) as f32).collect();
            let (mut packed, mut out) = ([0; 50], [0.0; 50]);
            let factor = f32::pack(&row, &mut packed);
            f32::unpack(&packed, factor, &mut out);
            let largest = row.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            assert!(row.iter().zip(out).all(|(x, y)| (x - y).abs() <= 1.6e-5 * largest));
        }
    }

    #[test]
    fn what_is_no_number_is_not_lost() {
        for strange in [f32::NAN, f32::from_bits(0x7fff_ffff), f32::INFINITY, f32::NEG_INFINITY] {
            let (mut packed, mut out) = ([0; 3], [0.0; 3]);
            let factor = f32::pack(&[1.0, strange, 2.0], &mut packed);
            f32::unpack(&packed, factor, &mut out);
            assert!(out.iter().all(|x| x.is_nan()), "{out:?}");
        }
        assert_eq!(f32::pack(&[0.0, 0.0], &mut [7, 7]), 0);
    }
}
