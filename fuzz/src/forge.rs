//! Files of ours whose checksums are right, whatever else they say: without these, hardly any
//! changed file would be read beyond its checksum.

use std::cmp::Reverse;
use std::fmt::Write;
use std::str::FromStr;
use xxhash_rust::xxh3::xxh3_64;

const MODEL: &str = r#"{"__metadata__":{"format":"latens","header_checksum":""#;
const ZEROS: &str = "0000000000000000";
const CONTAINER: &[u8] = b"latens\x1A\n";

/// The two parts of an input, a header and arrays: what is before the first NUL, and after it.
pub fn header_and_arrays(input: &[u8]) -> (&[u8], &[u8]) {
    let at = input.iter().position(|&byte| byte == 0).unwrap_or(input.len());
    (&input[..at], input.get(at + 1..).unwrap_or_default())
}

/// A model file or checkpoint. Its JSON begins with both checksums and goes on with `json`, as in
/// `"latens":"{…}"},"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}}`.
pub fn model(json: &[u8], arrays: &[u8]) -> Vec<u8> {
    let data_checksum = xxh3_64(arrays);
    let begin = format!(r#"{MODEL}{ZEROS}","data_checksum":"{data_checksum:016x}","#);
    let mut bytes = [&[0; 8], begin.as_bytes(), json].concat();
    bytes.resize(bytes.len().next_multiple_of(64), b' ');
    let length = bytes.len() as u64 - 8;
    bytes[..8].copy_from_slice(&length.to_le_bytes());
    let checksum = format!("{:016x}", xxh3_64(&bytes));
    bytes[8 + MODEL.len()..][..ZEROS.len()].copy_from_slice(checksum.as_bytes());
    bytes.extend_from_slice(arrays);
    bytes
}

/// A file of named arrays with this JSON as its header.
pub fn container(json: &[u8], arrays: &[u8]) -> Vec<u8> {
    let mut json = json.to_vec();
    json.resize(json.len().next_multiple_of(8), b' ');
    let length = json.len() as u64;
    let mut bytes = [CONTAINER, &length.to_le_bytes(), &json, arrays].concat();
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    bytes
}

/// A file in words, of which arrays of any length make a whole file: its header in the first line,
/// then an array a line, as in `vocab.ends u64 5 10` or `vocab.letters letters <unk><eos>`.
pub struct Outline<'a> {
    header: &'a str,
    arrays: Vec<Array<'a>>,
}

struct Array<'a> {
    name: &'a str,
    dtype: &'static str,
    size: usize,
    bytes: Vec<u8>,
}

impl<'a> Outline<'a> {
    /// Reads an outline; what makes no sense in it is left out.
    pub fn parse(text: &'a str) -> Outline<'a> {
        let (header, arrays) = text.split_once('\n').unwrap_or((text, ""));
        Outline { header, arrays: arrays.lines().filter_map(Array::parse).collect() }
    }

    /// As a model file or checkpoint, with the header as it is.
    pub fn model(mut self) -> Vec<u8> {
        self.arrays.sort_by_key(|array| Reverse(array.size));
        let header = serde_json::Value::from(self.header);
        let (mut json, mut bytes) = (format!(r#""latens":{header}}}"#), Vec::new());
        for array in &self.arrays {
            let (begin, n) = (bytes.len(), array.bytes.len() / array.size);
            bytes.extend_from_slice(&array.bytes);
            let (name, dtype, end) =
                (serde_json::Value::from(array.name), array.dtype, bytes.len());
            let offsets = format!(r#""data_offsets":[{begin},{end}]"#);
            write!(json, r#",{name}:{{"dtype":"{dtype}","shape":[{n}],{offsets}}}"#)
                .expect("a string takes any letters");
        }
        json.push('}');
        model(json.as_bytes(), &bytes)
    }

    /// As a file of named arrays, whose list is added to the header.
    pub fn container(self) -> Vec<u8> {
        let lengths: Vec<(&str, usize)> =
            self.arrays.iter().map(|array| (array.name, array.bytes.len())).collect();
        let lengths = serde_json::json!(lengths);
        let header = self.header.strip_suffix('}').unwrap_or(self.header);
        let mut bytes = Vec::new();
        for array in self.arrays {
            bytes.extend(array.bytes);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        container(format!(r#"{header},"arrays":{lengths}}}"#).as_bytes(), &bytes)
    }
}

impl<'a> Array<'a> {
    fn parse(line: &'a str) -> Option<Array<'a>> {
        let mut parts = line.splitn(3, ' ');
        let (name, dtype, values) = (parts.next()?, parts.next()?, parts.next().unwrap_or(""));
        let (dtype, size, bytes) = match dtype {
            "letters" => ("U8", 1, values.as_bytes().to_vec()),
            "u32" => ("U32", 4, bytes(values, u32::to_le_bytes)),
            "u64" => ("U64", 8, bytes(values, u64::to_le_bytes)),
            "f32" => ("F32", 4, bytes(values, f32::to_le_bytes)),
            _ => return None,
        };
        Some(Array { name, dtype, size, bytes })
    }
}

fn bytes<T: FromStr, const N: usize>(values: &str, bytes_of: fn(T) -> [u8; N]) -> Vec<u8> {
    values.split(' ').filter_map(|value| value.parse().ok()).flat_map(bytes_of).collect()
}

/// What a value can become, besides another value of the file.
const VALUES: [&str; 14] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "4294967295",
    "18446744073709551615",
    "0.5",
    "-0.5",
    "-2",
    "-inf",
    "nan",
];

/// Changes one value of the outline in `data[..size]`, and tells its new size: most changes that know
/// nothing of outlines make files that are refused at once. `None`, and no change, for one seed in
/// four, and if there is no value or no room.
pub fn change_value(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> Option<usize> {
    let mut random = u64::from(seed);
    let mut draw = |n: usize| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) as usize % n.max(1)
    };
    let outline = std::str::from_utf8(&data[..size]).ok().filter(|_| draw(4) > 0)?;
    let parts = outline.split([' ', '\n', ':', ',', '[', ']', '{', '}']);
    let values: Vec<&str> = parts.filter(|part| part.parse::<f64>().is_ok()).collect();
    let (value, other) = (values.get(draw(values.len()))?, values.get(draw(values.len()))?);
    let at = value.as_ptr().addr() - outline.as_ptr().addr();
    let new = match draw(8) {
        0 => String::new(),
        1 => format!("{value} {other}"),
        2 => (*other).to_owned(),
        3 => value.parse().map_or(String::new(), |n: u64| n.wrapping_add(1).to_string()),
        4 => value.parse().map_or(String::new(), |n: u64| n.wrapping_sub(1).to_string()),
        _ => VALUES[draw(VALUES.len())].to_owned(),
    };
    let changed = [&outline[..at], &new, &outline[at + value.len()..]].concat();
    let room = data.get_mut(..changed.len()).filter(|room| room.len() <= max_size)?;
    room.copy_from_slice(changed.as_bytes());
    Some(changed.len())
}
