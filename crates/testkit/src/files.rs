//! The exam of what a model writes to a file.

use latens_math::Rng;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

const N_DAMAGES: usize = 200;

/// Whether a model that is saved and opened is the same model: `same` (which panics if two models
/// differ) passes, saving it again gives the same bytes, and no damaged copy can be opened.
///
/// # Panics
/// If it is not.
pub fn check_file_round_trip<M, S: Debug, O: Debug>(
    model: &M,
    save: impl Fn(&M, &Path) -> Result<(), S>,
    open: impl Fn(&Path) -> Result<M, O>,
    same: impl Fn(&M, &M),
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    save(model, &first).expect("the model can be saved");
    let opened = open(&first).expect("what was saved can be opened");
    same(model, &opened);
    save(&opened, &second).expect("the opened model can be saved");
    let bytes = |path| fs::read(path).expect("the file can be read");
    assert!(bytes(&first) == bytes(&second), "the opened model is saved as other bytes");
    check_damaged_file(&first, open);
}

/// Whether copies of a good file with an end cut off, a byte changed or a byte added are all
/// refused, at random but always the same places.
///
/// # Panics
/// If one is opened, or the good file is not.
pub fn check_damaged_file<M, O: Debug>(path: &Path, open: impl Fn(&Path) -> Result<M, O>) {
    open(path).map(drop).expect("the file is good");
    let good = fs::read(path).expect("the file can be read");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let damaged = folder.path().join("damaged");
    let refused = |bytes: &[u8], what: &dyn Fn() -> String| {
        fs::write(&damaged, bytes).expect("a temporary file can be written");
        assert!(open(&damaged).is_err(), "a file was opened {}", what());
        // Some file systems wait for the disk when a file is written over, but not for a new one.
        fs::remove_file(&damaged).expect("a temporary file can be removed");
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
    refused(&[&good[..], b"\0"].concat(), &|| "with a byte too many".to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complaint;
    use std::io;

    /// A model of some bytes and a checksum, which a fault leaves out of something.
    #[derive(Clone, PartialEq, Debug)]
    struct Bytes(Vec<u8>);

    fn model() -> Bytes {
        // Above 50, so that no cut copy ends with what could be its length.
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
    fn a_model_that_comes_back_changed_is_found() {
        let changed = |path: &Path| open(path).map(|Bytes(bytes)| Bytes(bytes[1..].to_vec()));
        let complaint = complaint(|| check_file_round_trip(&model(), save, changed, same));
        assert!(complaint.contains("left"), "{complaint}");
    }

    #[test]
    fn what_the_comparison_forgets_is_found_in_the_bytes() {
        let changed = |path: &Path| open(path).map(|Bytes(bytes)| Bytes(bytes[1..].to_vec()));
        let complaint = complaint(|| check_file_round_trip(&model(), save, changed, |_, _| {}));
        assert!(complaint.contains("other bytes"), "{complaint}");
    }

    #[test]
    fn damage_that_goes_unnoticed_is_found() {
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
    fn a_missing_end_that_goes_unnoticed_is_found() {
        let save = |model: &Bytes, path: &Path| fs::write(path, &model.0);
        let open = |path: &Path| {
            let bytes = fs::read(path).map_err(|_| "unreadable")?;
            if model().0.starts_with(&bytes) { Ok(Bytes(bytes)) } else { Err("damaged") }
        };
        let complaint = complaint(|| check_file_round_trip(&model(), save, open, same));
        assert!(complaint.contains("of 50 bytes"), "{complaint}");
    }

    #[test]
    fn bytes_too_many_that_go_unnoticed_are_found() {
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
        assert!(complaint.contains("a byte too many"), "{complaint}");
    }
}
