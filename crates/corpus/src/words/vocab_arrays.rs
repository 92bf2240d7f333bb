//! A vocabulary as arrays of a container file.

use crate::words::vocab::{Vocab, VocabError};
use latens_store::{ArrayWriter, Container, ContainerError};
use std::io;

/// Names and lengths in bytes of the arrays that [`write_vocab`] writes.
pub fn vocab_arrays(vocab: &Vocab) -> [(&'static str, u64); 3] {
    let n_letters: usize = vocab.words().map(str::len).sum();
    let n_words = vocab.len() as u64;
    [
        ("vocab.ends", 8 * n_words),
        ("vocab.counts", 8 * n_words),
        ("vocab.letters", n_letters as u64),
    ]
}

/// Writes a vocabulary as three arrays: the end of each word in the text, counts, and the concatenated
/// text of all words.
pub fn write_vocab(vocab: &Vocab, arrays: &mut ArrayWriter<'_>) -> io::Result<()> {
    let mut end = 0;
    for word in vocab.words() {
        end += word.len() as u64;
        arrays.values(&[end])?;
    }
    arrays.end_array()?;
    arrays.array(vocab.counts())?;
    for word in vocab.words() {
        arrays.values(word.as_bytes())?;
    }
    arrays.end_array()
}

/// Reads a vocabulary that [`write_vocab`] wrote.
pub fn read_vocab(file: &Container) -> Result<Vocab, ContainerError> {
    let (ends, counts) = (file.array::<u64>("vocab.ends")?, file.array::<u64>("vocab.counts")?);
    let letters = file.array::<u8>("vocab.letters")?;
    Vocab::from_arrays(&letters, &ends, counts.to_vec())
        .map_err(|error: VocabError| file.problem(error.to_string()))
}
