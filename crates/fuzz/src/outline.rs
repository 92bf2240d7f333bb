//! Outlines: files of ours in words. Arrays of any length make a complete file, and every change of an outline makes
//! another complete file.
//!
//! The header is the first line. Each other line is an array: its name, its type, and its values, as in
//! `vocab.ends u64 5 10`, `weights f32[2,1] 0.5 -1` or `vocab.letters letters <unk><eos>`. A model inside a model is an
//! outline in an outline, written as a JSON string: `encoder.0.file model "{…}\nclusters u32 1 2"`.

use crate::forge;
use serde_json::Value;
use std::cmp::Reverse;
use std::fmt::Write;
use std::str::FromStr;

/// The most values to which an array is filled up, so that it has as many as its shape says.
const MAX_FILLED: usize = 1 << 14;

/// A parsed outline.
pub struct Outline<'a> {
    header: &'a str,
    arrays: Vec<Array<'a>>,
}

struct Array<'a> {
    name: &'a str,
    dtype: &'static str,
    size: usize,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl<'a> Outline<'a> {
    /// Parses an outline; lines that are not arrays are left out.
    pub fn parse(text: &'a str) -> Outline<'a> {
        Outline::parse_nested(text, 0)
    }

    fn parse_nested(text: &'a str, depth: usize) -> Outline<'a> {
        let (header, arrays) = text.split_once('\n').unwrap_or((text, ""));
        let arrays = arrays.lines().filter_map(|line| Array::parse(line, depth)).collect();
        Outline { header, arrays }
    }

    /// The outline as a model file or checkpoint.
    pub fn model(mut self) -> Vec<u8> {
        self.arrays.sort_by_key(|array| Reverse(array.size));
        let header = Value::from(self.header);
        let (mut json, mut bytes) = (format!(r#""latens":{header}}}"#), Vec::new());
        for Array { name, dtype, shape, bytes: values, .. } in &self.arrays {
            let begin = bytes.len();
            bytes.extend_from_slice(values);
            let (name, end) = (Value::from(*name), bytes.len());
            let offsets = format!(r#""data_offsets":[{begin},{end}]"#);
            write!(json, r#",{name}:{{"dtype":"{dtype}","shape":{shape:?},{offsets}}}"#)
                .expect("writing to a string cannot fail");
        }
        json.push('}');
        forge::model(json.as_bytes(), &bytes)
    }

    /// The outline as a file of named arrays, whose list is added to the header.
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
        forge::container(format!(r#"{header},"arrays":{lengths}}}"#).as_bytes(), &bytes)
    }
}

impl<'a> Array<'a> {
    fn parse(line: &'a str, depth: usize) -> Option<Array<'a>> {
        let mut parts = line.splitn(3, ' ');
        let (name, dtype, values) = (parts.next()?, parts.next()?, parts.next().unwrap_or(""));
        let (dtype, shape) = match dtype.strip_suffix(']').and_then(|d| d.split_once('[')) {
            Some((dtype, shape)) => {
                (dtype, Some(shape.split(',').filter_map(|n| n.parse().ok()).collect::<Vec<_>>()))
            }
            None => (dtype, None),
        };
        let (dtype, size, mut bytes) = match dtype {
            "letters" => ("U8", 1, values.as_bytes().to_vec()),
            "u8" => ("U8", 1, bytes(values, u8::to_le_bytes)),
            "u16" => ("U16", 2, bytes(values, u16::to_le_bytes)),
            "u32" => ("U32", 4, bytes(values, u32::to_le_bytes)),
            "u64" => ("U64", 8, bytes(values, u64::to_le_bytes)),
            "i32" => ("I32", 4, bytes(values, i32::to_le_bytes)),
            "i64" => ("I64", 8, bytes(values, i64::to_le_bytes)),
            "f32" => ("F32", 4, bytes(values, f32::to_le_bytes)),
            "f64" => ("F64", 8, bytes(values, f64::to_le_bytes)),
            "model" if depth < 3 => ("U64", 8, nested(values, depth + 1)?),
            _ => return None,
        };
        let n_values = shape.iter().flatten().try_fold(1usize, |n, &side| n.checked_mul(side));
        if let (Some(_), Some(n)) = (&shape, n_values.filter(|&n| n <= MAX_FILLED)) {
            bytes.resize(n * size, 0);
        }
        let shape = shape.unwrap_or_else(|| vec![bytes.len() / size]);
        Some(Array { name, dtype, size, shape, bytes })
    }
}

fn bytes<T: FromStr, const N: usize>(values: &str, bytes_of: fn(T) -> [u8; N]) -> Vec<u8> {
    values.split(' ').filter_map(|value| value.parse().ok()).flat_map(bytes_of).collect()
}

fn nested(quoted: &str, depth: usize) -> Option<Vec<u8>> {
    let text: String = serde_json::from_str(quoted).ok()?;
    let mut bytes = Outline::parse_nested(&text, depth).model();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Some(bytes)
}

/// The outline of a model file or checkpoint: the inverse of [`Outline::model`].
///
/// # Panics
/// If the bytes are not a model file, or one with names that an outline cannot have.
pub fn outline_of_model(bytes: &[u8]) -> String {
    let (json, data) = forge::split(bytes, 0);
    let json: Value = serde_json::from_slice(json).expect("a model file has a JSON header");
    let header = json["__metadata__"]["latens"].as_str().expect("a model file has a header");
    let arrays = json.as_object().expect("the header is an object").iter();
    let mut arrays: Vec<_> = arrays.filter(|(name, _)| *name != "__metadata__").collect();
    // Empty arrays begin where another one does: they come first, sorted by name.
    let offset = |info: &Value, i: usize| info["data_offsets"][i].as_u64();
    arrays.sort_by_key(|(_, info)| (offset(info, 0), offset(info, 1)));
    let mut outline = header.to_owned();
    for (name, info) in arrays {
        let at = |i: usize| info["data_offsets"][i].as_u64().expect("an offset") as usize;
        let values = array_in_words(info, &data[at(0)..at(1)]);
        outline = outline + "\n" + name + " " + &values;
    }
    outline + "\n"
}

/// The outline of a broadcast or of statistics of shards: the inverse of [`Outline::container`].
///
/// # Panics
/// If the bytes are not such a file.
pub fn outline_of_shards(bytes: &[u8]) -> String {
    let (json, mut data) = forge::split(&bytes[..bytes.len() - 8], 8);
    let mut header: Value = serde_json::from_slice(json).expect("a container has a JSON header");
    let arrays = header["arrays"].take();
    header.as_object_mut().expect("the header is an object").remove("arrays");
    let types = header["meta"]["types"].as_array().expect("arrays have types").clone();
    let mut outline = header.to_string();
    for array in arrays.as_array().expect("a container has arrays") {
        let (name, length) = (array[0].as_str().expect("a name"), array[1].as_u64());
        let (values, rest) = data.split_at(length.expect("a length") as usize);
        data = &rest[values.len().next_multiple_of(8) - values.len()..];
        let is_own = |parts: &&Value| {
            let part = |i: usize| parts[i].as_str().unwrap_or_default();
            format!("{}/{}", part(0), part(1)) == name
        };
        // The arrays of a vocabulary have no types.
        let kind = types.iter().find(is_own).and_then(|parts| parts[2].as_str());
        let kind = kind.unwrap_or(if name.ends_with("letters") { "u8" } else { "u64" });
        let info = serde_json::json!({ "dtype": kind.to_uppercase(), "shape": [] });
        let words = array_in_words(&info, values).replacen("[]", "", 1);
        outline = outline + "\n" + name + " " + &words;
    }
    outline + "\n"
}

fn array_in_words(info: &Value, bytes: &[u8]) -> String {
    if bytes.get(8..).is_some_and(|rest| rest.starts_with(forge::MODEL.as_bytes())) {
        return format!("model {}", Value::from(outline_of_model(bytes)));
    }
    let shape = &info["shape"];
    match info["dtype"].as_str().expect("an array has a type") {
        "U8" => match std::str::from_utf8(bytes) {
            Ok(letters) if !letters.contains('\n') => format!("letters{shape} {letters}"),
            _ => format!("u8{shape} {}", words(bytes, u8::from_le_bytes)),
        },
        "U16" => format!("u16{shape} {}", words(bytes, u16::from_le_bytes)),
        "U32" => format!("u32{shape} {}", words(bytes, u32::from_le_bytes)),
        "U64" => format!("u64{shape} {}", words(bytes, u64::from_le_bytes)),
        "I32" => format!("i32{shape} {}", words(bytes, i32::from_le_bytes)),
        "I64" => format!("i64{shape} {}", words(bytes, i64::from_le_bytes)),
        "F32" => format!("f32{shape} {}", words(bytes, f32::from_le_bytes)),
        "F64" => format!("f64{shape} {}", words(bytes, f64::from_le_bytes)),
        dtype => panic!("outlines have no arrays of type {dtype}"),
    }
}

fn words<T: ToString, const N: usize>(bytes: &[u8], value_of: fn([u8; N]) -> T) -> String {
    let values = bytes.as_chunks::<N>().0.iter().map(|&value| value_of(value).to_string());
    values.collect::<Vec<_>>().join(" ")
}
