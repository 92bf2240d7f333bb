//! Word vectors in the binary format of word2vec. What is read can be written, and read again.
#![no_main]

use latens::corpus::Preprocessing;
use latens::model::compat::{read_binary, write_binary};
use latens_fuzz::use_vectors;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let read = |mut bytes: &[u8]| read_binary(&mut bytes, &Preprocessing::default());
    let Ok((lexicon, vectors)) = read(data) else { return };
    use_vectors(lexicon, vectors, read, |vocab, vectors, out| write_binary(vocab, vectors, out));
});
