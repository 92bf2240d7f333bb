//! Reads and verifies headers without reading the arrays.

use super::element::ElementType;
use super::error::FileError;
use super::header::{FORMAT_VERSION, Header};
use super::sealed::unseal;
use latens_store::map_file;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// The result of [`inspect`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// The header.
    #[serde(flatten)]
    pub header: Header,
    /// The arrays, sorted by name.
    pub arrays: Vec<ArrayInfo>,
    /// File size in bytes.
    pub n_bytes: u64,
}

/// Name, type and shape of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArrayInfo {
    /// Name of the array.
    pub name: String,
    /// Element type.
    pub dtype: ElementType,
    /// Length in each dimension.
    pub shape: Vec<usize>,
}

/// Reads and verifies only the header of a model file or checkpoint. This is fast regardless of the
/// size of the arrays. A truncated file is detected.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection, FileError> {
    let path = path.as_ref();
    let map = map_file(path)?;
    let contents = Contents::read(&map, path)?;
    let info = |(name, extent): (String, Extent)| ArrayInfo {
        name,
        dtype: extent.dtype,
        shape: extent.shape,
    };
    let arrays = contents.arrays.into_iter().map(info).collect();
    Ok(Inspection { header: contents.header, arrays, n_bytes: map.len() as u64 })
}

/// A verified header with the positions of the arrays.
pub(super) struct Contents {
    pub(super) header: Header,
    pub(super) arrays: BTreeMap<String, Extent>,
    /// Byte range and expected checksum of all arrays.
    pub(super) data: Range<usize>,
    pub(super) data_checksum: String,
}

/// Type, shape and byte range of an array.
pub(super) struct Extent {
    pub(super) dtype: ElementType,
    pub(super) shape: Vec<usize>,
    pub(super) range: Range<usize>,
}

impl Contents {
    /// Reads the header of the file in `bytes`. The bytes are untrusted.
    pub(super) fn read(bytes: &[u8], path: &Path) -> Result<Contents, FileError> {
        let json = unseal(bytes, path)?;
        let bad_header = |source| FileError::BadHeader { path: path.to_owned(), source };
        // Parsing checks that the arrays are contiguous and match their shapes. Not done with
        // `SafeTensors::read_metadata`, whose last addition can overflow.
        let metadata: Metadata = serde_json::from_slice(json).map_err(bad_header)?;
        let begin = size_of::<u64>() + json.len();
        let data = begin..begin.saturating_add(metadata.data_len());
        check_length(data.end, bytes.len(), path)?;
        let own = metadata.metadata().as_ref();
        let text = |key: &str| own.and_then(|own| own.get(key)).map_or("", String::as_str);
        check_version(text("latens"), path)?;
        let header = serde_json::from_str(text("latens")).map_err(bad_header)?;
        let data_checksum = text("data_checksum").to_owned();
        let arrays = extents(&metadata, begin, path)?;
        Ok(Contents { header, arrays, data, data_checksum })
    }
}

fn check_length(expected: usize, found: usize, path: &Path) -> Result<(), FileError> {
    let path = path.to_owned();
    if found < expected {
        let (expected, found) = (expected as u64, found as u64);
        return Err(FileError::Truncated { path, expected, found });
    }
    if found > expected {
        return Err(FileError::Corrupt {
            path,
            problem: "it has extra bytes after its last array",
        });
    }
    Ok(())
}

/// Checks the version before the rest of the header, whose format may be newer.
fn check_version(header: &str, path: &Path) -> Result<(), FileError> {
    #[derive(Deserialize)]
    struct Versions {
        format_version: u32,
        latens_version: String,
    }
    let versions: Versions = serde_json::from_str(header)
        .map_err(|source| FileError::BadHeader { path: path.to_owned(), source })?;
    if versions.format_version <= FORMAT_VERSION {
        return Ok(());
    }
    Err(FileError::NewerVersion {
        path: path.to_owned(),
        found: versions.format_version,
        known: FORMAT_VERSION,
        written_by: versions.latens_version,
    })
}

