//! A file of named arrays, for what is kept between runs but is no model: encoded texts and counts.
//!
//! ```text
//! magic (8 bytes) | length of the header (u64) | header (JSON) | arrays | checksum (u64, xxh3)
//! ```
//!
//! Header and arrays are padded to multiples of 8 bytes, so that arrays can be used where they lie
//! in a mapped file. The checksum covers every byte before it.

use crate::array::{FlatArray, MappedFile, map_file};
use crate::atomic::write_atomically;
use crate::error::StorageError;
use bytemuck::Pod;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use thiserror::Error;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const MAGIC: &[u8; 8] = b"latens\x1A\n";
/// The version that this program writes, and the newest it reads.
const VERSION: u32 = 1;

/// A file of named arrays could not be written or opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The system refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It is another kind of file, or damaged.
    #[error("`{}` is no {kind} file: {problem}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What was expected of it.
        kind: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    kind: String,
    version: u32,
    meta: serde_json::Value,
    /// Names and lengths in bytes, in the order of the file.
    arrays: Vec<(String, u64)>,
}

/// Takes the arrays of a file in their order, piece by piece.
pub struct ArrayWriter<'a> {
    out: &'a mut dyn Write,
    hash: Xxh3,
    /// Bytes that the arrays still to come must have, in all, with padding.
    missing: u64,
    /// Bytes written of the present array.
    written: u64,
}

/// Writes a file with the arrays named in `arrays`, whose lengths in bytes are known beforehand;
/// `write` must then give each of them, in this order, and [`ArrayWriter::end_array`] after each.
pub fn write_container(
    path: &Path,
    kind: &'static str,
    meta: &impl Serialize,
    arrays: &[(&str, u64)],
    write: impl FnOnce(&mut ArrayWriter<'_>) -> io::Result<()>,
) -> Result<(), StorageError> {
    write_atomically(path, |out| {
        let header = Header {
            kind: kind.to_owned(),
            version: VERSION,
            meta: serde_json::to_value(meta)?,
            arrays: arrays.iter().map(|&(name, bytes)| (name.to_owned(), bytes)).collect(),
        };
        let mut json = serde_json::to_vec(&header)?;
        json.resize(json.len().next_multiple_of(8), b' ');
        let missing = arrays.iter().map(|&(_, bytes)| bytes.next_multiple_of(8)).sum();
        let mut arrays = ArrayWriter { out, hash: Xxh3::new(), missing, written: 0 };
        arrays.raw(MAGIC)?;
        arrays.raw(&(json.len() as u64).to_le_bytes())?;
        arrays.raw(&json)?;
        write(&mut arrays)?;
        assert_eq!(arrays.missing, 0, "the arrays are as long as was said");
        let checksum = arrays.hash.digest();
        arrays.out.write_all(&checksum.to_le_bytes())
    })
}

impl ArrayWriter<'_> {
    /// The next values of the present array.
    pub fn values<T: Pod>(&mut self, values: &[T]) -> io::Result<()> {
        let bytes = bytemuck::cast_slice(values);
        self.written += bytes.len() as u64;
        self.raw(bytes)
    }

    /// The present array is complete.
    pub fn end_array(&mut self) -> io::Result<()> {
        let padded = self.written.next_multiple_of(8);
        self.raw(&[0; 8][..(padded - self.written) as usize])?;
        self.missing = self.missing.checked_sub(padded).expect("no more than was said");
        self.written = 0;
        Ok(())
    }

    /// A whole array.
    pub fn array<T: Pod>(&mut self, values: &[T]) -> io::Result<()> {
        self.values(values)?;
        self.end_array()
    }

    fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }
}

/// A file of named arrays, mapped into memory and checked to the last byte.
#[derive(Debug)]
pub struct Container {
    map: MappedFile,
    path: PathBuf,
    kind: &'static str,
    meta: serde_json::Value,
    arrays: Vec<(String, Range<usize>)>,
}

/// Whether a file begins as those of this format do. A file that cannot be read does not.
pub fn is_container(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut begin).is_ok())
        && begin == *MAGIC
}

