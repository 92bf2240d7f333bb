//! Word vectors as input: a latens model or a file of another program.

use crate::data::foreign_format::ForeignFormat;
use crate::data::foreign_vectors;
use crate::errors::hinted;
use crate::output::Output;
use crate::paths::check_input;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use latens::corpus::{Lexicon, Preprocessing, open_input};
use latens::model::file::inspect;
use latens::model::{Coverage, WordVectors};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Fraction of tokens with a vector below which a warning is printed.
const ENOUGH: f64 = 0.5;

/// Format of a file of word vectors.
#[derive(Args)]
pub(crate) struct VectorFormatArgs {
    /// Format of the vectors [default: latens model, or by the file's extension and first line]
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Word vectors")]
    vectors_format: Option<VectorFormat>,
    /// Word list of vectors in the format `npy`, one word per line
    #[arg(long, value_name = "FILE", help_heading = "Word vectors")]
    vectors_words: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum VectorFormat {
    /// Text with a header line of the number of words and dimensions
    Word2vec,
    /// Binary format of word2vec
    Word2vecBinary,
    /// Text without a header line
    Glove,
    /// Same as `word2vec`
    Fasttext,
    /// NumPy matrix, with `--vectors-words`
    Npy,
}

impl From<VectorFormat> for ForeignFormat {
    fn from(format: VectorFormat) -> ForeignFormat {
        match format {
            VectorFormat::Word2vec => ForeignFormat::Word2vec,
            VectorFormat::Word2vecBinary => ForeignFormat::Word2vecBinary,
            VectorFormat::Glove => ForeignFormat::Glove,
            VectorFormat::Fasttext => ForeignFormat::Fasttext,
            VectorFormat::Npy => ForeignFormat::Npy,
        }
    }
}

impl VectorFormatArgs {
    /// Rejects files that cannot be read.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        check_input(path)?;
        self.vectors_words.as_deref().map_or(Ok(()), check_input)
    }

    /// The words and vectors in a file.
    pub(crate) fn read(&self, path: &Path) -> Result<(Lexicon, WordVectors)> {
        if self.vectors_format.is_none() && inspect(path).is_ok() {
            let model = &*latens::open(path)?;
            let Some(vectors) = model.word_vectors() else {
                return Err(hinted(
                    format!(
                        "`{}` is {}, which has no word vectors",
                        path.display(),
                        model.description()
                    ),
                    "train vectors with `latens train word2vec`, or use pretrained ones such as GloVe",
                ));
            };
            return Ok((model.lexicon().clone(), vectors.into_owned()));
        }
        let reading = || format!("cannot read the vectors in `{}`", path.display());
        let mut file = BufReader::new(open_input(path).with_context(reading)?);
        let format = match self.vectors_format {
            Some(format) => format.into(),
            None => guess(path, &mut file).with_context(reading)?,
        };
        foreign_vectors::check_words(format, self.vectors_words.as_deref())?;
        let words = self.vectors_words.as_deref();
        let model = foreign_vectors::read(&mut file, format, words, &Preprocessing::default());
        let model = model.with_context(reading)?;
        let vectors = model.vectors().clone();
        Ok((model.lexicon().clone(), vectors))
    }
}

/// The format of a file by its extension, and else by whether its first line is two numbers.
fn guess(path: &Path, file: &mut impl BufRead) -> Result<ForeignFormat> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "npy" => return Ok(ForeignFormat::Npy),
        "bin" => return Ok(ForeignFormat::Word2vecBinary),
        "vec" => return Ok(ForeignFormat::Fasttext),
        _ => {}
    }
    let begin = file.fill_buf()?;
    let line = begin.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let is_header = fields.len() == 2 && fields.iter().all(|field| field.parse::<u64>().is_ok());
    Ok(if is_header { ForeignFormat::Word2vec } else { ForeignFormat::Glove })
}

/// Tells how much of a vocabulary has vectors, and warns if that is little.
pub(crate) fn tell_coverage(coverage: &Coverage, output: &Output) {
    let share = 100.0 * coverage.share();
    let Coverage { n_words, n_found, n_lowercased, .. } = coverage;
    output.note(&format!(
        "{n_found} of {n_words} words have a vector ({n_lowercased} of them by their lowercase form): \
         {share:.1} % of the tokens"
    ));
    if coverage.share() < ENOUGH {
        output.note(&format!(
            "warning: the vectors cover only {share:.1} % of the tokens; all others are ignored \
             (`--lowercase` and `--tokenize words` may help)"
        ));
    }
}
