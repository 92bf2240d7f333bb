//! Reading and writing word vectors in the formats of other programs.

use crate::data::foreign_format::ForeignFormat;
use crate::errors::hinted;
use anyhow::{Context, Result, bail, ensure};
use latens::corpus::{Lexicon, Preprocessing, open_input};
use latens::model::compat::{
    TextFormat, VectorsError, npy, read_binary, read_text, write_binary, write_text,
};
use latens::model::{Vectors, WordVectors};
use latens::store::write_atomically;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

/// Reads word vectors in the format of another program.
pub(crate) fn read(
    file: &mut dyn BufRead,
    format: ForeignFormat,
    words: Option<&Path>,
    preprocessing: &Preprocessing,
) -> Result<Vectors> {
    check_words(format, words)?;
    let (lexicon, vectors) = match format {
        ForeignFormat::Word2vec | ForeignFormat::Fasttext => {
            read_text(file, TextFormat::Word2vec, preprocessing)?
        }
        ForeignFormat::Glove => read_text(file, TextFormat::Glove, preprocessing)?,
        ForeignFormat::Word2vecBinary => read_binary(file, preprocessing)?,
        ForeignFormat::Npy => {
            let path = words.expect("the words were checked");
            let reading = || format!("cannot read `{}`", path.display());
            let mut words = BufReader::new(open_input(path).with_context(reading)?);
            npy::read(file, &mut words, preprocessing)?
        }
        ForeignFormat::Arpa | ForeignFormat::Paths => bail!("this format does not contain vectors"),
    };
    Ok(Vectors::new(lexicon, vectors))
}

/// Writes the vectors of a model, and for `npy` its words to a separate file.
pub(crate) fn write(
    lexicon: &Lexicon,
    vectors: &WordVectors,
    format: ForeignFormat,
    words: Option<&Path>,
    out: &mut dyn Write,
) -> Result<()> {
    let vocab = &lexicon.vocab;
    match format {
        ForeignFormat::Word2vec | ForeignFormat::Fasttext => {
            write_text(vocab, vectors, TextFormat::Word2vec, out)?;
        }
        ForeignFormat::Glove => write_text(vocab, vectors, TextFormat::Glove, out)?,
        ForeignFormat::Word2vecBinary => write_binary(vocab, vectors, out)?,
        ForeignFormat::Npy => {
            let path = words.expect("the words were checked");
            let mut failed = None;
            let written = write_atomically(path, |words| {
                npy::write(vocab, vectors, out, words).map_err(|error| match error {
                    VectorsError::Io(error) => error,
                    error => {
                        failed = Some(error);
                        io::Error::other("the word list is incomplete")
                    }
                })
            });
            failed.map_or(Ok(()), Err)?;
            written?;
        }
        ForeignFormat::Arpa | ForeignFormat::Paths => bail!("this format does not contain vectors"),
    }
    Ok(())
}

/// Checks that a word list is given for `npy`, and only for it.
pub(crate) fn check_words(format: ForeignFormat, words: Option<&Path>) -> Result<()> {
    let is_npy = matches!(format, ForeignFormat::Npy);
    ensure!(is_npy || words.is_none(), "`--words` requires the format `npy`");
    if is_npy && words.is_none() {
        return Err(hinted(
            "a `.npy` file does not contain words",
            "pass a word list with `--words FILE`, one word per line",
        ));
    }
    Ok(())
}
