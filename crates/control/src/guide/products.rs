//! Sums over hidden states in double precision.

/// Number of partial sums, which the compiler keeps in registers.
const LANES: usize = 8;

/// Σ_z b(z) u(z) and Σ_z b(z) v(z).
pub(super) fn two_dots(b: &[f32], u: &[f64], v: &[f64]) -> (f64, f64) {
    debug_assert!(u.len() == b.len() && v.len() == b.len());
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let (mut first, mut second) = ([0f64; LANES], [0f64; LANES]);
            let (b, b_rest) = b.as_chunks::<LANES>();
            let (u, u_rest) = u.as_chunks::<LANES>();
            let (v, v_rest) = v.as_chunks::<LANES>();
            for ((b, u), v) in b.iter().zip(u).zip(v) {
                for i in 0..LANES {
                    let b = f64::from(b[i]);
                    first[i] += b * u[i];
                    second[i] += b * v[i];
                }
            }
            for (i, &b) in b_rest.iter().enumerate() {
                first[i] += f64::from(b) * u_rest[i];
                second[i] += f64::from(b) * v_rest[i];
            }
            (first.iter().sum(), second.iter().sum())
        },
    )
}
