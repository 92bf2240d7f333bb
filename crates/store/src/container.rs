//! A file of named arrays, for encoded texts and counts. Models have a format of their own.
//!
//! ```text
//! magic (8 bytes) | length of the header (u64) | header (JSON) | arrays | checksum (u64, xxh3)
//! ```
//!
//! Header and arrays are padded to multiples of 8 bytes, so that arrays can be used in place in a
//! mapped file. The checksum covers every byte before it.

use crate::array::{FlatArray, MappedFile, map_bytes, map_file};
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
/// The version that this program writes, and the newest that it reads.
const VERSION: u32 = 1;

/// A container could not be written or opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The operating system reported an error.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The file is of another kind or damaged.
    #[error("`{}` is not a file of kind `{kind}`: {problem}", path.display())]
    Unusable {
        /// Path of the file.
        path: PathBuf,
        /// The expected kind.
        kind: &'static str,
        /// Description of the problem.
        problem: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    kind: String,
    version: u32,
    meta: serde_json::Value,
    /// Names and lengths in bytes, in file order.
    arrays: Vec<(String, u64)>,
}

/// Writes the arrays of a container in order, piece by piece.
pub struct ArrayWriter<'a> {
    out: &'a mut dyn Write,
    hash: Xxh3,
    /// Number of bytes of all arrays that are still missing, including padding.
    missing: u64,
    /// Number of bytes written of the current array.
    written: u64,
}

/// Writes a container.
///
/// `arrays` lists names and lengths in bytes. `write` must write these arrays in this order and call
/// [`ArrayWriter::end_array`] after each.
///
/// # Panics
/// If the arrays that `write` writes differ in total length from `arrays`.
pub fn write_container(
    path: impl AsRef<Path>,
    kind: &'static str,
    meta: &impl Serialize,
    arrays: &[(&str, u64)],
    write: impl FnOnce(&mut ArrayWriter<'_>) -> io::Result<()>,
) -> Result<(), StorageError> {
    write_atomically(path, |out| write_to(out, kind, meta, arrays, write))
}

/// The bytes of a container, as [`write_container`] writes them.
///
/// # Panics
/// If the arrays that `write` writes differ in total length from `arrays`, or the metadata is not JSON.
pub fn container_bytes(
    kind: &'static str,
    meta: &impl Serialize,
    arrays: &[(&str, u64)],
    write: impl FnOnce(&mut ArrayWriter<'_>) -> io::Result<()>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_to(&mut bytes, kind, meta, arrays, write).expect("writing to memory does not fail");
    bytes
}

fn write_to(
    out: &mut dyn Write,
    kind: &'static str,
    meta: &impl Serialize,
    arrays: &[(&str, u64)],
    write: impl FnOnce(&mut ArrayWriter<'_>) -> io::Result<()>,
) -> io::Result<()> {
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
    assert_eq!(arrays.missing, 0, "`write` wrote fewer bytes than declared");
    let checksum = arrays.hash.digest();
    arrays.out.write_all(&checksum.to_le_bytes())
}

impl ArrayWriter<'_> {
    /// Writes the next values of the current array.
    pub fn values<T: Pod>(&mut self, values: &[T]) -> io::Result<()> {
        let bytes = bytemuck::cast_slice(values);
        self.written += bytes.len() as u64;
        self.raw(bytes)
    }

    /// Ends the current array.
    pub fn end_array(&mut self) -> io::Result<()> {
        let padded = self.written.next_multiple_of(8);
        self.raw(&[0; 8][..(padded - self.written) as usize])?;
        self.missing =
            self.missing.checked_sub(padded).expect("`write` wrote more bytes than declared");
        self.written = 0;
        Ok(())
    }

    /// Writes a whole array.
    pub fn array<T: Pod>(&mut self, values: &[T]) -> io::Result<()> {
        self.values(values)?;
        self.end_array()
    }

    fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }
}

/// A memory-mapped file of named arrays whose checksum has been verified.
#[derive(Debug)]
pub struct Container {
    map: MappedFile,
    path: PathBuf,
    kind: &'static str,
    meta: serde_json::Value,
    arrays: Vec<(String, Range<usize>)>,
}

/// Whether a file starts like a container. Returns `false` for files that cannot be read.
pub fn is_container(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    let mut begin = [0; MAGIC.len()];
    path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut begin).is_ok())
        && begin == *MAGIC
}

impl Container {
    /// Opens a file of the given kind and verifies its checksum.
    pub fn open(path: impl AsRef<Path>, kind: &'static str) -> Result<Container, ContainerError> {
        let path = path.as_ref();
        Container::from_map(map_file(path)?, path, kind)
    }

