//! Model files as bytes: read without the library, so that a defect of its reader cannot hide itself.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &str = r#"{"__metadata__":{"format":"latens","header_checksum":""#;
const ZEROS: &str = "0000000000000000";

/// The header and the arrays of a model file.
#[derive(Clone)]
pub(crate) struct Contents {
    /// The header of ours: kind, parameters, preprocessing, training.
    pub(crate) header: Value,
    /// Type, shape and bytes, by name.
    pub(crate) arrays: BTreeMap<String, Array>,
}

/// An array of a model file.
#[derive(Clone, PartialEq)]
pub(crate) struct Array {
    pub(crate) dtype: String,
    shape: Value,
    pub(crate) bytes: Vec<u8>,
}

impl Array {
    /// Size of an element in bytes.
    pub(crate) fn size(&self) -> usize {
        match self.dtype.as_str() {
            "F64" | "U64" | "I64" => 8,
            "F32" | "U32" | "I32" => 4,
            _ => 1,
        }
    }
}

impl Contents {
    pub(crate) fn read(path: &Path) -> Result<Contents> {
        let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let (length, rest) = bytes.split_first_chunk::<8>().context("the file is too short")?;
        let length = u64::from_le_bytes(*length) as usize;
        let (json, data) = rest.split_at_checked(length).context("the header is cut off")?;
        let json: Value = serde_json::from_slice(json)?;
        let header = json["__metadata__"]["latens"].as_str().context("the file has no header")?;
        let mut arrays = BTreeMap::new();
        for (name, info) in json.as_object().into_iter().flatten() {
            if name != "__metadata__" {
                let at = |i: usize| info["data_offsets"][i].as_u64().unwrap_or(0) as usize;
                let dtype = info["dtype"].as_str().unwrap_or_default().to_owned();
                let (shape, bytes) = (info["shape"].clone(), data.get(at(0)..at(1)));
                let bytes = bytes.context("an array is cut off")?.to_vec();
                arrays.insert(name.clone(), Array { dtype, shape, bytes });
            }
        }
        Ok(Contents { header: serde_json::from_str(header)?, arrays })
    }

    /// What differs from another model. Facts about the training run, such as its time, may differ.
    pub(crate) fn difference(&self, other: &Contents) -> Option<String> {
        for field in ["kind", "parameters", "preprocessing", "vocab_limits"] {
            if self.header[field] != other.header[field] {
                return Some(format!("the header differs in `{field}`"));
            }
        }
        let names = |contents: &Contents| contents.arrays.keys().cloned().collect::<Vec<_>>();
        if names(self) != names(other) {
            return Some("the arrays have other names".to_owned());
        }
        let differs = |(name, array): (&String, &Array)| other.arrays[name] != *array;
        let mut arrays = self.arrays.iter();
        arrays.find(|&array| differs(array)).map(|(name, _)| format!("the array `{name}` differs"))
    }

    /// The file, with valid checksums.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut arrays: Vec<_> = self.arrays.iter().collect();
        arrays.sort_by_key(|(_, array)| std::cmp::Reverse(array.size()));
        let (mut infos, mut data) = (String::new(), Vec::new());
        for (name, Array { dtype, shape, bytes }) in arrays {
            let begin = data.len();
            data.extend_from_slice(bytes);
            let (name, end) = (Value::from(name.as_str()), data.len());
            infos += &format!(
                r#",{name}:{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#
            );
        }
        let header = Value::from(self.header.to_string());
        let checksum = xxh3_64(&data);
        let json = format!(
            r#"{MAGIC}{ZEROS}","data_checksum":"{checksum:016x}","latens":{header}}}{infos}}}"#
        );
        let mut bytes = [&[0; 8], json.as_bytes()].concat();
        bytes.resize(bytes.len().next_multiple_of(64), b' ');
        let length = bytes.len() as u64 - 8;
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        let checksum = format!("{:016x}", xxh3_64(&bytes));
        let digits = 8 + MAGIC.len()..8 + MAGIC.len() + ZEROS.len();
        ensure!(bytes[digits.clone()] == *ZEROS.as_bytes(), "the format of model files changed");
        bytes[digits].copy_from_slice(checksum.as_bytes());
        bytes.extend(data);
        Ok(bytes)
    }
}
