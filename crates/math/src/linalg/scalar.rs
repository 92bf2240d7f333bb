//! Matrix products, compiled once for each number type.

use super::registers::clear_upper_halves;
use super::tiles;
use faer::linalg::matmul::{self, triangular};
use faer::{Accum, MatMut, MatRef, Par};

/// `f32` or `f64`, with the products that are compiled once for each.
pub trait Scalar: faer::traits::RealField + Copy + 'static {
    /// See [`super::matmul`].
    #[doc(hidden)]
    fn matmul(out: MatMut<'_, Self>, accum: Accum, a: MatRef<'_, Self>, b: MatRef<'_, Self>);

    /// See [`super::matmul_lower`].
    #[doc(hidden)]
    fn matmul_lower(out: MatMut<'_, Self>, accum: Accum, a: MatRef<'_, Self>, b: MatRef<'_, Self>);

    /// See [`super::multiply`].
    #[doc(hidden)]
    fn multiply(
        out: MatMut<'_, Self>,
        accum: Accum,
        a: MatRef<'_, Self>,
        b: MatRef<'_, Self>,
        par: Par,
    );
}

// The functions are not generic and never inlined: other crates link to this code instead of compiling it again.
macro_rules! scalar {
    ($($T:ty, $wide:expr;)*) => {$(
        impl Scalar for $T {
            #[inline(never)]
            fn matmul(
                mut out: MatMut<'_, $T>,
                accum: Accum,
                a: MatRef<'_, $T>,
                b: MatRef<'_, $T>,
            ) {
                if !$wide(out.as_mut(), accum, a, b) {
                    matmul::matmul(out, accum, a, b, 1.0, Par::Seq);
                    clear_upper_halves();
                }
            }

            #[inline(never)]
            fn matmul_lower(
                out: MatMut<'_, $T>,
                accum: Accum,
                a: MatRef<'_, $T>,
                b: MatRef<'_, $T>,
            ) {
                use triangular::BlockStructure::{Rectangular, TriangularLower};
                let (kind, full) = (TriangularLower, Rectangular);
                triangular::matmul(out, kind, accum, a, full, b, full, 1.0, Par::Seq);
                clear_upper_halves();
            }

            #[inline(never)]
            fn multiply(
                out: MatMut<'_, $T>,
                accum: Accum,
                a: MatRef<'_, $T>,
                b: MatRef<'_, $T>,
                par: Par,
            ) {
                tiles::multiply(out, accum, a, b, par, $wide);
            }
        }
    )*};
}

scalar! {
    f32, multiply_wide;
    f64, no_wide_product;
}

/// Computes the product with AVX-512 and returns true if the processor has it.
fn multiply_wide(
    out: MatMut<'_, f32>,
    accum: Accum,
    a: MatRef<'_, f32>,
    b: MatRef<'_, f32>,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    return super::wide::multiply(out, accum, a, b);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (out, accum, a, b);
        false
    }
}

/// The kernel is for single precision.
fn no_wide_product(_: MatMut<'_, f64>, _: Accum, _: MatRef<'_, f64>, _: MatRef<'_, f64>) -> bool {
    false
}

/// Computes out = A B or out += A B on the calling thread.
pub fn matmul<T: Scalar>(out: MatMut<'_, T>, accum: Accum, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    T::matmul(out, accum, a, b);
}

/// Computes the lower triangle of out = A B or out += A B on the calling thread. The part of `out` above the diagonal
/// is neither read nor written.
pub fn matmul_lower<T: Scalar>(
    out: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
) {
    T::matmul_lower(out, accum, a, b);
}

/// Computes out = A B or out += A B on the threads of `par`.
///
/// Each tile of `out` is one product on one thread, so the result does not depend on the number of threads. faer's own
/// threads synchronize many times per product, which on busy cores can take ten times as long as one thread alone, and
/// where `out` is a single row the order of its sums depends on the number of threads.
pub fn multiply<T: Scalar>(
    out: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    par: Par,
) {
    T::multiply(out, accum, a, b, par);
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn lower_products_leave_the_upper_triangle_alone() {
        let (n, k) = (70, 5);
        let a: Vec<f64> = (0..n * k).map(|i| (i * 37 % 101) as f64).collect();
        let a = MatRef::from_row_major_slice(&a, n, k);
        let mut out = Mat::from_fn(n, n, |_, _| 7.0);
        matmul_lower(out.as_mut(), Accum::Add, a, a.transpose());
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let sum: f64 = (0..k).map(|l| a[(i, l)] * a[(j, l)]).sum();
            assert_eq!(out[(i, j)], if i >= j { 7.0 + sum } else { 7.0 });
        }
    }
}
