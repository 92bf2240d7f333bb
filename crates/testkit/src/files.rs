//! Checks of model files.

use latens_math::Rng;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

const N_DAMAGES: usize = 200;

/// Checks that saving and opening a model changes nothing.
///
/// `same` must accept the model and its opened copy (it panics if two models differ), saving the copy
/// must give the same bytes, and no damaged copy of the file may open.
///
/// # Panics
/// If the check fails.
pub fn check_file_round_trip<M, S: Debug, O: Debug>(
    model: &M,
    save: impl Fn(&M, &Path) -> Result<(), S>,
    open: impl Fn(&Path) -> Result<M, O>,
    same: impl Fn(&M, &M),
) {
    let folder = tempfile::tempdir().expect("cannot create a temporary folder");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    save(model, &first).expect("cannot save the model");
    let opened = open(&first).expect("cannot open the saved model");
    same(model, &opened);
    save(&opened, &second).expect("cannot save the opened model");
    let bytes = |path| fs::read(path).expect("cannot read the file");
    assert!(bytes(&first) == bytes(&second), "saving the opened model gives different bytes");
    check_damaged_file(&first, open);
}

/// Checks that `open` refuses copies of a valid file that are truncated, or have one byte changed or
/// added. Positions are random but the same in every run.
///
/// # Panics
/// If a damaged copy opens, or the valid file does not.
pub fn check_damaged_file<M, O: Debug>(path: &Path, open: impl Fn(&Path) -> Result<M, O>) {
    open(path).map(drop).expect("cannot open the valid file");
    let good = fs::read(path).expect("cannot read the file");
    let folder = tempfile::tempdir().expect("cannot create a temporary folder");
    let damaged = folder.path().join("damaged");
    let refused = |bytes: &[u8], what: &dyn Fn() -> String| {
        fs::write(&damaged, bytes).expect("cannot write a temporary file");
        assert!(open(&damaged).is_err(), "opened a file {}", what());
        // On some file systems, overwriting a file waits for the disk, but creating one does not.
        fs::remove_file(&damaged).expect("cannot remove a temporary file");
    };
    let mut rng = Rng::new(1);
    let mut below = |n: usize| (rng.uniform() * n as f64) as usize;
    for _ in 0..N_DAMAGES {
        let length = below(good.len());
        refused(&good[..length], &|| format!("with {length} of {} bytes", good.len()));
        let (position, change) = (below(good.len()), 1 + below(255) as u8);
        let mut changed = good.clone();
        changed[position] ^= change;
        refused(&changed, &|| format!("with byte {position} changed by {change:#x}"));
    }
    refused(&[&good[..], b"\0"].concat(), &|| "with an extra byte".to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complaint;
    use std::io;

    /// A model of some bytes, stored with its length and a checksum.
    #[derive(Clone, PartialEq, Debug)]
    struct Bytes(Vec<u8>);

    fn model() -> Bytes {
        // Larger than 50, so that no truncated copy ends with a valid length.
        Bytes((100..150).collect())
    }

    fn sum(bytes: &[u8]) -> u8 {
        bytes.iter().fold(bytes.len() as u8, |sum, byte| sum.rotate_left(1) ^ byte)
    }

    fn save(model: &Bytes, path: &Path) -> io::Result<()> {
        fs::write(path, [&model.0[..], &[model.0.len() as u8, sum(&model.0)]].concat())
    }

    fn open(path: &Path) -> Result<Bytes, &'static str> {
        let mut bytes = fs::read(path).map_err(|_| "unreadable")?;
        let (found, length) = (bytes.pop().ok_or("empty")?, bytes.pop().ok_or("short")?);
        if usize::from(length) != bytes.len() || found != sum(&bytes) {
            return Err("damaged");
        }
        Ok(Bytes(bytes))
    }

    fn same(a: &Bytes, b: &Bytes) {
        assert_eq!(a, b);
    }

    #[test]
    fn a_correct_format_passes() {
        check_file_round_trip(&model(), save, open, same);
    }

    #[test]
    fn a_model_that_changes_when_saved_is_detected() {
        let changed = |path: &Path| open(path).map(|Bytes(bytes)| Bytes(bytes[1..].to_vec()));
        let complaint = complaint(|| check_file_round_trip(&model(), save, changed, same));
        assert!(complaint.contains("left"), "{complaint}");
    }

    #[test]
    fn a_change_that_the_comparison_misses_is_detected_in_the_bytes() {
        let changed = |path: &Path| open(path).map(|Bytes(bytes)| Bytes(bytes[1..].to_vec()));
        let complaint = complaint(|| check_file_round_trip(&model(), save, changed, |_, _| {}));
        assert!(complaint.contains("different bytes"), "{complaint}");
    }

    #[test]
    fn a_reader_that_accepts_changed_bytes_is_detected() {
        let careless = |path: &Path| {
            let bytes = fs::read(path).map_err(|_| "unreadable")?;
            let length = bytes.len().checked_sub(2).ok_or("short")?;
            if usize::from(bytes[length]) != length {
                return Err("short");
            }
            Ok(Bytes(bytes[..length].to_vec()))
        };
        let complaint = complaint(|| check_file_round_trip(&model(), save, careless, same));
        assert!(complaint.contains("changed by"), "{complaint}");
    }

    #[test]
    fn a_reader_that_accepts_truncated_files_is_detected() {
        let save = |model: &Bytes, path: &Path| fs::write(path, &model.0);
        let open = |path: &Path| {
            let bytes = fs::read(path).map_err(|_| "unreadable")?;
            if model().0.starts_with(&bytes) { Ok(Bytes(bytes)) } else { Err("damaged") }
        };
        let complaint = complaint(|| check_file_round_trip(&model(), save, open, same));
        assert!(complaint.contains("of 50 bytes"), "{complaint}");
    }

    #[test]
    fn a_reader_that_accepts_extra_bytes_is_detected() {
        let careless = |path: &Path| {
            let bytes = fs::read(path).map_err(|_| "unreadable")?;
            let bytes = bytes.get(..52).ok_or("short")?;
            if sum(&bytes[..50]) != bytes[51] || bytes[50] != 50 {
                Err("damaged")
            } else {
                Ok(Bytes(bytes[..50].to_vec()))
            }
        };
        let complaint = complaint(|| check_file_round_trip(&model(), save, careless, same));
        assert!(complaint.contains("an extra byte"), "{complaint}");
    }
}
