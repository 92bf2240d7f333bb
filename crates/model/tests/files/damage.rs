//! No damaged file is ever opened, and no file makes the program panic.

use crate::toy;
use crate::toy::{ARRAYS, bytes, lexicon, writer};
use latens_model::{Checkpoint, FileError, ModelFile, inspect};
use latens_store::write_atomically;
use proptest::prelude::*;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// What becomes of a file with these bytes.
fn open(bytes: &[u8]) -> Result<ModelFile, FileError> {
    opener()(bytes)
}

/// The same for many files, one at a time in one folder.
fn opener() -> impl Fn(&[u8]) -> Result<ModelFile, FileError> {
    let folder = tempfile::tempdir().unwrap();
    move |bytes| {
        let path = folder.path().join("model");
        fs::write(&path, bytes).unwrap();
        let opened = ModelFile::open(&path);
        // Some file systems wait for the disk when a file is written over, but not for a new one.
        fs::remove_file(&path).unwrap();
        opened
    }
}

fn message(bytes: &[u8]) -> String {
    let error = open(bytes).expect_err("it should have been refused").to_string();
    error.split_once("model` ").expect("the message names the file").1.to_owned()
}

#[test]
fn every_prefix_is_refused() {
    let (bytes, open) = (bytes(), opener());
    for length in 0..bytes.len() {
        let error = open(&bytes[..length]).err().unwrap();
        // After 8 bytes of length and the first letter of the JSON, it is known to be cut.
        let cut = matches!(error, FileError::Truncated { .. });
        assert_eq!(cut, length > 8, "{length}: {error}");
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let (mut bytes, open) = (bytes(), opener());
    assert!(open(&bytes).is_ok());
    for position in 0..bytes.len() {
        // 0x20 turns a hexadecimal digit, and any letter, into the other case.
        for change in [0x01, 0x20, 0x80, 0xff] {
            bytes[position] ^= change;
            assert!(open(&bytes).is_err(), "byte {position} changed by {change:#x}");
            bytes[position] ^= change;
        }
    }
}

#[test]
fn bytes_after_the_end_are_noticed() {
    let longer = [bytes(), vec![0]].concat();
    assert_eq!(message(&longer), "is damaged: it goes on after its last array");
}

#[test]
fn swapped_parts_of_two_good_files_are_noticed() {
    let (one, mut other) = (bytes(), Vec::new());
    let changed = toy::Arrays { u8s: [9; 3], ..ARRAYS };
    writer(&lexicon(), &changed).write_to(&mut other).unwrap();
    assert_eq!(one.len(), other.len());
    let end_of_header = 8 + u64::from_le_bytes(*one.first_chunk().unwrap()) as usize;
    let mixed = [&one[..end_of_header], &other[end_of_header..]].concat();
    assert_eq!(message(&mixed), "is damaged: the checksum of its arrays does not match");
}

#[test]
fn files_of_another_kind_are_told_apart() {
    let tensor = safetensors::tensor::TensorView::new(safetensors::Dtype::U8, vec![1], &[7]);
    let foreign = safetensors::serialize([("weight", tensor.unwrap())], None).unwrap();
    let accents = "é".repeat(1000);
    let cases: [(&[u8], &str); 7] = [
        (b"", "it is empty"),
        (b"Call me Ishmael. Some years ago", "it is a text file"),
        (b"{\"format\":\"latens\",\"header_checksum\":\"", "it is a text file"),
        (accents.as_bytes(), "it is a text file"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "it does not begin like one"),
        (b"latens\x1A\n\0\0\0\0\0\0\0\0", "it holds encoded text or counts"),
        (&foreign, "it is a safetensors file of another program"),
    ];
    for (bytes, found) in cases {
        assert_eq!(message(bytes), format!("is not a latens model: {found}"));
    }
}

#[test]
fn a_folder_and_a_missing_file_are_errors_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path(), &folder.path().join("absent")] {
        assert!(matches!(ModelFile::open(path), Err(FileError::Storage(_))));
        assert!(matches!(inspect(path), Err(FileError::Storage(_))));
        assert!(matches!(Checkpoint::open(path), Err(FileError::Storage(_))));
    }
}

/// A disk with room for `room` bytes more.
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
fn a_full_disk_leaves_nothing_behind() {
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
fn a_device_without_room_is_an_error() {
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
    fn random_bytes_are_no_model(bytes: Vec<u8>) {
        prop_assert!(open(&bytes).is_err());
    }

    #[test]
    fn random_bytes_after_a_good_beginning_are_no_model(
        length in prop_oneof![0..4096u64, any::<u64>()],
        kept in 8..200usize,
        rest: Vec<u8>,
    ) {
        let file = [&length.to_le_bytes()[..], &bytes()[8..kept], &rest].concat();
        prop_assert!(open(&file).is_err());
    }

    #[test]
    fn several_changed_bytes_are_noticed(
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
