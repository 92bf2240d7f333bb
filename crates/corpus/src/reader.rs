//! Options for reading text, and the short ways to read it.

use crate::annotated::tagged::TaggedSentences;
use crate::cleaning::rules::Cleaning;
use crate::corpus::Corpus;
use crate::document_corpus::DocumentCorpus;
use crate::documents::{Documents, FlatDocuments};
use crate::error::ReadError;
use crate::input::columns::Columns;
use crate::input::format::Format;
use crate::input::inputs::{Inputs, Invalid, ReadWatch};
use crate::input::source::{Memory, Source};
use crate::token_ids::names::TokenNames;
use crate::words::normalize::Normalize;
use crate::words::preprocessing::{Digits, Preprocessing};
use crate::words::tokenize::Tokenize;
use crate::words::vocab::VocabLimits;
use std::iter;
use std::marker::PhantomData;
use std::path::Path;

/// Options for reading text into a `T`: a [`Corpus`], a [`DocumentCorpus`] or [`TaggedSentences`].
///
/// ```
/// use latens_corpus::{Corpus, Digits, Tokenize};
///
/// let reader = Corpus::reader().tokenize(Tokenize::Words).lowercase(true).digits(Digits::Zero);
/// let corpus = reader.read_lines(["In 1987, it rained."])?;
/// assert_eq!(corpus.sentences.n_tokens(), 7); // in 0000 , it rained . <eos>
/// # Ok::<(), latens_corpus::ReadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader<T> {
    inputs: Inputs,
    preprocessing: Preprocessing,
    limits: VocabLimits,
    cleaning: Cleaning,
    result: PhantomData<fn() -> T>,
}

/// Results of a [`Reader`] that learn a vocabulary: [`Corpus`] and [`DocumentCorpus`].
pub trait LearnsVocab {}
impl LearnsVocab for Corpus {}
impl LearnsVocab for DocumentCorpus {}

/// Options for files.
impl<T> Reader<T> {
    fn new() -> Reader<T> {
        Reader {
            inputs: Inputs::default(),
            preprocessing: Preprocessing::default(),
            limits: VocabLimits::default(),
            cleaning: Cleaning::default(),
            result: PhantomData,
        }
    }

    /// Format of the files. By default it is inferred from the extension of each file. Text in memory
    /// has no format.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.inputs.format = Some(format);
        self
    }

    /// Columns of tables and keys of JSON objects that hold the text, the identifier and the label.
    #[must_use]
    pub fn columns(mut self, columns: Columns) -> Self {
        self.inputs.columns = columns;
        self
    }

    /// Names of the tokens in arrays of token ids; see [`Format::Ids`].
    #[must_use]
    pub fn token_names(mut self, names: TokenNames) -> Self {
        self.inputs.token_names = Some(names);
        self
    }

    /// How to handle bytes that are not UTF-8. Default: [`Invalid::Error`].
    #[must_use]
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.inputs.invalid = invalid;
        self
    }

    /// Maximum length of a line in bytes, or of a sentence in a format with one token per line; see
    /// [`Inputs::max_line`]. Default: 256 MiB. Text in memory has no limit.
    #[must_use]
    pub fn max_line(mut self, max_line: usize) -> Self {
        self.inputs.max_line = max_line;
        self
    }

    /// Callback that receives the number of bytes read so far.
    #[must_use]
    pub fn watch(mut self, watch: impl Fn(u64) + Send + Sync + 'static) -> Self {
        self.inputs.watch = Some(ReadWatch::new(watch));
        self
    }

    fn inputs(&self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Inputs {
        let paths = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        Inputs { paths, ..self.inputs.clone() }
    }
}

/// Options for preprocessing and vocabulary.
impl<T: LearnsVocab> Reader<T> {
    /// How text is split into words. Default: [`Tokenize::Whitespace`].
    #[must_use]
    pub fn tokenize(mut self, tokenize: Tokenize) -> Self {
        self.preprocessing.tokenize = tokenize;
        self
    }

