//! A model file or checkpoint that is whole, with any header and any arrays; the input is an outline.
#![no_main]

use latens_fuzz::forge::{Outline, change_value};
use latens_fuzz::open_model;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        open_model(&Outline::parse(text).model());
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    change_value(data, size, max_size, seed).unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});
