use crate::cleaning::learn::{NumberCleaning, NumberedDocuments};
use crate::encode::{EncodedRecord, RecordNames, Sink, encode_all_words, number_any_word};
use crate::error::ReadError;
use crate::input::inputs::Inputs;
use crate::input::source::Files;
use crate::lexicon::Lexicon;
use crate::names::{Names, NamesBuilder};
use crate::sentences::ascends;
use crate::words::vocab::Vocab;
use crate::words::word_id::WordId;
use latens_store::{FlatArray, StringTable};

/// Documents as word ids in one flat array, with their labels.
///
/// Words that the vocabulary lacks are kept, because a model may know them from another source: their
/// ids are [`Vocab::len`](crate::Vocab::len) or more, and [`Documents::extra_word`] returns their text.
/// Documents have no end-of-sentence tokens. [`DocumentCorpus`](crate::DocumentCorpus) pairs documents
/// with the lexicon that defines their word ids.
#[derive(Clone, Debug)]
pub struct Documents {
    pub(crate) ids: FlatArray<WordId>,
    pub(crate) offsets: FlatArray<u64>,
    pub(crate) labels: Names,
    pub(crate) splits: Names,
    pub(crate) keys: Names,
    /// The columns of [`Columns::kept`](crate::Columns::kept) with their names.
    pub(crate) kept: Vec<(String, Names)>,
    pub(crate) n_words: usize,
    pub(crate) extra: StringTable,
}

/// One document.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Its words in order.
    pub words: &'a [WordId],
    /// Its label; empty if it has none.
    pub label: &'a str,
    /// The part of the data that it belongs to, such as `train`; empty if there are no parts.
    pub split: &'a str,
    /// Its identifier, such as the name of its file; empty if it has none.
    pub id: &'a str,
}

impl Documents {
    /// Reads documents into memory with a given lexicon.
    pub fn read_with(inputs: &Inputs, lexicon: &Lexicon) -> Result<Documents, ReadError> {
        let mut flat = FlatDocuments::new(&inputs.columns.kept);
        let extra = encode_all_words(&mut Files::new(inputs), lexicon, &mut flat)?;
        Ok(flat.finish(lexicon.vocab.len(), extra))
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of tokens of all documents.
    pub fn n_tokens(&self) -> usize {
        self.ids.len()
    }

    /// Returns one document.
    ///
    /// # Panics
    /// If `document_idx` is out of range.
    pub fn get(&self, document_idx: usize) -> Document<'_> {
        let (begin, end) = (self.offsets[document_idx], self.offsets[document_idx + 1]);
        Document {
            words: &self.ids[begin as usize..end as usize],
            label: self.labels.get(document_idx),
            split: self.splits.get(document_idx),
            id: self.keys.get(document_idx),
        }
    }

    /// Returns the value of a column of [`Columns::kept`](crate::Columns::kept); `None` if it was not kept.
    /// Documents in encoded files have no such columns.
    ///
    /// # Panics
    /// If `document_idx` is out of range.
    pub fn value(&self, column: &str, document_idx: usize) -> Option<&str> {
        let (_, values) = self.kept.iter().find(|(name, _)| name == column)?;
        Some(values.get(document_idx))
    }

    /// Splits the documents into those whose index `is_first`, and the others. Further columns are not kept.
    pub fn split(&self, is_first: impl Fn(usize) -> bool) -> (Documents, Documents) {
        let part = |wanted: bool| {
            let mut flat = FlatDocuments::default();
            for idx in (0..self.len()).filter(|&idx| is_first(idx) == wanted) {
                let Document { words, label, split, id } = self.get(idx);
                let [label, split, id] = [label, split, id].map(str::to_owned);
                let names = RecordNames { label, split, id, kept: Vec::new() };
                flat.push(EncodedRecord { words: bytemuck::cast_slice(words), names: &names });
            }
            flat.finish(self.n_words, self.extra.clone())
        };
        (part(true), part(false))
    }

    /// Iterates over all documents in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Document<'_>> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Returns the text of a word that the vocabulary lacks; `None` for an id of the vocabulary.
    pub fn extra_word(&self, id: WordId) -> Option<&str> {
        let extra_idx = id.index().checked_sub(self.n_words)?;
        (extra_idx < self.extra.len()).then(|| self.extra.get(extra_idx as u32))
    }

    /// Describes the problem if the arrays contradict each other.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if !ascends(&self.offsets, self.ids.len()) {
            return Err("its document offsets do not ascend to the number of tokens");
        }
        let n_ids = self.n_words + self.extra.len();
        if self.ids.iter().any(|id| id.index() >= n_ids || *id == WordId::EOS) {
            return Err("it contains word ids outside its vocabulary");
        }
        if ![&self.labels, &self.splits, &self.keys].iter().all(|n| n.are_complete(self.len())) {
            return Err("it does not have one label, one split and one identifier per document");
        }
        Ok(())
    }
}

