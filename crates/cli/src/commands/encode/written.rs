//! The rows of a text, computed some sentences at a time and written in order.

use crate::errors::hinted;
use crate::interrupts::catch_interrupts;
use crate::output::{Output, print, thousands};
use crate::progress::Watcher;
use anyhow::Result;
use latens::corpus::{Corpus, WordId};
use latens::model::compat::npy;
use latens::model::{DeviceError, FeatureRows, FitError, Model, Progress, TokenEncoder};
use latens::store::write_atomically;
use rayon::prelude::*;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// Maximum size of a dense matrix: 16 GiB.
const MAX_BYTES: u128 = 1 << 34;

/// The format of a file of features.
#[derive(Clone, Copy)]
pub(super) enum Format {
    Npy,
    Tsv,
}

impl Format {
    /// The format of the file with a path, by its extension.
    pub(super) fn of(path: &Path) -> Result<Format> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("npy") => Ok(Format::Npy),
            Some("tsv") => Ok(Format::Tsv),
            _ => Err(hinted(
                format!("cannot infer a format from `{}`", path.display()),
                "use the extension `.npy` (dense, for NumPy) or `.tsv` (text)",
            )),
        }
    }
}

/// Computes the rows of each of several sentences.
pub(super) type EncodeAll<'a> =
    Box<dyn FnMut(&[&[WordId]]) -> Result<Vec<FeatureRows>, DeviceError> + 'a>;

/// Computes rows while a file is written, and keeps the error of a device, which is not a file error.
struct Rows<'a> {
    encode_all: EncodeAll<'a>,
    error: Option<DeviceError>,
}

impl<'a> Rows<'a> {
    fn new(encode_all: EncodeAll<'a>) -> Rows<'a> {
        Rows { encode_all, error: None }
    }

    fn of(&mut self, sentences: &[&[WordId]]) -> io::Result<Vec<FeatureRows>> {
        (self.encode_all)(sentences).map_err(|error| {
            self.error = Some(error);
            io::Error::other("the device failed")
        })
    }

    fn finish(self) -> Result<(), DeviceError> {
        self.error.map_or(Ok(()), Err)
    }
}

/// A text with its encoder.
pub(super) struct Encoding<'a> {
    text: &'a Corpus,
    /// The model's id of every word of the text.
    ids: Vec<WordId>,
    encoder: &'a dyn TokenEncoder,
}