    /// Whether to convert text to lowercase. Default: `false`.
    #[must_use]
    pub fn lowercase(mut self, lowercase: bool) -> Self {
        self.preprocessing.lowercase = lowercase;
        self
    }

    /// How digits are normalized. Default: [`Digits::Keep`].
    #[must_use]
    pub fn digits(mut self, digits: Digits) -> Self {
        self.preprocessing.digits = digits;
        self
    }

    /// Unicode normalization. Default: [`Normalize::Nfc`].
    #[must_use]
    pub fn normalize(mut self, normalize: Normalize) -> Self {
        self.preprocessing.normalize = normalize;
        self
    }

    /// Minimum count of a word; rarer words become `<unk>`. Default: 1.
    #[must_use]
    pub fn min_count(mut self, min_count: u64) -> Self {
        self.limits.min_count = min_count;
        self
    }

    /// Maximum number of words, including `<unk>` and `<eos>`; 0 means no limit. Default: 0.
    #[must_use]
    pub fn max_vocab(mut self, max_vocab: usize) -> Self {
        self.limits.max_vocab = max_vocab;
        self
    }

    /// All preprocessing options at once.
    #[must_use]
    pub fn preprocessing(mut self, preprocessing: Preprocessing) -> Self {
        self.preprocessing = preprocessing;
        self
    }

