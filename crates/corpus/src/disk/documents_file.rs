//! Encoded documents on disk.

use crate::cleaning::rules::Cleaning;
use crate::disk::spool::{Spool, SpoolOf, read_lexicon, read_strings};
use crate::document_corpus::{DocumentCorpus, SettledWords, settle_all_words};
use crate::documents::Documents;
use crate::encode::{encode_all_words, encode_new_words};
use crate::error::ReadError;
use crate::input::inputs::Inputs;
use crate::input::source::{Files, Source};
use crate::lexicon::Lexicon;
use crate::names::Names;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::VocabLimits;
use crate::words::word_id::WordId;
use latens_store::{Container, ContainerError};
use std::path::Path;

impl DocumentCorpus {
    /// Encodes documents into the file `path`, learns their vocabulary on the way, and opens the file.
    ///
    /// Memory holds the vocabulary, one label per document and a few blocks of text, whatever the size
    /// of the text. The folder of `path` needs free space for twice the size of the result.
    pub fn encode_to(
        path: impl AsRef<Path>,
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<DocumentCorpus, ReadError> {
        DocumentCorpus::encode_clean(path, inputs, preprocessing, limits, &Cleaning::default())
    }

    /// Encodes documents into the file `path` after cleaning; see [`DocumentCorpus::encode_to`]. If phrases
    /// are learned, memory also holds the counts of all pairs of neighbors.
    pub fn encode_clean(
        path: impl AsRef<Path>,
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
        cleaning: &Cleaning,
    ) -> Result<DocumentCorpus, ReadError> {
        let path = path.as_ref();
        let mut spool = Spool::new(path, SpoolOf::Documents)?;
        let mut files = Files::new(inputs);
        let mut seen = encode_new_words(&mut files, preprocessing, &mut spool)?;
        let mut cleaning = cleaning.clone();
        let found = cleaning.learn(&mut seen, &mut spool)?;
        if let Some(found) = &found {
            spool = spool.cleaned(found)?;
            if spool.n_numbers() == 0 {
                return Err(ReadError::NoWordsLeft { files: files.names() });
            }
        }
        let SettledWords { vocab, ids, extra } =
            settle_all_words(&seen, spool.counts(seen.len()), limits, found.as_ref());
        let lexicon = Lexicon { preprocessing: *preprocessing, limits: *limits, vocab, cleaning };
        spool.write(path, &lexicon, &extra, |number| ids[number as usize])?;
        DocumentCorpus::open(path)
    }

    /// Encodes documents into the file `path` with a given lexicon, and opens the file.
    pub fn encode_with(
        path: impl AsRef<Path>,
        inputs: &Inputs,
        lexicon: &Lexicon,
    ) -> Result<DocumentCorpus, ReadError> {
        let path = path.as_ref();
        let mut spool = Spool::new(path, SpoolOf::Documents)?;
        let extra = encode_all_words(&mut Files::new(inputs), lexicon, &mut spool)?;
        spool.write(path, lexicon, &extra, WordId)?;
        DocumentCorpus::open(path)
    }

    /// Maps encoded documents into memory and verifies their checksum.
    pub fn open(path: impl AsRef<Path>) -> Result<DocumentCorpus, ReadError> {
        let file = Container::open(path.as_ref(), SpoolOf::Documents.kind())?;
        let lexicon = read_lexicon(&file)?;
        let names = |what: &str| -> Result<Names, ContainerError> {
            Ok(Names {
                names: read_strings(&file, what)?,
                of_record: file.array(&format!("{what}.numbers"))?,
            })
        };
        let labels = names("labels")?;
        // Files of 0.1.0 have no identifiers.
        let keys = match file.has("keys.numbers") {
            true => names("keys")?,
            false => Names::empty(labels.of_record.len()),
        };
        let documents = Documents {
            ids: file.array("ids")?,
            offsets: file.array("offsets")?,
            labels,
            splits: names("splits")?,
            keys,
            kept: Vec::new(),
            n_words: lexicon.vocab.len(),
            extra: read_strings(&file, "extra")?,
        };
        documents.check().map_err(|problem| file.problem(problem.to_owned()))?;
        Ok(DocumentCorpus { lexicon, documents })
    }
}

impl Documents {
    /// Encodes documents into the file `path`; see [`DocumentCorpus::encode_to`].
    pub fn encode_to(
        path: impl AsRef<Path>,
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<(Lexicon, Documents), ReadError> {
        let DocumentCorpus { lexicon, documents } =
            DocumentCorpus::encode_to(path, inputs, preprocessing, limits)?;
        Ok((lexicon, documents))
    }

    /// Encodes documents into the file `path`; see [`DocumentCorpus::encode_with`].
    pub fn encode_with(
        path: impl AsRef<Path>,
        inputs: &Inputs,
        lexicon: &Lexicon,
    ) -> Result<Documents, ReadError> {
        Ok(DocumentCorpus::encode_with(path, inputs, lexicon)?.documents)
    }

    /// Opens encoded documents; see [`DocumentCorpus::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<(Lexicon, Documents), ReadError> {
        let DocumentCorpus { lexicon, documents } = DocumentCorpus::open(path)?;
        Ok((lexicon, documents))
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
    fn documents_keep_labels_and_words_outside_the_vocabulary_on_every_path() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = inputs(&folder, "sport\ttrain\tball ball goal\nfood\ttest\t\n");
        let (how, limits) = (Preprocessing::default(), VocabLimits { min_count: 2, max_vocab: 0 });
        let DocumentCorpus { lexicon, documents } =
            DocumentCorpus::read(&inputs, &how, &limits).unwrap();
        assert_eq!((lexicon.vocab.len(), documents.len(), documents.n_tokens()), (3, 2, 3));
        let first = documents.get(0);
        assert_eq!((first.label, first.split), ("sport", "train"));
        assert_eq!(first.words, [WordId(2), WordId(2), WordId(3)]);
        assert_eq!(documents.extra_word(WordId(3)), Some("goal"));
        assert_eq!(documents.extra_word(WordId(2)), None);
        assert_eq!(documents.extra_word(WordId(4)), None);
        assert!(documents.get(1).words.is_empty());
        let path = folder.path().join("encoded");
        let encoded = DocumentCorpus::encode_to(&path, &inputs, &how, &limits).unwrap();
        assert!(encoded.lexicon.vocab.words().eq(lexicon.vocab.words()));
        let with = DocumentCorpus::encode_with(&path, &inputs, &lexicon).unwrap();
        let read_with = Documents::read_with(&inputs, &lexicon).unwrap();
        let cleaning =
            Cleaning { min_df: crate::DocumentFrequency::Count(2), ..Cleaning::default() };
        let error = DocumentCorpus::encode_clean(
            &path,
            &inputs,
            &how,
            &limits,
            &Cleaning {
                stop_words: crate::StopWords::new("all", ["ball", "goal"]),
                ..Cleaning::default()
            },
        );
        assert!(matches!(error, Err(ReadError::NoWordsLeft { .. })));
        let rare = DocumentCorpus::encode_clean(&path, &inputs, &how, &limits, &cleaning).unwrap();
        assert_eq!((rare.lexicon.vocab.len(), rare.documents.n_tokens()), (2, 3));
        for again in [read_with, encoded.documents, with.documents] {
            assert_eq!(again.len(), 2);
            assert_eq!(again.get(0).words, first.words);
            assert_eq!((again.get(1).label, again.get(1).split), ("food", "test"));
            assert_eq!(again.extra_word(WordId(3)), Some("goal"));
        }
    }
}
