//! The innermost loop of a product.

use faer::{Accum, MatMut, MatRef};
use std::arch::asm;
use std::marker::PhantomData;

/// Numbers per vector register.
pub(super) const LANES: usize = 16;

/// Rows of a block of sums.
pub(super) const ROWS: usize = 8;

/// Columns of a block of sums: with [`ROWS`] rows, they take 24 of the 32 vector registers.
pub(super) const COLUMNS: usize = 3 * LANES;

/// [`ROWS`] rows of a matrix, or of the copy of one.
pub(super) struct Rows<'a> {
    first: *const f32,
    row_stride: usize,
    col_stride: usize,
    n_terms: usize,
    matrix: PhantomData<&'a f32>,
}

impl<'a> Rows<'a> {
    /// Borrows the rows of a row-major matrix.
    pub(super) fn of_matrix(rows: MatRef<'a, f32>) -> Rows<'a> {
        assert!(rows.nrows() == ROWS && rows.col_stride() == 1);
        let (row_stride, n_terms) = (rows.row_stride().cast_unsigned(), rows.ncols());
        Rows { first: rows.as_ptr(), row_stride, col_stride: 1, n_terms, matrix: PhantomData }
    }

    /// Borrows rows that are stored column by column.
    pub(super) fn of_copy(copy: &'a [f32]) -> Rows<'a> {
        let n_terms = copy.len() / ROWS;
        Rows { first: copy.as_ptr(), row_stride: 1, col_stride: ROWS, n_terms, matrix: PhantomData }
    }

    pub(super) fn n_terms(&self) -> usize {
        self.n_terms
    }
}

/// Columns of a narrow block of sums.
pub(super) const NARROW: usize = 2 * LANES;

/// Multiplies [`ROWS`] rows by [`COLUMNS`] or [`NARROW`] columns, which are stored row by row.
///
/// # Panics
/// If the shapes do not match, or the processor has no AVX-512.
#[expect(unsafe_code, reason = "the loops are assembler code")]
pub(super) fn multiply_block(out: MatMut<'_, f32>, accum: Accum, rows: &Rows<'_>, columns: &[f32]) {
    let n = out.ncols();
    assert!(out.nrows() == ROWS && out.col_stride() == 1 && rows.n_terms > 0);
    assert_eq!(columns.len(), n * rows.n_terms, "every column must have all terms");
    assert!(std::arch::is_x86_feature_detected!("avx512f"), "the processor must have AVX-512");
    let (to, stride) = (out.as_ptr_mut(), out.row_stride().cast_unsigned());
    match n {
        // SAFETY: by the assertions, all matrices have the shapes that the loops read and write, and the processor has
        // the instructions.
        COLUMNS => unsafe { three_vectors(rows, columns, to, stride, accum) },
        // SAFETY: as above.
        NARROW => unsafe { two_vectors(rows, columns, to, stride, accum) },
        _ => panic!("a block has two or three vectors of columns"),
    }
}

/// Defines the loop over all terms: loads a row of `columns`, and adds its products with the number of each row of
/// `rows` to the sums of that row. Then adds `out` if requested, and stores the sums there.
///
/// `$load` and `$vector` are the places of the vectors in a row of `columns` or `out`, and their registers. Each row has
/// the address of its number and, for each vector, the place, the register of the vector and that of the sums.
macro_rules! block {
    ($name:ident, $bytes:literal, [$($load:literal $vector:literal)*],
     $([$number:literal $($place:literal $factor:literal $sum:literal)*])*) => {
        #[inline(never)]
        #[expect(unsafe_code, reason = "assembler code")]
        unsafe fn $name(
            rows: &Rows<'_>,
            columns: &[f32],
            out: *mut f32,
            stride: usize,
            accum: Accum,
        ) {
            let row = rows.row_stride * size_of::<f32>();
            // SAFETY: the caller's promise. All registers and flags that change are declared.
            unsafe {
                asm!(
                    $($(concat!("vpxord zmm", $sum, ", zmm", $sum, ", zmm", $sum),)*)*
                    $(
                        $(concat!("prefetchw byte ptr [{from} + ", $place, "]"),)*
                        "add {from}, {stride}",
                    )*
                    "2:",
                    $(concat!("vmovups zmm", $vector, ", zmmword ptr [{columns} + ", $load, "]"),)*
                    $(concat!("prefetcht0 byte ptr [{columns} + ", $load, " + 8 * ", $bytes, "]"),)*
                    $(
                        concat!("vbroadcastss zmm27, dword ptr [", $number, "]"),
                        $(concat!("vfmadd231ps zmm", $sum, ", zmm27, zmm", $factor),)*
                    )*
                    concat!("add {columns}, ", $bytes),
                    "add {a}, {column}",
                    "add {a_4}, {column}",
                    "dec {n}",
                    "jnz 2b",
                    "test {add}, {add}",
                    "jz 3f",
                    "mov {from}, {to}",
                    $(
                        $(concat!("vaddps zmm", $sum, ", zmm", $sum, ", zmmword ptr [{from} + ", $place, "]"),)*
                        "add {from}, {stride}",
                    )*
                    "3:",
                    $(
                        $(concat!("vmovups zmmword ptr [{to} + ", $place, "], zmm", $sum),)*
                        "add {to}, {stride}",
                    )*
                    n = inout(reg) rows.n_terms => _,
                    a = inout(reg) rows.first => _,
                    a_4 = inout(reg) rows.first.wrapping_byte_add(4 * row) => _,
                    row = in(reg) row,
                    row_3 = in(reg) 3 * row,
                    column = in(reg) rows.col_stride * size_of::<f32>(),
                    columns = inout(reg) columns.as_ptr() => _,
                    from = inout(reg) out => _,
                    to = inout(reg) out => _,
                    stride = in(reg) stride * size_of::<f32>(),
                    add = in(reg) usize::from(accum == Accum::Add),
                    out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _, out("zmm4") _,
                    out("zmm5") _, out("zmm6") _, out("zmm7") _, out("zmm8") _, out("zmm9") _,
                    out("zmm10") _, out("zmm11") _, out("zmm12") _, out("zmm13") _, out("zmm14") _,
                    out("zmm15") _, out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                    out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _, out("zmm24") _,
                    out("zmm25") _, out("zmm26") _, out("zmm27") _,
                    options(nostack),
                )
            }
        }
    };
}

block! {
    three_vectors, 192, [0 24  64 25  128 26],
    ["{a}"               0 24  0  64 25  1  128 26  2]
    ["{a} + {row}"       0 24  3  64 25  4  128 26  5]
    ["{a} + 2 * {row}"   0 24  6  64 25  7  128 26  8]
    ["{a} + {row_3}"     0 24  9  64 25 10  128 26 11]
    ["{a_4}"             0 24 12  64 25 13  128 26 14]
    ["{a_4} + {row}"     0 24 15  64 25 16  128 26 17]
    ["{a_4} + 2 * {row}" 0 24 18  64 25 19  128 26 20]
    ["{a_4} + {row_3}"   0 24 21  64 25 22  128 26 23]
}

block! {
    two_vectors, 128, [0 24  64 25],
    ["{a}"               0 24  0  64 25  1]
    ["{a} + {row}"       0 24  2  64 25  3]
    ["{a} + 2 * {row}"   0 24  4  64 25  5]
    ["{a} + {row_3}"     0 24  6  64 25  7]
    ["{a_4}"             0 24  8  64 25  9]
    ["{a_4} + {row}"     0 24 10  64 25 11]
    ["{a_4} + 2 * {row}" 0 24 12  64 25 13]
    ["{a_4} + {row_3}"   0 24 14  64 25 15]
}
