//! Model files with changed numbers and valid checksums.

use serde_json::Value;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

const HEADER_CHECKSUM: &str = r#""header_checksum":""#;
const DATA_CHECKSUM: &str = r#""data_checksum":""#;
const ZEROS: &str = "0000000000000000";

/// A description of a change, and the new value of a number given its index, if it changes.
type Change = (&'static str, fn(usize) -> Option<f64>);

/// Numbers that are finite in single precision, but whose sums and products may not be.
const CHANGES: [Change; 8] = [
    ("all 3e38", |_| Some(3e38)),
    ("all -3e38", |_| Some(-3e38)),
    ("alternating 3e38", |i| Some(if i % 2 == 0 { 3e38 } else { -3e38 })),
    ("first 3e38", |i| (i == 0).then_some(3e38)),
    ("first -3e38", |i| (i == 0).then_some(-3e38)),
    ("all 1e19", |_| Some(1e19)),
    ("all 1e-44", |_| Some(1e-44)),
    ("all 0", |_| Some(0.0)),
];

/// Copies of a model file in which the numbers of one array of floats are huge, tiny or zero, each with its
/// description. Their checksums are valid.
///
/// # Panics
/// If `bytes` are not those of a model file.
pub fn forged_floats(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let length: [u8; 8] = bytes[..8].try_into().expect("a file begins with a length");
    let begin = 8 + u64::from_le_bytes(length) as usize;
    let json: Value = serde_json::from_slice(&bytes[8..begin]).expect("a header is JSON");
    let arrays = json.as_object().expect("a header is an object").iter();
    let mut forged = Vec::new();
    for (name, array) in arrays.filter(|(name, _)| *name != "__metadata__") {
        let size = match array["dtype"].as_str() {
            Some("F32") => 4,
            Some("F64") => 8,
            _ => continue,
        };
        let offset =
            |i: usize| begin + array["data_offsets"][i].as_u64().expect("offsets") as usize;
        for (what, value) in CHANGES {
            let mut changed = bytes.to_vec();
            change(&mut changed[offset(0)..offset(1)], size, value);
            seal(&mut changed, begin);
            forged.push((format!("`{name}`: {what}"), changed));
        }
    }
    forged
}

fn change(array: &mut [u8], size: usize, value: fn(usize) -> Option<f64>) {
    for (i, number) in array.chunks_exact_mut(size).enumerate() {
        match (value(i), size) {
            (Some(value), 4) => number.copy_from_slice(&(value as f32).to_le_bytes()),
            (Some(value), _) => number.copy_from_slice(&value.to_le_bytes()),
            (None, _) => {}
        }
    }
}

/// Corrects the checksums of a file whose arrays begin at `begin`.
fn seal(bytes: &mut [u8], begin: usize) {
    let digits = |bytes: &[u8], key: &str| -> Range<usize> {
        let found = bytes.windows(key.len()).position(|part| part == key.as_bytes());
        let at = found.expect("a header has checksums") + key.len();
        at..at + ZEROS.len()
    };
    let (of_header, of_data) = (digits(bytes, HEADER_CHECKSUM), digits(bytes, DATA_CHECKSUM));
    let checksum = format!("{:016x}", xxh3_64(&bytes[begin..]));
    bytes[of_data].copy_from_slice(checksum.as_bytes());
    bytes[of_header.clone()].copy_from_slice(ZEROS.as_bytes());
    let checksum = format!("{:016x}", xxh3_64(&bytes[..begin]));
    bytes[of_header].copy_from_slice(checksum.as_bytes());
}
