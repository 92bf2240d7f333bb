//! Files of taggers.

use super::fixtures::{TEXT, assert_same, encoders, fit, kinds, open, read};
use latens_testkit::{check_damaged_file, check_file_round_trip};

#[test]
fn saved_taggers_open_unchanged_and_damaged_files_are_rejected() {
    let text = read(TEXT);
    for params in kinds() {
        let tagger = fit(&params, &text, encoders());
        check_file_round_trip(&tagger, |tagger, path| tagger.save(path), open, assert_same);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tagger");
        tagger.save(&path).unwrap();
        check_damaged_file(&path, open);
    }
}
