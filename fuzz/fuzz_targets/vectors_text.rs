//! Word vectors as text, with a first line (word2vec, fastText) and without (GloVe). What is read can be written, and
//! read again.
#![no_main]

use latens::corpus::Preprocessing;
use latens::model::compat::{TextFormat, read_text, write_text};
use latens_fuzz::use_vectors;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for format in [TextFormat::Word2vec, TextFormat::Glove] {
        let read = |mut text: &[u8]| read_text(&mut text, format, &Preprocessing::default());
        let Ok((lexicon, vectors)) = read(data) else { continue };
        use_vectors(lexicon, vectors, read, |vocab, vectors, out| {
            write_text(vocab, vectors, format, out)
        });
    }
});