impl<'a> Encoding<'a> {
    pub(super) fn new(
        text: &'a Corpus,
        model: &dyn Model,
        encoder: &'a dyn TokenEncoder,
    ) -> Encoding<'a> {
        let vocab = &text.lexicon.vocab;
        let mut ids: Vec<WordId> = vocab.words().map(|word| model.word_id(word)).collect();
        ids[WordId::EOS.index()] = WordId::EOS;
        Encoding { text, ids, encoder }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.text.sentences.n_tokens() - self.text.sentences.len()
    }

    /// Writes a file and returns the number of words without features.
    pub(super) fn save(
        &self,
        path: &Path,
        format: Format,
        encode_all: EncodeAll<'_>,
        output: &Output,
    ) -> Result<usize> {
        let (n_rows, dim) = (self.n_rows(), self.encoder.n_features());
        let n_bytes = n_rows as u128 * dim as u128 * 4;
        if matches!(format, Format::Npy) && n_bytes > MAX_BYTES {
            return Err(hinted(
                format!(
                    "a dense matrix of {} words and {} features needs {} GiB",
                    thousands(n_rows),
                    thousands(dim),
                    thousands((n_bytes >> 30) as usize)
                ),
                "write `.tsv`, which omits zeros, or encode the text in parts",
            ));
        }
        catch_interrupts();
        let mut watcher = Watcher::new(output, None, None, false);
        let mut stopped = false;
        let mut watch = |done: usize| {
            let progress = Progress {
                phase: "encode",
                done: done as u64,
                total: Some(n_rows as u64),
                unit: "words",
                ..Progress::default()
            };
            stopped = watcher.watch(&progress) == ControlFlow::Break(());
            !stopped
        };
        let (mut n_empty, mut rows) = (0, Rows::new(encode_all));
        let written = write_atomically(path, |out| {
            n_empty = match format {
                Format::Npy => self.write_npy(out, &mut rows, &mut watch)?,
                Format::Tsv => self.write_tsv(out, &mut rows, &mut watch)?,
            };
            Ok(())
        });
        if stopped {
            return watcher.finish(Err(FitError::Interrupted));
        }
        watcher.finish(Ok(()))?;
        rows.finish()?;
        written?;
        Ok(n_empty)
    }

    /// Writes `.tsv` to standard output and returns the number of words without features.
    pub(super) fn print(&self, encode_all: EncodeAll<'_>) -> Result<usize> {
        let (mut n_empty, mut rows) = (0, Rows::new(encode_all));
        let printed = print(|out| {
            let mut out = BufWriter::new(out);
            n_empty = self.write_tsv(&mut out, &mut rows, &mut |_| true)?;
            out.flush()
        });
        rows.finish()?;
        printed?;
        Ok(n_empty)
    }

    fn write_npy(
        &self,
        out: &mut dyn Write,
        encoder: &mut Rows<'_>,
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> io::Result<usize> {
        let (mut n_empty, mut dense) = (0, vec![0f32; self.encoder.n_features()]);
        npy::write_header(out, self.n_rows(), dense.len())?;
        self.each_sentence(
            encoder,
            |words, rows| (words.len(), rows),
            |(n_words, rows)| {
                for (columns, values) in rows.iter().take(n_words) {
                    n_empty += usize::from(columns.is_empty());
                    dense.fill(0.0);
                    let entries = columns.iter().zip(values);
                    entries.for_each(|(&column, &value)| dense[column as usize] = value);
                    npy::write_values(out, &dense)?;
                }
                Ok(())
            },
            watch,
        )?;
        Ok(n_empty)
    }

    fn write_tsv(
        &self,
        out: &mut dyn Write,
        encoder: &mut Rows<'_>,
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> io::Result<usize> {
        let mut n_empty = 0;
        self.each_sentence(
            encoder,
            |words, rows| {
                let rows_of_words = rows.iter().take(words.len());
                let n_empty = rows_of_words.filter(|(columns, _)| columns.is_empty()).count();
                (self.lines(words, &rows), n_empty)
            },
            |(lines, n)| {
                n_empty += n;
                out.write_all(lines.as_bytes())
            },
            watch,
        )?;
        Ok(n_empty)
    }

    fn lines(&self, words: &[WordId], rows: &FeatureRows) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        for (&word, (columns, values)) in words.iter().zip(rows.iter()) {
            text.push_str(self.text.lexicon.vocab.word(word));
            for (column, value) in columns.iter().zip(values).filter(|(_, value)| **value != 0.0) {
                write!(text, "\t{column}:{value}").expect("a string takes all");
            }
            text.push('\n');
        }
        text.push('\n');
        text
    }

    /// Encodes batches of sentences in parallel and writes them in order. `work` gets the words of a sentence and their
    /// rows, followed by that of the end of the sentence; `watch` gets the number of encoded words and returns whether to
    /// continue.
    fn each_sentence<T: Send>(
        &self,
        encoder: &mut Rows<'_>,
        work: impl Fn(&[WordId], FeatureRows) -> T + Sync,
        mut write: impl FnMut(T) -> io::Result<()>,
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> io::Result<()> {
        let (sentences, mut n_done) = (&self.text.sentences, 0);
        for batch in self.batches() {
            let ids: Vec<Vec<WordId>> =
                batch.clone().map(|idx| self.ids_of(sentences.get(idx))).collect();
            let ids: Vec<&[WordId]> = ids.iter().map(Vec::as_slice).collect();
            let encoded: Vec<T> = encoder
                .of(&ids)?
                .into_par_iter()
                .zip(batch.clone())
                .map(|(rows, idx)| {
                    let sentence = sentences.get(idx);
                    work(&sentence[..sentence.len() - 1], rows)
                })
                .collect();
            encoded.into_iter().try_for_each(&mut write)?;
            n_done += batch.map(|idx| sentences.get(idx).len() - 1).sum::<usize>();
            if !watch(n_done) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(())
    }

    /// The model's ids of the words of a sentence and of its end.
    fn ids_of(&self, sentence: &[WordId]) -> Vec<WordId> {
        sentence.iter().map(|word| self.ids[word.index()]).collect()
    }

    /// Batches of sentences whose rows fit in memory for any number of columns.
    fn batches(&self) -> Vec<std::ops::Range<usize>> {
        const MAX_NUMBERS: usize = 1 << 24;
        let max_tokens = (MAX_NUMBERS / self.encoder.values_per_token().max(1)).clamp(256, 1 << 16);
        let (offsets, n) = (self.text.sentences.offsets(), self.text.sentences.len());
        let (mut batches, mut begin) = (Vec::new(), 0);
        while begin < n {
            let limit = offsets[begin] + max_tokens as u64;
            let fitting = offsets[begin + 1..].partition_point(|&end| end <= limit);
            let end = begin + fitting.max(1);
            batches.push(begin..end);
            begin = end;
        }
        batches
    }
}
