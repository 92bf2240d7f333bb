//! An encoded text or a file of counts: the bytes as they are, then as header and arrays with a right checksum.
#![no_main]

use latens_fuzz::{forge, one_thread, open_container};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: one_thread(), |data: &[u8]| {
    open_container(data);
    let (header, arrays) = forge::header_and_arrays(data);
    open_container(&forge::container(header, arrays));
});
