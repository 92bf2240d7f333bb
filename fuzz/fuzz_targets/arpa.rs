//! A language model in the ARPA format. What is read can be written, and read again.
#![no_main]

use latens::corpus::Preprocessing;
use latens::ngram::Ngram;
use latens_fuzz::use_model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let read = |mut text: &[u8]| Ngram::read_arpa(&mut text, &Preprocessing::default());
    let Ok(model) = read(data) else { return };
    let mut text = Vec::new();
    model.write_arpa(&mut text).expect("what was read can be written");
    let again = read(&text).expect("what was written can be read");
    assert_eq!(again.n_ngrams(), model.n_ngrams());
    use_model(&model);
});
