//! Matrices as numpy reads them (`.npy`, version 1.0): a header in Python's words, then the numbers.

use std::io::{self, Write};

/// Begins a matrix of 32-bit numbers, row by row.
pub(crate) fn write_header(out: &mut dyn Write, n_rows: usize, n_cols: usize) -> io::Result<()> {
    const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
    /// The numbers begin at a multiple of this.
    const ALIGNMENT: usize = 64;
    let shape = format!("({n_rows}, {n_cols})");
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    // After the header come a line break and the numbers.
    while !(MAGIC.len() + 2 + header.len() + 1).is_multiple_of(ALIGNMENT) {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len()).expect("a shape is short");
    out.write_all(MAGIC)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(header.as_bytes())
}

/// Goes on with more numbers.
pub(crate) fn write_values(out: &mut dyn Write, values: &[f32]) -> io::Result<()> {
    values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_what_numpy_writes() {
        let mut bytes = Vec::new();
        write_header(&mut bytes, 3, 12).unwrap();
        write_values(&mut bytes, &[1.5]).unwrap();
        // The beginning of what `numpy.save` makes of a 3 × 12 array of `float32`.
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 12), }";
        let expected = format!("{header:117}\n");
        assert_eq!(bytes[..10], *b"\x93NUMPY\x01\x00\x76\x00");
        assert_eq!(bytes[10..128], *expected.as_bytes());
        assert_eq!(bytes[128..], 1.5f32.to_le_bytes());
    }
}