impl Lexicon {
    /// Encodes documents in memory, one per string, with this vocabulary.
    ///
    /// ```
    /// # use latens_corpus::Documents;
    /// let train = Documents::from_texts(["the ball and the goal", "the pan and the pot"])?;
    /// let test = train.lexicon.documents(["the ball in the pan"]);
    /// let words = test.get(0).words;
    /// assert_eq!(words[1], train.lexicon.vocab.id("ball"));
    /// assert_eq!(test.extra_word(words[2]), Some("in"));
    /// # Ok::<(), latens_corpus::ReadError>(())
    /// ```
    pub fn documents(&self, texts: impl IntoIterator<Item = impl AsRef<str>>) -> Documents {
        let (mut flat, mut extra) = (FlatDocuments::default(), StringTable::default());
        let mut words = Vec::new();
        for text in texts {
            words.clear();
            self.words(text.as_ref(), |word| {
                words.push(number_any_word(&self.vocab, &mut extra, word));
            });
            flat.push(EncodedRecord { words: &words, names: &RecordNames::default() });
        }
        flat.finish(self.vocab.len(), extra)
    }

    /// Encodes documents that are already split into words. Words outside the vocabulary are kept; see
    /// [`Documents::extra_word`].
    pub fn documents_of_words(&self) -> DocumentsOfWords<'_> {
        DocumentsOfWords {
            vocab: &self.vocab,
            words: Vec::new(),
            flat: FlatDocuments::default(),
            extra: StringTable::default(),
        }
    }
}

/// Encodes documents that are already split into words, one at a time.
///
/// ```
/// # use latens_corpus::Documents;
/// let train = Documents::from_texts(["the ball and the goal", "the pan and the pot"])?;
/// let mut test = train.lexicon.documents_of_words();
/// test.push(["ball", "New York"]);
/// let test = test.finish();
/// assert_eq!(test.extra_word(test.get(0).words[1]), Some("New York"));
/// # Ok::<(), latens_corpus::ReadError>(())
/// ```
pub struct DocumentsOfWords<'a> {
    vocab: &'a Vocab,
    words: Vec<u32>,
    flat: FlatDocuments,
    extra: StringTable,
}

impl DocumentsOfWords<'_> {
    /// Adds a document.
    pub fn push(&mut self, words: impl IntoIterator<Item = impl AsRef<str>>) {
        let DocumentsOfWords { vocab, words: numbers, flat, extra } = self;
        let words = words.into_iter();
        numbers.clear();
        numbers.extend(words.map(|word| number_any_word(vocab, extra, word.as_ref())));
        flat.push(EncodedRecord { words: numbers, names: &RecordNames::default() });
    }

    /// All documents.
    pub fn finish(self) -> Documents {
        self.flat.finish(self.vocab.len(), self.extra)
    }
}

/// Documents in memory while they are read.
#[derive(Default)]
pub(crate) struct FlatDocuments {
    pub(crate) numbers: Vec<u32>,
    offsets: Vec<u64>,
    labels: NamesBuilder,
    splits: NamesBuilder,
    keys: NamesBuilder,
    kept: Vec<(String, NamesBuilder)>,
}

impl Sink for FlatDocuments {
    fn record(&mut self, record: EncodedRecord<'_>) -> Result<(), ReadError> {
        self.push(record);
        Ok(())
    }

    fn end_of_file(&mut self) -> Result<(), ReadError> {
        Ok(())
    }
}

impl NumberedDocuments for FlatDocuments {
    fn each(&mut self, visit: &mut dyn FnMut(&[u32])) -> Result<(), ReadError> {
        (0..self.offsets.len()).for_each(|idx| visit(self.document(idx)));
        Ok(())
    }
}

impl FlatDocuments {
    /// Documents with these further columns.
    pub(crate) fn new(kept: &[String]) -> FlatDocuments {
        let kept = kept.iter().map(|name| (name.clone(), NamesBuilder::default())).collect();
        FlatDocuments { kept, ..FlatDocuments::default() }
    }

    pub(crate) fn push(&mut self, record: EncodedRecord<'_>) {
        self.offsets.push(self.numbers.len() as u64);
        self.numbers.extend_from_slice(record.words);
        let RecordNames { label, split, id, kept } = record.names;
        self.labels.push(label);
        self.splits.push(split);
        self.keys.push(id);
        for (column, (_, values)) in self.kept.iter_mut().enumerate() {
            values.push(kept.get(column).map_or("", String::as_str));
        }
    }

    fn document(&self, idx: usize) -> &[u32] {
        let end = self.offsets.get(idx + 1).map_or(self.numbers.len(), |&end| end as usize);
        &self.numbers[self.offsets[idx] as usize..end]
    }

    /// Cleans all documents.
    pub(crate) fn clean(&mut self, cleaning: &NumberCleaning) {
        let (mut numbers, mut offsets) = (Vec::new(), Vec::new());
        for idx in 0..self.offsets.len() {
            offsets.push(numbers.len() as u64);
            cleaning.clean(self.document(idx), |word| numbers.push(word));
        }
        (self.numbers, self.offsets) = (numbers, offsets);
    }

    pub(crate) fn finish(mut self, n_words: usize, extra: StringTable) -> Documents {
        self.offsets.push(self.numbers.len() as u64);
        Documents {
            ids: bytemuck::allocation::cast_vec::<u32, WordId>(self.numbers).into(),
            offsets: self.offsets.into(),
            labels: self.labels.finish(),
            splits: self.splits.finish(),
            keys: self.keys.finish(),
            kept: self.kept.into_iter().map(|(name, values)| (name, values.finish())).collect(),
            n_words,
            extra,
        }
    }
}