    /// All vocabulary limits at once.
    #[must_use]
    pub fn limits(mut self, limits: VocabLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// Reading a [`Corpus`].
impl Reader<Corpus> {
    /// Reads a file and learns its vocabulary; `-` is the standard input.
    pub fn read_file(&self, path: impl AsRef<Path>) -> Result<Corpus, ReadError> {
        self.read_files(iter::once(path))
    }

    /// Reads several files, in order, and learns their vocabulary.
    pub fn read_files(
        &self,
        paths: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<Corpus, ReadError> {
        Corpus::read(&self.inputs(paths), &self.preprocessing, &self.limits)
    }

    /// Reads text in memory, one sentence per line, and learns its vocabulary.
    ///
    /// An empty line is an empty sentence. A line break inside a line is whitespace.
    pub fn read_lines(
        &self,
        lines: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Corpus, ReadError> {
        Corpus::read_source(&mut Memory::new("lines", lines), &self.preprocessing, &self.limits)
    }

    /// Reads sentences in memory that are split into words already, and learns their vocabulary.
    ///
    /// Words may contain spaces. Fails if a word is empty or contains a tab or a line break.
    ///
    /// ```
    /// use latens_corpus::Corpus;
    ///
    /// let corpus = Corpus::reader().read_tokens([vec!["New York", "sleeps"], vec!["Paris", "sleeps"]])?;
    /// assert_eq!(corpus.lexicon.vocab.len(), 5); // with `<unk>` and `<eos>`
    /// # Ok::<(), latens_corpus::ReadError>(())
    /// ```
    pub fn read_tokens<W: AsRef<str>>(
        &self,
        sentences: impl IntoIterator<Item = impl IntoIterator<Item = W>>,
    ) -> Result<Corpus, ReadError> {
        let mut source = Memory::in_format(Format::Jsonl, "tokens", json_lines(sentences));
        Corpus::read_source(&mut source, &self.preprocessing, &self.limits)
    }
}

/// Tokens as records of [`Format::Jsonl`].
fn json_lines<W: AsRef<str>>(
    records: impl IntoIterator<Item = impl IntoIterator<Item = W>>,
) -> impl Iterator<Item = String> {
    records.into_iter().map(|tokens| {
        let tokens: Vec<W> = tokens.into_iter().collect();
        let text: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        serde_json::json!({ "text": text }).to_string()
    })
}

/// Reading a [`DocumentCorpus`].
impl Reader<DocumentCorpus> {
    /// Which words are left out, and which are joined to phrases. Default: none.
    #[must_use]
    pub fn cleaning(mut self, cleaning: Cleaning) -> Self {
        self.cleaning = cleaning;
        self
    }

    /// Reads a file and learns its vocabulary; `-` is the standard input. Every file of a folder is one
    /// document.
    pub fn read_file(&self, path: impl AsRef<Path>) -> Result<DocumentCorpus, ReadError> {
        self.read_files(iter::once(path))
    }

    /// Reads several files, in order, and learns their vocabulary.
    pub fn read_files(
        &self,
        paths: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<DocumentCorpus, ReadError> {
        let inputs = Inputs { folders: true, ..self.inputs(paths) };
        DocumentCorpus::read_clean(&inputs, &self.preprocessing, &self.limits, &self.cleaning)
    }

    /// Reads documents in memory, one per string, and learns their vocabulary.
    ///
    /// An empty string is an empty document. A line break inside a document is whitespace.
    pub fn read_texts(
        &self,
        texts: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<DocumentCorpus, ReadError> {
        self.read_memory(&mut Memory::new("texts", texts))
    }

    fn read_memory(&self, source: &mut impl Source) -> Result<DocumentCorpus, ReadError> {
        let Reader { preprocessing, limits, cleaning, .. } = self;
        let flat = FlatDocuments::default();
        DocumentCorpus::read_source(source, flat, preprocessing, limits, cleaning)
    }

    /// Reads documents in memory that are split into words already, and learns their vocabulary.
    ///
    /// Words may contain spaces. Fails if a word is empty or contains a tab or a line break.
    pub fn read_tokens<W: AsRef<str>>(
        &self,
        documents: impl IntoIterator<Item = impl IntoIterator<Item = W>>,
    ) -> Result<DocumentCorpus, ReadError> {
        self.read_memory(&mut Memory::in_format(Format::Jsonl, "tokens", json_lines(documents)))
    }
}

/// Reading [`TaggedSentences`].
impl Reader<TaggedSentences> {
    /// Reads a file with tags; `-` is the standard input.
    pub fn read_file(&self, path: impl AsRef<Path>) -> Result<TaggedSentences, ReadError> {
        self.read_files(iter::once(path))
    }

    /// Reads several files with tags, in order.
    pub fn read_files(
        &self,
        paths: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<TaggedSentences, ReadError> {
        TaggedSentences::read(&self.inputs(paths))
    }
}

/// Short ways to read a corpus.
impl Corpus {
    /// Options for reading a corpus.
    pub fn reader() -> Reader<Corpus> {
        Reader::new()
    }

    /// Reads a file with default options.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Corpus, ReadError> {
        Corpus::reader().read_file(path)
    }

    /// Reads text in memory with default options, one sentence per line. Tokens are separated by
    /// whitespace.
    pub fn from_lines(
        lines: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Corpus, ReadError> {
        Corpus::reader().read_lines(lines)
    }
}

/// Short ways to read documents.
impl DocumentCorpus {
    /// Options for reading documents.
    pub fn reader() -> Reader<DocumentCorpus> {
        Reader::new()
    }

    /// Reads a file with default options.
    pub fn read_file(path: impl AsRef<Path>) -> Result<DocumentCorpus, ReadError> {
        DocumentCorpus::reader().read_file(path)
    }

    /// Reads documents in memory with default options, one per string. Tokens are separated by
    /// whitespace.
    pub fn from_texts(
        texts: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<DocumentCorpus, ReadError> {
        DocumentCorpus::reader().read_texts(texts)
    }
}

impl Documents {
    /// Reads documents in memory and learns their vocabulary; see [`DocumentCorpus::from_texts`].
    pub fn from_texts(
        texts: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<DocumentCorpus, ReadError> {
        DocumentCorpus::from_texts(texts)
    }
}

/// Short ways to read tagged sentences.
impl TaggedSentences {
    /// Options for reading tagged sentences.
    pub fn reader() -> Reader<TaggedSentences> {
        Reader::new()
    }

    /// Reads a file with default options.
    pub fn read_file(path: impl AsRef<Path>) -> Result<TaggedSentences, ReadError> {
        TaggedSentences::reader().read_file(path)
    }
}
