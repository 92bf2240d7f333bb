//! Word vectors as a matrix of numpy with a list of words; the input is `words NUL matrix`. What is read can be
//! written, and read again.
#![no_main]

use latens::corpus::{Lexicon, Preprocessing};
use latens::model::WordVectors;
use latens::model::compat::{VectorsError, npy};
use latens_fuzz::use_vectors;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok((lexicon, vectors)) = read(data) else { return };
    use_vectors(lexicon, vectors, read, |vocab, vectors, out| {
        let (mut words, mut matrix) = (Vec::new(), Vec::new());
        npy::write(vocab, vectors, &mut matrix, &mut words)?;
        out.extend([&words[..], &[0], &matrix].concat());
        Ok(())
    });
});

fn read(data: &[u8]) -> Result<(Lexicon, WordVectors), VectorsError> {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (mut words, mut matrix) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    npy::read(&mut matrix, &mut words, &Preprocessing::default())
}
