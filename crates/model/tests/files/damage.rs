//! Damaged files are rejected without a panic.

use crate::toy;
use crate::toy::{ARRAYS, bytes, lexicon, writer};
use latens_model::{Checkpoint, FileError, ModelFile, inspect};
use latens_store::write_atomically;
use proptest::prelude::*;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes the bytes to a file and opens it.
fn open(bytes: &[u8]) -> Result<ModelFile, FileError> {
    opener()(bytes)
}

/// Like [`open`] for many files, one at a time in one folder.
fn opener() -> impl Fn(&[u8]) -> Result<ModelFile, FileError> {
    let folder = tempfile::tempdir().unwrap();
    move |bytes| {
        let path = folder.path().join("model");
        fs::write(&path, bytes).unwrap();
        let opened = ModelFile::open(&path);
        // Some file systems sync when a file is overwritten, but not for a new one.
        fs::remove_file(&path).unwrap();
        opened
    }
}

fn message(bytes: &[u8]) -> String {
    let error = open(bytes).expect_err("it should have been refused").to_string();
    error.split_once("model` ").expect("the message names the file").1.to_owned()
}

#[test]
fn every_prefix_is_rejected() {
    let (bytes, open) = (bytes(), opener());
    for length in 0..bytes.len() {
        let error = open(&bytes[..length]).err().unwrap();
        // The length (8 bytes) and the first character of the JSON suffice to detect truncation.
        let cut = matches!(error, FileError::Truncated { .. });
        assert_eq!(cut, length > 8, "{length}: {error}");
    }
}

#[test]
fn every_changed_byte_is_detected() {
    let (mut bytes, open) = (bytes(), opener());
    assert!(open(&bytes).is_ok());
    for position in 0..bytes.len() {
        // 0x20 switches the case of a letter.
        for change in [0x01, 0x20, 0x80, 0xff] {
            bytes[position] ^= change;
            assert!(open(&bytes).is_err(), "byte {position} changed by {change:#x}");
            bytes[position] ^= change;
        }
    }
}

#[test]
fn extra_bytes_at_the_end_are_detected() {
    let longer = [bytes(), vec![0]].concat();
    assert_eq!(message(&longer), "is damaged: it has extra bytes after its last array");
}

#[test]
fn swapped_parts_of_two_valid_files_are_detected() {
    let (one, mut other) = (bytes(), Vec::new());
    let changed = toy::Arrays { u8s: [9; 3], ..ARRAYS };
    writer(&lexicon(), &changed).write_to(&mut other).unwrap();
    assert_eq!(one.len(), other.len());
    let end_of_header = 8 + u64::from_le_bytes(*one.first_chunk().unwrap()) as usize;
    let mixed = [&one[..end_of_header], &other[end_of_header..]].concat();
    assert_eq!(message(&mixed), "is damaged: the checksum of its arrays does not match");
}

#[test]
fn the_error_identifies_files_of_other_formats() {
    let tensor = safetensors::tensor::TensorView::new(safetensors::Dtype::U8, vec![1], &[7]);
    let foreign = safetensors::serialize([("weight", tensor.unwrap())], None).unwrap();
    let accents = "é".repeat(1000);
    let cases: [(&[u8], &str); 7] = [
        (b"", "it is empty"),
        (b"Call me Ishmael. Some years ago", "it is a text file"),
        (b"{\"format\":\"latens\",\"header_checksum\":\"", "it is a text file"),
        (accents.as_bytes(), "it is a text file"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "the file type is unknown"),
        (b"latens\x1A\n\0\0\0\0\0\0\0\0", "it holds encoded text or counts"),
        (&foreign, "it is a safetensors file from another program"),
    ];
    for (bytes, found) in cases {
        assert_eq!(message(bytes), format!("is not a latens model: {found}"));
    }
}

#[test]
fn folders_and_missing_files_are_storage_errors() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path(), &folder.path().join("absent")] {
        assert!(matches!(ModelFile::open(path), Err(FileError::Storage(_))));
        assert!(matches!(inspect(path), Err(FileError::Storage(_))));
        assert!(matches!(Checkpoint::open(path), Err(FileError::Storage(_))));
    }
}

/// A disk with `room` free bytes.
struct SmallDisk<W> {
    disk: W,
    room: usize,
}

impl<W: Write> Write for SmallDisk<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= bytes.len();
        self.disk.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.disk.flush()
    }
}

#[test]
fn a_full_disk_leaves_no_files_behind() {
    let (lexicon, folder) = (lexicon(), tempfile::tempdir().unwrap());
    let (path, length) = (folder.path().join("model"), bytes().len());
    let save = |room| {
        write_atomically(&path, |disk| {
            writer(&lexicon, &ARRAYS).write_to(&mut SmallDisk { disk, room })
        })
    };
    for room in (0..length).step_by(97).chain([length - 1]) {
        assert!(save(room).is_err(), "{room}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{room}");
    }
    save(length).unwrap();
    assert!(ModelFile::open(&path).is_ok());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_device_is_an_error() {
    let error = writer(&lexicon(), &ARRAYS).save(Path::new("/dev/full")).unwrap_err();
    assert!(matches!(error, FileError::Storage(_)), "{error}");
}

#[test]
fn a_failed_save_keeps_the_old_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    writer(&lexicon(), &ARRAYS).save(&path).unwrap();
    let old = ModelFile::open(&path).unwrap();
    let failed = write_atomically(&path, |disk| {
        writer(&lexicon(), &ARRAYS).write_to(&mut SmallDisk { disk, room: 100 })
    });
    assert!(failed.is_err());
    assert_eq!(fs::read(&path).unwrap(), bytes());
    assert!(old.array::<f32>("f32s", &[2, 2]).is_ok());
}

proptest! {
    #[test]
    fn random_bytes_are_rejected(bytes: Vec<u8>) {
        prop_assert!(open(&bytes).is_err());
    }

    #[test]
    fn random_bytes_after_a_valid_beginning_are_rejected(
        length in prop_oneof![0..4096u64, any::<u64>()],
        kept in 8..200usize,
        rest: Vec<u8>,
    ) {
        let file = [&length.to_le_bytes()[..], &bytes()[8..kept], &rest].concat();
        prop_assert!(open(&file).is_err());
    }

    #[test]
    fn several_changed_bytes_are_detected(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..9)
    ) {
        let (good, mut bad) = (bytes(), bytes());
        for (position, change) in changes {
            let position = position.index(bad.len());
            bad[position] ^= change;
        }
        prop_assert_eq!(open(&bad).is_ok(), good == bad);
    }
}
