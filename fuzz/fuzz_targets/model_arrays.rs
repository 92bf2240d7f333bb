//! A model file or checkpoint that is whole, with any header and any arrays; the input is an outline.
#![no_main]

use latens_fuzz::forge::Outline;
use latens_fuzz::open_model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        open_model(&Outline::parse(text).model());
    }
});
