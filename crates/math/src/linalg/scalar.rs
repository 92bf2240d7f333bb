//! The number types that linear algebra is compiled for.

use faer::linalg::matmul::{matmul, triangular};
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
    ($($T:ty)*) => {$(
        impl Scalar for $T {
            #[inline(never)]
            fn matmul(out: MatMut<'_, $T>, accum: Accum, a: MatRef<'_, $T>, b: MatRef<'_, $T>) {
                matmul(out, accum, a, b, 1.0, Par::Seq);
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
            }

            #[inline(never)]
            fn multiply(
                out: MatMut<'_, $T>,
                accum: Accum,
                a: MatRef<'_, $T>,
                b: MatRef<'_, $T>,
                par: Par,
            ) {
                super::multiply::in_tiles(out, accum, a, b, par);
            }
        }
    )*};
}

scalar! { f32 f64 }
