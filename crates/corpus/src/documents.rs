use crate::encode::{EncodedRecord, Numbering, Sink, encode, settle};
use crate::error::ReadError;
use crate::input::Inputs;
use crate::preprocessing::Preprocessing;
use crate::storage::FlatArray;
use crate::strings::StringTable;
use crate::vocab::{Vocab, VocabLimits};
use crate::word::WordId;

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
#[derive(Clone, Debug, Default)]
struct Names {
    names: StringTable,
    of_document: Vec<u32>,
}

impl Documents {
    /// Reads documents into memory and learns their vocabulary.
    pub fn read(
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<(Vocab, Documents), ReadError> {
        let mut numbering = Numbering::Learned(StringTable::default());
        let mut flat = FlatDocuments::default();
        encode(inputs, preprocessing, &mut numbering, &mut flat)?;
        let Numbering::Learned(seen) = numbering else { unreachable!("it was made above") };
        let mut counts = vec![0u64; seen.len()];
        for &number in &flat.numbers {
            counts[number as usize] += 1;
        }
        let (vocab, mut ids) = settle(&seen, &counts, 0, limits);
        let mut extra = StringTable::default();
        for (id, word) in ids.iter_mut().zip(seen.iter()) {
            if *id == WordId::UNK && word != crate::vocab::UNK {
                *id = WordId::from(vocab.len() + extra.intern(word) as usize);
            }
        }
        for number in &mut flat.numbers {
            *number = ids[*number as usize].0;
        }
        let documents = flat.finish(vocab.len(), extra);
        Ok((vocab, documents))
    }

    /// Reads documents into memory with a vocabulary that is known already.
    pub fn read_with(
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        vocab: &Vocab,
    ) -> Result<Documents, ReadError> {
        let mut numbering = Numbering::Growing(vocab, StringTable::default());
        let mut flat = FlatDocuments::default();
        encode(inputs, preprocessing, &mut numbering, &mut flat)?;
        let Numbering::Growing(_, extra) = numbering else { unreachable!("it was made above") };
        Ok(flat.finish(vocab.len(), extra))
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

impl Names {
    fn push(&mut self, name: &str) {
        self.of_document.push(self.names.intern(name));
    }

    fn get(&self, document_idx: usize) -> &str {
        self.names.get(self.of_document[document_idx])
    }
}

#[derive(Default)]
struct FlatDocuments {
    numbers: Vec<u32>,
    offsets: Vec<u64>,
    labels: Names,
    splits: Names,
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
            labels: self.labels,
            splits: self.splits,
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
        let (vocab, documents) =
            Documents::read(&inputs, &Preprocessing::default(), &limits).unwrap();
        assert_eq!((vocab.len(), documents.len(), documents.n_tokens()), (3, 2, 3));
        let first = documents.get(0);
        assert_eq!((first.label, first.split), ("sport", "train"));
        assert_eq!(first.words, [WordId(2), WordId(2), WordId(3)]);
        assert_eq!(documents.extra_word(WordId(3)), Some("goal"));
        assert_eq!(documents.extra_word(WordId(2)), None);
        assert_eq!(documents.extra_word(WordId(4)), None);
        assert!(documents.get(1).words.is_empty());
        let again = Documents::read_with(&inputs, &Preprocessing::default(), &vocab).unwrap();
        assert_eq!(again.get(0).words, first.words);
        assert_eq!(again.extra_word(WordId(3)), Some("goal"));
    }
}
