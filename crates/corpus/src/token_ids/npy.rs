//! The header of NumPy arrays (`.npy`).

use std::io::{self, Read};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The header of a `.npy` file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NpyHeader {
    /// The type of the elements, such as `<i4`.
    pub descr: String,
    /// The length of each dimension.
    pub shape: Vec<u64>,
}

impl NpyHeader {
    /// Reads the header of a row-major array. The elements follow. The message of an error of the kind `InvalidData` says what
    /// is wrong with the file.
    pub fn read(input: &mut dyn Read) -> io::Result<NpyHeader> {
        let not_npy = || invalid("it is not a `.npy` file");
        let text = read_text(input).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => not_npy(),
            _ => error,
        })?;
        let text = text.ok_or_else(not_npy)?;
        let descr = value(&text, "descr")?.trim_matches('\'').to_owned();
        let shape = value(&text, "shape")?;
        let numbers = shape.trim_matches(['(', ')']).split(',').map(str::trim);
        let numbers = numbers.filter(|number| !number.is_empty()).map(str::parse);
        let numbers: Result<Vec<u64>, _> = numbers.collect();
        let numbers = numbers.map_err(|_| invalid(format!("its shape is {shape}")))?;
        if value(&text, "fortran_order")? != "False" && numbers.len() > 1 {
            let problem = "it is column-major; convert it with `numpy.ascontiguousarray`";
            return Err(invalid(problem));
        }
        Ok(NpyHeader { descr, shape: numbers })
    }
}

/// Reads the text of the header. Returns `None` if the file is not a `.npy` file.
fn read_text(input: &mut dyn Read) -> io::Result<Option<String>> {
    let mut start = [0; 8];
    input.read_exact(&mut start)?;
    let length = match (&start[..6], start[6]) {
        (MAGIC, 1) => {
            let mut length = [0; 2];
            input.read_exact(&mut length)?;
            u64::from(u16::from_le_bytes(length))
        }
        (MAGIC, 2 | 3) => {
            let mut length = [0; 4];
            input.read_exact(&mut length)?;
            u64::from(u32::from_le_bytes(length))
        }
        _ => return Ok(None),
    };
    if length > 1 << 16 {
        return Err(invalid("its header is too long"));
    }
    let mut text = Vec::new();
    input.take(length).read_to_end(&mut text)?;
    Ok(String::from_utf8(text).ok())
}

/// The value of `name` in the header, up to the next comma or the closing bracket of a shape.
fn value<'a>(header: &'a str, name: &str) -> io::Result<&'a str> {
    let missing = || invalid(format!("its header has no `{name}`"));
    let (_, rest) = header.split_once(&format!("'{name}':")).ok_or_else(missing)?;
    let rest = rest.trim_start();
    let end = match rest.starts_with('(') {
        true => rest.find(')').map(|end| end + 1),
        false => rest.find([',', '}']),
    };
    Ok(rest[..end.ok_or_else(missing)?].trim())
}

pub(crate) fn invalid(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}
