use crate::corpus::{Lexicon, count_words};
use crate::encode::{EncodedRecord, Numbering, Sink, encode, settle};
use crate::error::ReadError;
use crate::input::Inputs;
use crate::preprocessing::Preprocessing;
use crate::sentences::ascends;
use crate::spool::{NameList, Spool, SpoolOf, read_lexicon, read_strings};
use crate::vocab::{Vocab, VocabLimits};
use crate::word::WordId;
use latens_store::FlatArray;
use latens_store::StringTable;
use latens_store::{Container, ContainerError};
use std::path::Path;

/// Documents as word ids in one flat array, with their labels.
///
/// A word that the vocabulary lacks is kept: its id is [`Vocab::len`] or more, and
/// [`Documents::extra_word`] tells its letters, since a model may know it from elsewhere. There is no
/// end-of-sentence token.
#[derive(Clone, Debug)]
pub struct Documents {
    ids: FlatArray<WordId>,
    offsets: FlatArray<u64>,
    labels: Names,
    splits: Names,
    n_words: usize,
    extra: StringTable,
}

/// One document.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Its words in order.
    pub words: &'a [WordId],
    /// Its label, empty if it has none.
    pub label: &'a str,
    /// The part of the data it belongs to, such as `train`; empty if there are no parts.
    pub split: &'a str,
}

/// One name a document, out of few different ones.
#[derive(Clone, Debug)]
struct Names {
    names: StringTable,
    of_document: FlatArray<u32>,
}

impl Documents {
    /// Reads documents into memory and learns their vocabulary.
    pub fn read(
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<(Lexicon, Documents), ReadError> {
        let mut numbering = Numbering::Learned(StringTable::default());
        let mut flat = FlatDocuments::default();
        encode(inputs, preprocessing, &mut numbering, &mut flat)?;
        let Numbering::Learned(seen) = numbering else { unreachable!("it was made above") };
        let mut counts = vec![0; seen.len()];
        count_words(&mut counts, &flat.numbers);
        let (vocab, ids, extra) = settle_all(&seen, &counts, limits);
        for number in &mut flat.numbers {
            *number = ids[*number as usize].0;
        }
        let documents = flat.finish(vocab.len(), extra);
        Ok((Lexicon { preprocessing: *preprocessing, limits: *limits, vocab }, documents))
    }

    /// Reads documents into memory with a lexicon that is known already.
    pub fn read_with(inputs: &Inputs, lexicon: &Lexicon) -> Result<Documents, ReadError> {
        let mut numbering = Numbering::Growing(&lexicon.vocab, StringTable::default());
        let mut flat = FlatDocuments::default();
        encode(inputs, &lexicon.preprocessing, &mut numbering, &mut flat)?;
        let Numbering::Growing(_, extra) = numbering else { unreachable!("it was made above") };
        Ok(flat.finish(lexicon.vocab.len(), extra))
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many tokens all documents have.
    pub fn n_tokens(&self) -> usize {
        self.ids.len()
    }

    /// One document.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn get(&self, document_idx: usize) -> Document<'_> {
        let (begin, end) = (self.offsets[document_idx], self.offsets[document_idx + 1]);
        Document {
            words: &self.ids[begin as usize..end as usize],
            label: self.labels.get(document_idx),
            split: self.splits.get(document_idx),
        }
    }

    /// All documents in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Document<'_>> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The letters of a word that the vocabulary lacks; `None` for an id of the vocabulary.
    pub fn extra_word(&self, id: WordId) -> Option<&str> {
        let extra_idx = id.index().checked_sub(self.n_words)?;
        (extra_idx < self.extra.len()).then(|| self.extra.get(extra_idx as u32))
    }
}

impl Documents {
    /// Encodes documents into the file `path`, with the vocabulary learned on the way, and opens it.
    ///
    /// Memory holds the words, a label a document and a few blocks of text, whatever the size of the
    /// text. Beside `path` there is room needed for twice the result while this works.
    pub fn encode_to(
        path: &Path,
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<(Lexicon, Documents), ReadError> {
        let mut numbering = Numbering::Learned(StringTable::default());
        let mut spool = Spool::new(path, SpoolOf::Documents)?;
        encode(inputs, preprocessing, &mut numbering, &mut spool)?;
        let Numbering::Learned(seen) = numbering else { unreachable!("it was made above") };
        let (vocab, ids, extra) = settle_all(&seen, spool.counts(seen.len()), limits);
        let lexicon = Lexicon { preprocessing: *preprocessing, limits: *limits, vocab };
        spool.write(path, &lexicon, &extra, |number| ids[number as usize])?;
        Documents::open(path)
    }

    /// Encodes documents into the file `path` with a lexicon that is known already, and opens it.
    pub fn encode_with(
        path: &Path,
        inputs: &Inputs,
        lexicon: &Lexicon,
    ) -> Result<Documents, ReadError> {
        let mut numbering = Numbering::Growing(&lexicon.vocab, StringTable::default());
        let mut spool = Spool::new(path, SpoolOf::Documents)?;
        encode(inputs, &lexicon.preprocessing, &mut numbering, &mut spool)?;
        let Numbering::Growing(_, extra) = numbering else { unreachable!("it was made above") };
        spool.write(path, lexicon, &extra, WordId)?;
        Ok(Documents::open(path)?.1)
    }

    /// Maps encoded documents. Every byte is checked.
    pub fn open(path: &Path) -> Result<(Lexicon, Documents), ReadError> {
        let file = Container::open(path, SpoolOf::Documents.kind())?;
        let lexicon = read_lexicon(&file)?;
        let names = |what: &str| -> Result<Names, ContainerError> {
            Ok(Names {
                names: read_strings(&file, what)?,
                of_document: file.array(&format!("{what}.numbers"))?,
            })
        };
        let documents = Documents {
            ids: file.array("ids")?,
            offsets: file.array("offsets")?,
            labels: names("labels")?,
            splits: names("splits")?,
            n_words: lexicon.vocab.len(),
            extra: read_strings(&file, "extra")?,
        };
        documents.check().map_err(|problem| file.problem(problem.to_owned()))?;
        Ok((lexicon, documents))
    }

    fn check(&self) -> Result<(), &'static str> {
        if !ascends(&self.offsets, self.ids.len()) {
            return Err("its document offsets do not ascend to the number of tokens");
        }
        let n_ids = self.n_words + self.extra.len();
        if self.ids.iter().any(|id| id.index() >= n_ids || *id == WordId::EOS) {
            return Err("it has word ids outside its vocabulary");
        }
        let fits = |names: &Names| {
            names.of_document.len() == self.len()
                && names.of_document.iter().all(|&name| (name as usize) < names.names.len())
        };
        if !fits(&self.labels) || !fits(&self.splits) {
            return Err("it has not one label and one split a document");
        }
        Ok(())
    }
}

/// The vocabulary of the words seen, the words that it lacks, and the final id of each provisional
/// number.
fn settle_all(
    seen: &StringTable,
    counts: &[u64],
    limits: &VocabLimits,
) -> (Vocab, Vec<WordId>, StringTable) {
    let (vocab, mut ids) = settle(seen, counts, 0, limits);
    let mut extra = StringTable::default();
    for (id, word) in ids.iter_mut().zip(seen.iter()) {
        if *id == WordId::UNK && word != crate::vocab::UNK {
            *id = WordId::from(vocab.len() + extra.intern(word) as usize);
        }
    }
    (vocab, ids, extra)
}

impl From<NameList> for Names {
    fn from(list: NameList) -> Names {
        Names { names: list.names, of_document: list.of_document.into() }
    }
}

impl Names {
    fn get(&self, document_idx: usize) -> &str {
        self.names.get(self.of_document[document_idx])
    }
}

#[derive(Default)]
struct FlatDocuments {
    numbers: Vec<u32>,
    offsets: Vec<u64>,
    labels: NameList,
    splits: NameList,
}

impl Sink for FlatDocuments {
    fn record(&mut self, record: EncodedRecord<'_>) -> Result<(), ReadError> {
        self.offsets.push(self.numbers.len() as u64);
        self.numbers.extend_from_slice(record.words);
        self.labels.push(record.label);
        self.splits.push(record.split);
        Ok(())
    }