impl Container {
    /// Opens a file of the given kind.
    pub fn open(path: &Path, kind: &'static str) -> Result<Container, ContainerError> {
        let map = map_file(path)?;
        match parse(&map, kind) {
            Ok((header, arrays)) => {
                Ok(Container { map, path: path.to_owned(), kind, meta: header.meta, arrays })
            }
            Err(problem) => Err(ContainerError::Unusable { path: path.to_owned(), kind, problem }),
        }
    }

    /// What the writer said besides the arrays.
    pub fn meta<M: DeserializeOwned>(&self) -> Result<M, ContainerError> {
        serde_json::from_value(self.meta.clone())
            .map_err(|error| self.problem(format!("its header is wrong: {error}")))
    }

    /// The array called `name`.
    pub fn array<T: Pod>(&self, name: &str) -> Result<FlatArray<T>, ContainerError> {
        let found = self.arrays.iter().find(|(array, _)| array == name);
        let (_, range) = found.ok_or_else(|| self.problem(format!("it has no array `{name}`")))?;
        FlatArray::mapped(self.map.clone(), range.clone())
            .ok_or_else(|| self.problem(format!("its array `{name}` has an impossible length")))
    }

    /// For a reader who finds that the arrays contradict each other.
    pub fn problem(&self, problem: String) -> ContainerError {
        ContainerError::Unusable { path: self.path.clone(), kind: self.kind, problem }
    }
}

type Arrays = Vec<(String, Range<usize>)>;

fn parse(bytes: &[u8], kind: &str) -> Result<(Header, Arrays), String> {
    let body = bytes.strip_prefix(MAGIC).ok_or("it does not begin as our files do")?;
    let length = body.first_chunk().ok_or("it is cut short")?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (content, checksum) = bytes.split_last_chunk::<8>().ok_or("it is cut short")?;
    // Before the checksum, so that a version with another checksum can still be told to be newer.
    let header_end = length.checked_add(16).filter(|&end| end <= content.len());
    let header_end = header_end.ok_or("it is cut short or damaged")?;
    let header: Header = serde_json::from_slice(&bytes[16..header_end])
        .map_err(|_| "its header is damaged".to_owned())?;
    if header.version > VERSION {
        return Err(format!("it is of version {}, and we read up to {VERSION}", header.version));
    }
    if xxh3_64(content) != u64::from_le_bytes(*checksum) {
        return Err("its checksum is wrong: it is cut short or damaged".to_owned());
    }
    if header.kind != kind {
        return Err(format!("it is a {} file", header.kind));
    }
    let mut begin = header_end;
    let mut arrays = Vec::new();
    for (name, length) in &header.arrays {
        let end = usize::try_from(*length).ok().and_then(|length| begin.checked_add(length));
        let end = end.filter(|&end| end <= content.len()).ok_or("its arrays exceed it")?;
        arrays.push((name.clone(), begin..end));
        begin = end.next_multiple_of(8);
    }
    Ok((header, arrays))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(path: &Path) {
        write_container(path, "toy", &"meta", &[("a", 3), ("b", 16)], |arrays| {
            arrays.array(&[1u8, 2, 3])?;
            arrays.values(&[4u64])?;
            arrays.array(&[5u64])
        })
        .unwrap();
    }

    #[test]
    fn arrays_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toy");
        write(&path);
        let container = Container::open(&path, "toy").unwrap();
        assert_eq!(*container.array::<u8>("a").unwrap(), [1, 2, 3]);
        assert_eq!(*container.array::<u64>("b").unwrap(), [4, 5]);
        assert_eq!(container.meta::<String>().unwrap(), "meta");
        assert!(container.array::<u8>("c").is_err());
        assert!(container.array::<u64>("a").is_err());
        assert!(Container::open(&path, "other").is_err());
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toy");
        write(&path);
        let whole = fs::read(&path).unwrap();
        let opens = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            Container::open(&path, "toy").is_ok()
        };
        assert!(opens(&whole));
        assert!((0..whole.len()).all(|length| !opens(&whole[..length])));
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(!opens(&damaged), "byte {at}");
        }
    }

    #[test]
    fn a_newer_version_is_called_so() {
        let header = br#"{"kind":"toy","version":9,"meta":null,"arrays":[]}  "#;
        let mut bytes = [&MAGIC[..], &(header.len() as u64).to_le_bytes(), header].concat();
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        assert!(parse(&bytes, "toy").err().unwrap().contains("version 9"));
    }
}
