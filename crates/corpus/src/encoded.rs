//! Encoded texts on disk: made in bounded memory from a text of any size, mapped by later runs.

use crate::container::{ArrayWriter, Container, ContainerError, write_container};
use crate::corpus::{Corpus, Lexicon};
use crate::encode::{EncodedRecord, Numbering, Sink, encode, settle};
use crate::error::ReadError;
use crate::input::Inputs;
use crate::preprocessing::Preprocessing;
use crate::sentences::Sentences;
use crate::storage::StorageError;
use crate::strings::StringTable;
use crate::vocab::{Vocab, VocabError, VocabLimits};
use crate::word::WordId;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

const KIND: &str = "encoded corpus";

impl Corpus {
    /// Encodes a text into the file `path`, with the vocabulary learned on the way, and opens it.
    ///
    /// Memory holds the vocabulary and a few blocks of text, whatever the size of the text. Beside
    /// `path` there is room needed for twice the result while this works.
    pub fn encode_to(
        path: &Path,
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<Corpus, ReadError> {
        let mut numbering = Numbering::Learned(StringTable::default());
        let mut spool = Spool::new(path)?;
        encode(inputs, preprocessing, &mut numbering, &mut spool)?;
        let Numbering::Learned(seen) = numbering else { unreachable!("it was made above") };
        spool.counts.resize(seen.len(), 0);
        let (vocab, ids) = settle(&seen, &spool.counts, spool.n_sentences, limits);
        let lexicon = Lexicon { preprocessing: *preprocessing, limits: *limits, vocab };
        spool.write(path, &lexicon, |number| ids[number as usize])?;
        Corpus::open(path)
    }

    /// Encodes a text into the file `path` with a lexicon that is known already, and opens it.
    pub fn encode_with(
        path: &Path,
        inputs: &Inputs,
        lexicon: &Lexicon,
    ) -> Result<Corpus, ReadError> {
        let mut spool = Spool::new(path)?;
        let mut numbering = Numbering::Fixed(&lexicon.vocab);
        encode(inputs, &lexicon.preprocessing, &mut numbering, &mut spool)?;
        spool.write(path, lexicon, WordId)?;
        Corpus::open(path)
    }

    /// Maps an encoded text. Every byte is checked.
    pub fn open(path: &Path) -> Result<Corpus, ReadError> {
        let file = Container::open(path, KIND)?;
        let (preprocessing, limits) = file.meta()?;
        let vocab = read_vocab(&file)?;
        let sentences = Sentences::from_parts(
            file.array("ids")?,
            file.array("offsets")?,
            file.array("segments")?,
            vocab.len(),
        );
        let sentences = sentences.map_err(|problem| file.problem(problem.to_owned()))?;
        Ok(Corpus { lexicon: Lexicon { preprocessing, limits, vocab }, sentences })
    }
}

/// The lengths in bytes of the arrays that [`write_vocab`] writes, under their names.
pub fn vocab_arrays(vocab: &Vocab) -> [(&'static str, u64); 3] {
    let n_letters: usize = vocab.words().map(str::len).sum();
    let n_words = vocab.len() as u64;
    [
        ("vocab.ends", 8 * n_words),
        ("vocab.counts", 8 * n_words),
        ("vocab.letters", n_letters as u64),
    ]
}

/// Writes a vocabulary as three arrays: where each word ends, counts, letters.
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

/// Reads what [`write_vocab`] wrote.
pub fn read_vocab(file: &Container) -> Result<Vocab, ContainerError> {
    let (ends, counts) = (file.array::<u64>("vocab.ends")?, file.array::<u64>("vocab.counts")?);
    let letters = file.array::<u8>("vocab.letters")?;
    Vocab::from_arrays(&letters, &ends, counts.to_vec())
        .map_err(|error: VocabError| file.problem(error.to_string()))
}

/// Sentences on their way to a file, in two nameless temporary files: one of numbers (provisional
/// while the vocabulary is still learned), one of sentence offsets.
struct Spool {
    numbers: BufWriter<File>,
    offsets: BufWriter<File>,
    segments: Vec<u64>,
    counts: Vec<u64>,
    n_tokens: u64,
    n_sentences: u64,
    path: std::path::PathBuf,
}

impl Spool {
    /// Temporary files lie beside `path`, where there is room for the result too.
    fn new(path: &Path) -> Result<Spool, StorageError> {
        let folder = crate::storage::parent(path);
        let file = || tempfile::tempfile_in(folder).map_err(StorageError::new("write", path));
        Ok(Spool {
            numbers: BufWriter::with_capacity(1 << 20, file()?),
            offsets: BufWriter::with_capacity(1 << 20, file()?),
            segments: vec![0],
            counts: Vec::new(),
            n_tokens: 0,
            n_sentences: 0,
            path: path.to_owned(),
        })
    }

    fn write(
        self,
        path: &Path,
        lexicon: &Lexicon,
        id: impl Fn(u32) -> WordId,
    ) -> Result<(), StorageError> {
        let read_again = |file: BufWriter<File>| {
            let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok(BufReader::with_capacity(1 << 20, file))
        };
        let failed = StorageError::new("write", path);
        let files = read_again(self.numbers).and_then(|n| Ok((n, read_again(self.offsets)?)));
        let (numbers, offsets) = files.map_err(failed)?;
        let Lexicon { preprocessing, limits, vocab } = lexicon;
        let [ends, counts, letters] = vocab_arrays(vocab);
        let lengths = [
            ("ids", 4 * self.n_tokens),
            ("offsets", 8 * (self.n_sentences + 1)),
            ("segments", 8 * self.segments.len() as u64),
            ends,
            counts,
            letters,
        ];
        write_container(path, KIND, &(preprocessing, limits), &lengths, |arrays| {
            each_chunk(numbers, |chunk: &mut [u32]| {
                for number in &mut *chunk {
                    let end = *number == crate::corpus::END;
                    *number = if end { WordId::EOS.0 } else { id(*number).0 };
                }
                arrays.values(chunk)
            })?;
            arrays.end_array()?;
            each_chunk(offsets, |chunk: &mut [u64]| arrays.values(chunk))?;
            arrays.array(&[self.n_tokens])?;
            arrays.array(&self.segments)?;
            write_vocab(vocab, arrays)
        })
    }
}

impl Sink for Spool {
    fn record(&mut self, record: EncodedRecord<'_>) -> Result<(), ReadError> {
        for &number in record.words {
            let number = number as usize;
            if number >= self.counts.len() {
                self.counts.resize(number + 1, 0);
            }
            self.counts[number] += 1;
        }
        let mut write = || {
            self.offsets.write_all(&self.n_tokens.to_le_bytes())?;
            self.numbers.write_all(bytemuck::cast_slice(record.words))?;
            self.numbers.write_all(&crate::corpus::END.to_le_bytes())
        };
        write().map_err(StorageError::new("write", &self.path))?;
        self.n_tokens += record.words.len() as u64 + 1;
        self.n_sentences += 1;
        Ok(())
    }

    fn end_of_file(&mut self) -> Result<(), ReadError> {
        self.segments.push(self.n_sentences);
        Ok(())
    }
}

/// Hands all values of a file to `visit`, a chunk at a time.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded;
    use std::fs;

    #[test]
    fn a_text_encoded_on_disk_is_the_text_read_into_memory() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a.txt"), folder.path().join("b.txt"));
        fs::write(&a, embedded::text(embedded::Split::Train)).unwrap();
        fs::write(&b, "a b\n\nc zzz\n").unwrap();
        let inputs = Inputs::new([a, b]);
        let preprocessing = Preprocessing { lowercase: true, ..Preprocessing::default() };
        let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
        let memory = Corpus::read(&inputs, &preprocessing, &limits).unwrap();
        let path = folder.path().join("encoded");
        let disk = Corpus::encode_to(&path, &inputs, &preprocessing, &limits).unwrap();
        assert_same(&memory, &disk);
        let again = Corpus::encode_with(&path, &inputs, &memory.lexicon).unwrap();
        assert_same(&memory, &again);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing temporary is left");
    }

    fn assert_same(a: &Corpus, b: &Corpus) {
        let (x, y) = (&a.lexicon, &b.lexicon);
        assert_eq!((x.preprocessing, x.limits), (y.preprocessing, y.limits));
        assert_eq!(x.vocab.words().collect::<Vec<_>>(), y.vocab.words().collect::<Vec<_>>());
        assert_eq!(x.vocab.counts(), y.vocab.counts());
        assert_eq!(a.sentences.tokens(), b.sentences.tokens());
        assert_eq!(a.sentences.offsets(), b.sentences.offsets());
        assert_eq!(a.sentences.segment_bounds(), b.sentences.segment_bounds());
    }
}
