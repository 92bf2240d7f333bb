//! Encoded text on its way to a file, in bounded memory.

use crate::cleaning::learn::{NumberCleaning, NumberedDocuments};
use crate::cleaning::rules::Cleaning;
use crate::encode::{END, EncodedRecord, Sink, count_words};
use crate::error::ReadError;
use crate::lexicon::Lexicon;
use crate::names::NamesBuilder;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::VocabLimits;
use crate::words::vocab_arrays::{read_vocab, vocab_arrays, write_vocab};
use crate::words::word_id::WordId;
use latens_store::{
    ArrayWriter, Container, ContainerError, StorageError, StringTable, parent_folder,
    write_container,
};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The kind of text that is encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpoolOf {
    /// Records end with the end-of-sentence token.
    Sentences,
    /// Records have labels.
    Documents,
}

impl SpoolOf {
    /// Name of the file kind in messages.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            SpoolOf::Sentences => "encoded corpus",
            SpoolOf::Documents => "encoded documents",
        }
    }
}

/// Records in two unnamed temporary files: one holds numbers (provisional while the vocabulary is
/// unknown), the other offsets.
pub(crate) struct Spool {
    of: SpoolOf,
    numbers: BufWriter<File>,
    offsets: BufWriter<File>,
    segments: Vec<u64>,
    labels: NamesBuilder,
    splits: NamesBuilder,
    keys: NamesBuilder,
    counts: Vec<u64>,
    n_numbers: u64,
    n_records: u64,
    path: PathBuf,
}

impl Spool {
    /// Creates the temporary files in the folder of `path`, which needs space for the result anyway.
    pub(crate) fn new(path: &Path, of: SpoolOf) -> Result<Spool, StorageError> {
        let folder = parent_folder(path);
        let file = || tempfile::tempfile_in(folder).map_err(StorageError::new("write", path));
        Ok(Spool {
            of,
            numbers: BufWriter::with_capacity(1 << 20, file()?),
            offsets: BufWriter::with_capacity(1 << 20, file()?),
            segments: vec![0],
            labels: NamesBuilder::default(),
            splits: NamesBuilder::default(),
            keys: NamesBuilder::default(),
            counts: Vec::new(),
            n_numbers: 0,
            n_records: 0,
            path: path.to_owned(),
        })
    }

    /// The counts of the first `n` provisional numbers.
    pub(crate) fn counts(&mut self, n: usize) -> &[u64] {
        self.counts.resize(n, 0);
        &self.counts
    }

    /// Number of records.
    pub(crate) fn n_records(&self) -> u64 {
        self.n_records
    }

    /// Writes all records to the file `path`, with each number mapped to a word by `id`. The words
    /// `extra` are those that the vocabulary lacks.
    pub(crate) fn write(
        self,
        path: &Path,
        lexicon: &Lexicon,
        extra: &StringTable,
        id: impl Fn(u32) -> WordId,
    ) -> Result<(), StorageError> {
        let files = read_again(self.numbers).and_then(|n| Ok((n, read_again(self.offsets)?)));
        let (numbers, offsets) = files.map_err(StorageError::new("write", path))?;
        let Lexicon { preprocessing, limits, vocab, cleaning } = lexicon;
        let mut lengths = vec![
            ("ids", 4 * self.n_numbers),
            ("offsets", 8 * (self.n_records + 1)),
            ("segments", 8 * self.segments.len() as u64),
        ];
        lengths.extend(vocab_arrays(vocab));
        let documents = self.of == SpoolOf::Documents;
        if documents {
            let numbers = 4 * self.n_records;
            lengths
                .extend(["labels.numbers", "splits.numbers", "keys.numbers"].map(|n| (n, numbers)));
            lengths.extend(string_arrays("labels.ends", "labels.letters", &self.labels.names));
            lengths.extend(string_arrays("splits.ends", "splits.letters", &self.splits.names));
            lengths.extend(string_arrays("keys.ends", "keys.letters", &self.keys.names));
            lengths.extend(string_arrays("extra.ends", "extra.letters", extra));
        }
        let meta = Meta::new(*preprocessing, *limits, cleaning);
        write_container(path, self.of.kind(), &meta, &lengths, |arrays| {
            each_chunk(numbers, |chunk: &mut [u32]| {
                for number in &mut *chunk {
                    *number = if *number == END { WordId::EOS.0 } else { id(*number).0 };
                }
                arrays.values(chunk)
            })?;
            arrays.end_array()?;
            each_chunk(offsets, |chunk: &mut [u64]| arrays.values(chunk))?;
            arrays.array(&[self.n_numbers])?;
            arrays.array(&self.segments)?;
            write_vocab(vocab, arrays)?;
            if documents {
                arrays.array(&self.labels.of_record)?;
                arrays.array(&self.splits.of_record)?;
                arrays.array(&self.keys.of_record)?;
                for strings in [&self.labels.names, &self.splits.names, &self.keys.names, extra] {
                    write_strings(strings, arrays)?;
                }
            }
            Ok(())
        })
    }
}

/// The lexicon of an encoded text, without its vocabulary. Text that is not cleaned has two entries, as in
/// files of version 0.1.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Meta {
    Clean(Preprocessing, VocabLimits, Box<Cleaning>),
    Bare(Preprocessing, VocabLimits),
}

impl Meta {
    fn new(preprocessing: Preprocessing, limits: VocabLimits, cleaning: &Cleaning) -> Meta {
        if cleaning.is_empty() {
            Meta::Bare(preprocessing, limits)
        } else {
            Meta::Clean(preprocessing, limits, Box::new(cleaning.clone()))
        }
    }
}

