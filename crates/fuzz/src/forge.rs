//! Files of ours with valid checksums and any content. Without these, hardly any changed file would be read beyond its
//! checksum.

use xxhash_rust::xxh3::xxh3_64;

/// The beginning of the JSON of every model file.
pub(crate) const MODEL: &str = r#"{"__metadata__":{"format":"latens","header_checksum":""#;
const ZEROS: &str = "0000000000000000";
const CONTAINER: &[u8] = b"latens\x1A\n";

/// The two parts of an input, a header and arrays: everything before the first NUL, and after it.
pub fn header_and_arrays(input: &[u8]) -> (&[u8], &[u8]) {
    let at = input.iter().position(|&byte| byte == 0).unwrap_or(input.len());
    (&input[..at], input.get(at + 1..).unwrap_or_default())
}

/// A model file or checkpoint. Its JSON begins with both checksums and continues with `json`, as in
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

/// The inverse of [`model`]: the JSON after the checksums, NUL, and the arrays.
///
/// # Panics
/// If the bytes are not a model file.
pub fn unsealed_model(bytes: &[u8]) -> Vec<u8> {
    let (json, arrays) = split(bytes, 0);
    let at = json.windows(9).position(|letters| letters == b"\"latens\":").expect("a model file");
    [json[at..].trim_ascii_end(), &[0], arrays].concat()
}

/// The inverse of [`container`]: the JSON, NUL, and the arrays.
///
/// # Panics
/// If the bytes are not a container.
pub fn unsealed_container(bytes: &[u8]) -> Vec<u8> {
    let (json, arrays) = split(&bytes[..bytes.len() - 8], 8);
    [json.trim_ascii_end(), &[0], arrays].concat()
}

/// The JSON whose length is stored at `length_at`, and what follows it.
pub(crate) fn split(bytes: &[u8], length_at: usize) -> (&[u8], &[u8]) {
    let (length, rest) = bytes[length_at..].split_first_chunk().expect("the file has a length");
    rest.split_at(u64::from_le_bytes(*length) as usize)
}
