//! A text that says it is compressed, with gzip and with zstd.
#![no_main]

use latens::corpus::{Inputs, Invalid, Preprocessing};
use latens_fuzz::{file, one_thread, read_sentences};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: one_thread(), |data: &[u8]| {
    // Some bytes of zstd can stand for a thousand times as many, and more say nothing new.
    if data.len() > 512 {
        return;
    }
    for name in ["text.gz", "text.zst"] {
        for invalid in [Invalid::Error, Invalid::Replace] {
            let inputs = Inputs { invalid, ..Inputs::new([file(name, data)]) };
            read_sentences(&inputs, &Preprocessing::default());
        }
    }
});