    fn end_of_file(&mut self) -> Result<(), ReadError> {
        Ok(())
    }
}

impl FlatDocuments {
    fn finish(mut self, n_words: usize, extra: StringTable) -> Documents {
        self.offsets.push(self.numbers.len() as u64);
        Documents {
            ids: bytemuck::allocation::cast_vec::<u32, WordId>(self.numbers).into(),
            offsets: self.offsets.into(),
            labels: self.labels.into(),
            splits: self.splits.into(),
            n_words,
            extra,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, Format};

    fn inputs(folder: &tempfile::TempDir, text: &str) -> Inputs {
        let path = folder.path().join("documents");
        std::fs::write(&path, text).unwrap();
        let fields = vec![Field::Label, Field::Split, Field::Text];
        Inputs { format: Some(Format::Docs(fields)), ..Inputs::new([path]) }
    }

    #[test]
    fn documents_keep_labels_and_words_that_the_vocabulary_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = inputs(&folder, "sport\ttrain\tball ball goal\nfood\ttest\t\n");
        let limits = VocabLimits { min_count: 2, ..VocabLimits::default() };
        let (lexicon, documents) =
            Documents::read(&inputs, &Preprocessing::default(), &limits).unwrap();
        assert_eq!((lexicon.vocab.len(), documents.len(), documents.n_tokens()), (3, 2, 3));
        let first = documents.get(0);
        assert_eq!((first.label, first.split), ("sport", "train"));
        assert_eq!(first.words, [WordId(2), WordId(2), WordId(3)]);
        assert_eq!(documents.extra_word(WordId(3)), Some("goal"));
        assert_eq!(documents.extra_word(WordId(2)), None);
        assert_eq!(documents.extra_word(WordId(4)), None);
        assert!(documents.get(1).words.is_empty());
        let path = folder.path().join("encoded");
        let (opened_lexicon, opened) =
            Documents::encode_to(&path, &inputs, &Preprocessing::default(), &limits).unwrap();
        assert!(opened_lexicon.vocab.words().eq(lexicon.vocab.words()));
        let with = Documents::encode_with(&path, &inputs, &lexicon).unwrap();
        for again in [Documents::read_with(&inputs, &lexicon).unwrap(), opened, with] {
            assert_eq!(again.len(), 2);
            assert_eq!(again.get(0).words, first.words);
            assert_eq!((again.get(1).label, again.get(1).split), ("food", "test"));
            assert_eq!(again.extra_word(WordId(3)), Some("goal"));
        }
    }
}
