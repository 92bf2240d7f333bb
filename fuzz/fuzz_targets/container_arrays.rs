//! An encoded text or a file of counts that is whole, with any header and any arrays; the input is an outline.
#![no_main]

use latens_fuzz::forge::Outline;
use latens_fuzz::{one_thread, open_container};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: one_thread(), |data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        open_container(&Outline::parse(text).container());
    }
});
