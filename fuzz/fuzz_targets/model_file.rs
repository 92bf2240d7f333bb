//! A model file or checkpoint: the bytes as they are, then as header and arrays with right checksums.
#![no_main]

use latens_fuzz::{forge, open_model};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    open_model(data);
    let (header, arrays) = forge::header_and_arrays(data);
    open_model(&forge::model(header, arrays));
});
