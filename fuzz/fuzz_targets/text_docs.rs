//! One document a line, in fields.
#![no_main]

use latens::corpus::{Field, Format};
use latens_fuzz::{one_thread, read_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: one_thread(), |data: &[u8]| {
    let fields = vec![Field::Label, Field::Skip, Field::Split, Field::Text];
    read_text(Format::Docs(fields), data);
});