impl NumberedDocuments for Spool {
    fn each(&mut self, visit: &mut dyn FnMut(&[u32])) -> Result<(), ReadError> {
        let mut read = |spool: &mut Spool| -> io::Result<()> {
            let mut numbers = rewound(&mut spool.numbers)?;
            let mut offsets = rewound(&mut spool.offsets)?;
            let (mut begin, mut document) = (0, Vec::new());
            for idx in 0..spool.n_records {
                // The first offset is 0, and the end of the last record is not written yet.
                if idx == 0 {
                    next_offset(&mut offsets)?;
                }
                let is_last = idx + 1 == spool.n_records;
                let end = if is_last { spool.n_numbers } else { next_offset(&mut offsets)? };
                document.resize((end - begin) as usize, 0u32);
                numbers.read_exact(bytemuck::cast_slice_mut(&mut document))?;
                visit(&document);
                begin = end;
            }
            Ok(())
        };
        let path = self.path.clone();
        Ok(read(self).map_err(StorageError::new("read", &path))?)
    }
}

/// Reads a file from its beginning; later records are written to its end.
fn rewound(file: &mut BufWriter<File>) -> io::Result<BufReader<File>> {
    file.flush()?;
    let mut file = file.get_ref().try_clone()?;
    file.rewind()?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

fn next_offset(offsets: &mut BufReader<File>) -> io::Result<u64> {
    let mut bytes = [0; 8];
    offsets.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

impl Spool {
    /// The same documents after cleaning.
    pub(crate) fn cleaned(mut self, cleaning: &NumberCleaning) -> Result<Spool, ReadError> {
        let mut clean = Spool::new(&self.path, self.of)?;
        let (mut words, mut failure) = (Vec::new(), None);
        self.each(&mut |document| {
            words.clear();
            cleaning.clean(document, |word| words.push(word));
            if let Err(error) = clean.words(&words) {
                failure.get_or_insert(error);
            }
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        let Spool { labels, splits, keys, segments, .. } = self;
        Ok(Spool { labels, splits, keys, segments, ..clean })
    }

    /// Number of tokens.
    pub(crate) fn n_numbers(&self) -> u64 {
        self.n_numbers
    }

    /// Adds the words of a record.
    fn words(&mut self, words: &[u32]) -> Result<(), ReadError> {
        count_words(&mut self.counts, words);
        let end: &[u32] = match self.of {
            SpoolOf::Sentences => &[END],
            SpoolOf::Documents => &[],
        };
        let mut write = || {
            self.offsets.write_all(&self.n_numbers.to_le_bytes())?;
            self.numbers.write_all(bytemuck::cast_slice(words))?;
            self.numbers.write_all(bytemuck::cast_slice(end))
        };
        write().map_err(StorageError::new("write", &self.path))?;
        self.n_numbers += (words.len() + end.len()) as u64;
        self.n_records += 1;
        Ok(())
    }
}

impl Sink for Spool {
    fn record(&mut self, record: EncodedRecord<'_>) -> Result<(), ReadError> {
        self.words(record.words)?;
        if self.of == SpoolOf::Documents {
            self.labels.push(&record.names.label);
            self.splits.push(&record.names.split);
            self.keys.push(&record.names.id);
        }
        Ok(())
    }

    fn end_of_file(&mut self) -> Result<(), ReadError> {
        self.segments.push(self.n_records);
        Ok(())
    }
}

fn read_again(file: BufWriter<File>) -> io::Result<BufReader<File>> {
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// Calls `visit` with all values of a file, one chunk at a time.
fn each_chunk<T: bytemuck::Pod>(
    mut file: BufReader<File>,
    mut visit: impl FnMut(&mut [T]) -> io::Result<()>,
) -> io::Result<()> {
    let mut chunk = vec![T::zeroed(); 1 << 16];
    loop {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut chunk);
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read(&mut bytes[filled..])? {
                0 => break,
                n => filled += n,
            }
        }
        if filled == 0 {
            return Ok(());
        }
        visit(&mut chunk[..filled / size_of::<T>()])?;
    }
}

/// Reads the lexicon of an encoded text.
pub(crate) fn read_lexicon(file: &Container) -> Result<Lexicon, ContainerError> {
    let vocab = read_vocab(file)?;
    Ok(match file.meta()? {
        Meta::Bare(preprocessing, limits) => Lexicon::new(preprocessing, limits, vocab),
        Meta::Clean(preprocessing, limits, cleaning) => {
            Lexicon { preprocessing, limits, vocab, cleaning: *cleaning }
        }
    })
}

fn string_arrays<'n>(
    ends: &'n str,
    letters: &'n str,
    strings: &StringTable,
) -> [(&'n str, u64); 2] {
    [(ends, 8 * strings.len() as u64), (letters, strings.letters().len() as u64)]
}

fn write_strings(strings: &StringTable, arrays: &mut ArrayWriter<'_>) -> io::Result<()> {
    strings.ends().try_for_each(|end| arrays.values(&[end]))?;
    arrays.end_array()?;
    arrays.array(strings.letters().as_bytes())
}

/// Reads the strings that are stored under `name`.
pub(crate) fn read_strings(file: &Container, name: &str) -> Result<StringTable, ContainerError> {
    let ends = file.array::<u64>(&format!("{name}.ends"))?;
    let letters = file.array::<u8>(&format!("{name}.letters"))?;
    StringTable::from_arrays(&letters, &ends)
        .ok_or_else(|| file.problem(format!("its arrays `{name}` are inconsistent")))
}
