//! Options for reading text, and the short ways to read it.

use crate::corpus::Corpus;
use crate::document_corpus::DocumentCorpus;
use crate::documents::Documents;
use crate::error::ReadError;
use crate::input::format::Format;
use crate::input::inputs::{Inputs, Invalid, ReadWatch};
use crate::input::source::Memory;
use crate::tagged::TaggedSentences;
use crate::words::preprocessing::{Digits, Preprocessing, Tokenize};
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

    /// How to handle bytes that are not UTF-8. Default: [`Invalid::Error`].
    #[must_use]
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.inputs.invalid = invalid;
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
    /// How text is split into words. Default: [`Tokenize::Blanks`].
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
}

/// Reading a [`DocumentCorpus`].
impl Reader<DocumentCorpus> {
    /// Reads a file and learns its vocabulary; `-` is the standard input.
    pub fn read_file(&self, path: impl AsRef<Path>) -> Result<DocumentCorpus, ReadError> {
        self.read_files(iter::once(path))
    }

    /// Reads several files, in order, and learns their vocabulary.
    pub fn read_files(
        &self,
        paths: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<DocumentCorpus, ReadError> {
        DocumentCorpus::read(&self.inputs(paths), &self.preprocessing, &self.limits)
    }

    /// Reads documents in memory, one per string, and learns their vocabulary.
    ///
    /// An empty string is an empty document. A line break inside a document is whitespace.
    pub fn read_texts(
        &self,
        texts: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<DocumentCorpus, ReadError> {
        let mut source = Memory::new("texts", texts);
        DocumentCorpus::read_source(&mut source, &self.preprocessing, &self.limits)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::{self, Split};
    use crate::words::lexicon::Lexicon;

    fn write(folder: &tempfile::TempDir, text: &str) -> std::path::PathBuf {
        let path = folder.path().join("text");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn assert_same_lexicon(a: &Lexicon, b: &Lexicon) {
        assert_eq!((a.preprocessing, a.limits), (b.preprocessing, b.limits));
        assert!(a.vocab.words().eq(b.vocab.words()));
        assert_eq!(a.vocab.counts(), b.vocab.counts());
    }

    fn assert_same_corpus(a: &Corpus, b: &Corpus) {
        assert_same_lexicon(&a.lexicon, &b.lexicon);
        assert_eq!(a.sentences.tokens(), b.sentences.tokens());
        assert_eq!(a.sentences.offsets(), b.sentences.offsets());
        assert_eq!(a.sentences.segment_bounds(), b.sentences.segment_bounds());
    }

    fn assert_same_documents(a: &Documents, b: &Documents) {
        assert_eq!(a.len(), b.len());
        for (x, y) in a.iter().zip(b.iter()) {
            assert_eq!((x.words, x.label, x.split), (y.words, y.label, y.split));
            for &word in x.words {
                assert_eq!(a.extra_word(word), b.extra_word(word));
            }
        }
    }

    /// Repeated until it takes several blocks.
    fn long_text() -> String {
        let text = "\u{FEFF}first\n\n  <unk>\t<eos> x\r\n".to_owned();
        text + &embedded::text(Split::Train).repeat(40)
    }

    #[test]
    fn lines_in_memory_are_read_like_the_same_lines_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let text = long_text();
        let path = write(&folder, &text);
        let reader = Corpus::reader().tokenize(Tokenize::Words).digits(Digits::Num).max_vocab(100);
        let file = reader.read_file(&path).unwrap();
        assert!(text.len() > 3 << 20 && file.lexicon.vocab.len() == 100);
        assert_same_corpus(&file, &reader.read_lines(text.lines()).unwrap());
        let owned: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_same_corpus(&file, &reader.read_lines(&owned).unwrap());
        let short = Corpus::from_lines(["b a b", "", "c"]).unwrap();
        let path = write(&folder, "b a b\n\nc\n");
        assert_same_corpus(&short, &Corpus::read_file(&path).unwrap());
        assert_same_corpus(
            &short,
            &Corpus::read(&Inputs::new([path]), &Preprocessing::default(), &VocabLimits::default())
                .unwrap(),
        );
    }

    #[test]
    fn held_out_lines_are_encoded_like_a_held_out_file() {
        let folder = tempfile::tempdir().unwrap();
        let train = Corpus::from_lines(["a b", "b c"]).unwrap();
        let lines = ["c z a", "", "<eos> <unk> b"];
        let file = train.lexicon.read(&Inputs::new([write(&folder, &lines.join("\n"))])).unwrap();
        let memory = train.lexicon.sentences(lines);
        assert_eq!(memory.tokens(), file.tokens());
        assert_eq!(memory.offsets(), file.offsets());
        assert_eq!(memory.segment_bounds(), file.segment_bounds());
        assert!(train.lexicon.sentences([""; 0]).is_empty());
    }

    #[test]
    fn texts_in_memory_are_read_like_the_same_texts_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let text = long_text();
        let path = write(&folder, &text);
        let reader = DocumentCorpus::reader().lowercase(true).min_count(50);
        let file = reader.read_file(&path).unwrap();
        let memory = reader.read_texts(text.lines()).unwrap();
        assert_same_lexicon(&file.lexicon, &memory.lexicon);
        assert_same_documents(&file.documents, &memory.documents);
        let held_out = ["a zebra and a gnu", "", "zebra the <unk> <eos>"];
        let inputs = Inputs::new([write(&folder, &held_out.join("\n"))]);
        assert_same_documents(
            &memory.lexicon.documents(held_out),
            &Documents::read_with(&inputs, &file.lexicon).unwrap(),
        );
    }

    #[test]
    fn line_breaks_inside_a_record_are_whitespace() {
        let corpus = Corpus::from_lines(["a\nb\r\nc\n", "d"]).unwrap();
        assert_same_corpus(&corpus, &Corpus::from_lines(["a b c", "d"]).unwrap());
        let texts = Documents::from_texts(["a\n\nb", "", "c"]).unwrap().documents;
        assert_eq!(
            texts.iter().map(|document| document.words.len()).collect::<Vec<_>>(),
            [2, 0, 1]
        );
    }

    #[test]
    fn text_in_memory_without_words_is_an_error_that_says_so() {
        let message = |lines: &[&str]| Corpus::from_lines(lines).unwrap_err().to_string();
        assert_eq!(message(&[]), "there are no words in `lines`");
        assert_eq!(message(&["", " \t"]), "there are no words in `lines`");
        let message = |texts: &[&str]| Documents::from_texts(texts).unwrap_err().to_string();
        assert_eq!(message(&[]), "there are no words in `texts`");
        assert_eq!(message(&["", ""]), "there are no words in `texts`");
        let nul = Corpus::from_lines(["a", "b\0"]).unwrap_err().to_string();
        assert_eq!(nul, "`lines` is not plain text: NUL byte in line 2");
    }

    #[test]
    fn every_option_has_its_effect() {
        let folder = tempfile::tempdir().unwrap();
        let conll = write(&folder, "Dogs NNS\nbark VBP\n");
        let reader = Corpus::reader().format(Format::Conll).lowercase(true);
        let corpus = reader.read_files([&conll, &conll]).unwrap();
        assert_eq!(corpus.lexicon.vocab.words().collect::<Vec<_>>()[2..], ["bark", "dogs"]);
        assert_eq!(corpus.sentences.segments().count(), 2);
        let tagged = TaggedSentences::reader().format(Format::Conll).read_file(&conll).unwrap();
        assert_eq!(tagged.get(0).column(1), Some(vec!["NNS", "VBP"]));
        let invalid = folder.path().join("invalid");
        std::fs::write(&invalid, b"a\xff").unwrap();
        assert!(Corpus::read_file(&invalid).is_err());
        let replaced = Corpus::reader().invalid(Invalid::Replace).read_file(&invalid).unwrap();
        assert_eq!(replaced.lexicon.vocab.words().last(), Some("a\u{FFFD}"));
        let how = Preprocessing { lowercase: true, ..Preprocessing::default() };
        let limits = VocabLimits { min_count: 2, max_vocab: 4 };
        let reader = Corpus::reader().preprocessing(how).limits(limits);
        let words = reader.read_lines(["a A b B c C d"]).unwrap().lexicon.vocab;
        assert_eq!(words.words().collect::<Vec<_>>()[2..], ["a", "b"]);
    }
}
