//! One sentence a line.
#![no_main]

use latens::corpus::Format;
use latens_fuzz::{one_thread, read_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: one_thread(), |data: &[u8]| {
    read_text(Format::Lines, data);
});