fn extents(
    metadata: &Metadata,
    begin: usize,
    path: &Path,
) -> Result<BTreeMap<String, Extent>, FileError> {
    let extent = |(name, info): (String, &TensorInfo)| {
        let range = begin + info.data_offsets.0..begin + info.data_offsets.1;
        let problem = "an array has an unsupported element type";
        let dtype = ElementType::of_safetensors(info.dtype)
            .ok_or_else(|| FileError::Corrupt { path: path.to_owned(), problem })?;
        Ok((name, Extent { dtype, shape: info.shape.clone(), range }))
    };
    metadata.tensors().into_iter().map(extent).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sealed::seal;
    use super::*;
    use proptest::prelude::*;

    const BEGIN: &str =
        r#"{"__metadata__":{"format":"latens","header_checksum":"0000000000000000""#;

    /// A file with a valid checksum and an arbitrary header.
    fn forged(header: &str, arrays: &str, data: &[u8]) -> Result<Contents, FileError> {
        let header = serde_json::to_string(header).unwrap();
        let json = format!(r#"{BEGIN},"data_checksum":"","latens":{header}}}{arrays}}}"#);
        let mut bytes = seal(json).unwrap();
        bytes.extend_from_slice(data);
        Contents::read(&bytes, Path::new("forged"))
    }

    fn header(format_version: u32) -> String {
        let mut header = Header::new("ngram", serde_json::Value::Null);
        header.format_version = format_version;
        serde_json::to_string(&header).unwrap()
    }

    fn array(name: &str, shape: &str, begin: u64, end: u64) -> String {
        format!(r#","{name}":{{"dtype":"F32","shape":[{shape}],"data_offsets":[{begin},{end}]}}"#)
    }

    #[test]
    fn a_valid_header_is_read() {
        let contents = forged(&header(1), &array("a", "2", 0, 8), &[0; 8]).unwrap();
        assert_eq!(contents.header.kind, "ngram");
        assert_eq!(contents.arrays["a"].shape, [2]);
        assert_eq!(contents.arrays["a"].range.len(), 8);
    }

    #[test]
    fn a_newer_format_is_rejected_with_both_versions_even_if_the_rest_is_unknown() {
        let newer = r#"{"format_version": 7, "latens_version": "9.9.9", "kind": ["strange"]}"#;
        let error = forged(newer, "", &[]).err().unwrap();
        let FileError::NewerVersion { found: 7, known: FORMAT_VERSION, .. } = &error else {
            panic!("{error}");
        };
        let message = error.to_string();
        assert!(message.contains("9.9.9") && message.contains("upgrade latens"), "{message}");
    }

    #[test]
    fn malformed_headers_are_rejected() {
        for strange in ["", "[]", "null", r#"{"format_version": -1}"#, r#"{"format_version": 1}"#] {
            let error = forged(strange, "", &[]).err();
            assert!(matches!(error, Some(FileError::BadHeader { .. })), "{strange}: {error:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(forged(&deep, "", &[]).is_err());
        assert!(forged(&header(1), &format!(r#","a":{deep}"#), &[]).is_err());
    }

    #[test]
    fn arrays_with_invalid_offsets_are_rejected() {
        let lies = [
            array("a", "2", 0, 16),
            array("a", "4", 0, 16),
            array("a", "2", 8, 16),
            array("a", "2", 8, 0),
            array("a", "2", u64::MAX, 7),
            array("a", "18446744073709551615", 0, 8),
            array("a", "9223372036854775808,2", 0, 8),
            array("a", "4611686018427387904", 0, 0),
            array("a", "-1", 0, 8),
            array("a", "1", 0, 4) + &array("b", "1", 0, 4),
            array("a", "1", 0, 4) + &array("b", "1", 8, 12),
            array("a", "2", 0, 8).replace("F32", "F33"),
            array("a", "2305843009213693951", 0, 9223372036854775804),
            String::new(),
        ];
        for lie in lies {
            assert!(forged(&header(1), &lie, &[0; 8]).is_err(), "{lie}");
        }
    }

    /// Each array is valid by itself, but the end of the file would be past 2^64.
    #[test]
    fn arrays_whose_end_overflows_are_rejected() {
        let n_elements = (1u64 << 59) - 1;
        let n_bytes = 4 * n_elements;
        let large =
            |i| array(&format!("{i}"), &format!("{n_elements}"), i * n_bytes, (i + 1) * n_bytes);
        let small = array("small", "4", 8 * n_bytes, 8 * n_bytes + 16);
        let arrays = (0..8).map(large).collect::<String>() + &small;
        let error = forged(&header(1), &arrays, &[0; 8]).err();
        assert!(matches!(error, Some(FileError::Truncated { .. })), "{error:?}");
    }

    proptest! {
        #[test]
        fn a_forged_header_never_panics(header: String, arrays in "[,:{}\\[\\]\"a-z0-9]{0,60}") {
            prop_assert!(forged(&header, &arrays, &[0; 8]).is_err());
        }

        #[test]
        fn forged_offsets_never_panic(
            offsets in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..5)
        ) {
            let forge = |(i, &(length, begin, end)): (usize, &(u64, u64, u64))| {
                array(&i.to_string(), &length.to_string(), begin, end)
            };
            let arrays: String = offsets.iter().enumerate().map(forge).collect();
            prop_assert!(forged(&header(1), &arrays, &[0; 8]).is_err());
        }
    }
}