    /// Reads a container from memory and verifies its checksum. Messages call it `name`.
    pub fn from_bytes(
        bytes: &[u8],
        name: impl AsRef<Path>,
        kind: &'static str,
    ) -> Result<Container, ContainerError> {
        let path = name.as_ref();
        let map = map_bytes(bytes).map_err(StorageError::new("read", path))?;
        Container::from_map(map, path, kind)
    }

    fn from_map(
        map: MappedFile,
        path: &Path,
        kind: &'static str,
    ) -> Result<Container, ContainerError> {
        match parse(&map, kind) {
            Ok((header, arrays)) => {
                Ok(Container { map, path: path.to_owned(), kind, meta: header.meta, arrays })
            }
            Err(problem) => Err(ContainerError::Unusable { path: path.to_owned(), kind, problem }),
        }
    }

    /// Returns the metadata.
    pub fn meta<M: DeserializeOwned>(&self) -> Result<M, ContainerError> {
        serde_json::from_value(self.meta.clone())
            .map_err(|error| self.problem(format!("invalid header: {error}")))
    }

    /// Whether there is an array `name`.
    pub fn has(&self, name: &str) -> bool {
        self.arrays.iter().any(|(array, _)| array == name)
    }

    /// Returns the array `name` without copying it.
    pub fn array<T: Pod>(&self, name: &str) -> Result<FlatArray<T>, ContainerError> {
        let found = self.arrays.iter().find(|(array, _)| array == name);
        let (_, range) = found.ok_or_else(|| self.problem(format!("it has no array `{name}`")))?;
        FlatArray::mapped(self.map.clone(), range.clone()).ok_or_else(|| {
            self.problem(format!("the length of its array `{name}` does not fit its type"))
        })
    }

    /// The checksum of the content, which identifies it.
    pub fn checksum(&self) -> u64 {
        u64::from_le_bytes(*self.map.last_chunk().expect("a container ends with its checksum"))
    }

    /// Returns an error for this file, for callers that find inconsistent arrays.
    pub fn problem(&self, problem: String) -> ContainerError {
        ContainerError::Unusable { path: self.path.clone(), kind: self.kind, problem }
    }
}

type Arrays = Vec<(String, Range<usize>)>;

fn parse(bytes: &[u8], kind: &str) -> Result<(Header, Arrays), String> {
    let body = bytes.strip_prefix(MAGIC).ok_or("it does not start like a container file")?;
    let length = body.first_chunk().ok_or("it is truncated")?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (content, checksum) = bytes.split_last_chunk::<8>().ok_or("it is truncated")?;
    // Checked before the checksum, because a newer version may use another checksum.
    let header_end = length.checked_add(16).filter(|&end| end <= content.len());
    let header_end = header_end.ok_or("it is truncated or damaged")?;
    let header: Header = serde_json::from_slice(&bytes[16..header_end])
        .map_err(|_| "its header is damaged".to_owned())?;
    if header.version > VERSION {
        return Err(format!(
            "it has format version {}, newer than the supported version {VERSION}",
            header.version
        ));
    }
    if xxh3_64(content) != u64::from_le_bytes(*checksum) {
        return Err("checksum mismatch: it is truncated or damaged".to_owned());
    }
    if header.kind != kind {
        return Err(format!("it is of kind `{}`", header.kind));
    }
    let mut begin = header_end;
    let mut arrays = Vec::new();
    for (name, length) in &header.arrays {
        let end = usize::try_from(*length).ok().and_then(|length| begin.checked_add(length));
        let end =
            end.filter(|&end| end <= content.len()).ok_or("its arrays extend beyond its end")?;
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
    fn an_opened_container_has_the_arrays_that_were_written() {
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
    fn the_bytes_of_a_container_are_those_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toy");
        write(&path);
        let bytes = container_bytes("toy", &"meta", &[("a", 3), ("b", 16)], |arrays| {
            arrays.array(&[1u8, 2, 3])?;
            arrays.array(&[4u64, 5])
        });
        assert_eq!(bytes, fs::read(&path).unwrap());
        let container = Container::from_bytes(&bytes, "memory", "toy").unwrap();
        assert_eq!(*container.array::<u64>("b").unwrap(), [4, 5]);
        assert_eq!(container.checksum(), Container::open(&path, "toy").unwrap().checksum());
        let error = Container::from_bytes(&bytes[1..], "memory", "toy").unwrap_err();
        assert!(error.to_string().contains("`memory`"), "{error}");
        assert!(Container::from_bytes(&[], "memory", "toy").is_err());
    }

    #[test]
    fn truncation_and_changed_bytes_are_detected() {
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
    fn the_error_for_a_newer_version_names_it() {
        let header = br#"{"kind":"toy","version":9,"meta":null,"arrays":[]}  "#;
        let mut bytes = [&MAGIC[..], &(header.len() as u64).to_le_bytes(), header].concat();
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        assert!(parse(&bytes, "toy").err().unwrap().contains("version 9"));
    }
}
