use crate::cleaning::learn::NumberCleaning;
use crate::cleaning::rules::Cleaning;
use crate::documents::{Documents, FlatDocuments};
use crate::encode::{EncodedRecord, RecordNames, count_words, encode_new_words, settle};
use crate::error::ReadError;
use crate::input::inputs::Inputs;
use crate::input::source::{Files, Source};
use crate::lexicon::Lexicon;
use crate::words::preprocessing::Preprocessing;
use crate::words::vocab::{UNK, Vocab, VocabLimits};
use crate::words::word_id::WordId;
use latens_store::StringTable;
use std::iter;

/// Documents with the lexicon that defines their word ids: the counterpart of
/// [`Corpus`](crate::Corpus) for topic models.
///
/// ```
/// use latens_corpus::{DocumentCorpus, Documents};
///
/// let corpus = Documents::from_texts(["the ball and the goal", "the pan and the pot"])?;
/// assert_eq!(corpus.documents.len(), 2);
///
/// let texts = ["The ball, the goal", "The pan, the pot"];
/// let corpus = DocumentCorpus::reader().lowercase(true).max_vocab(3).read_texts(texts)?;
/// assert_eq!(corpus.lexicon.vocab.words().collect::<Vec<_>>(), ["<unk>", "<eos>", "the"]);
/// # Ok::<(), latens_corpus::ReadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DocumentCorpus {
    /// Preprocessing and vocabulary.
    pub lexicon: Lexicon,
    /// The documents as word ids.
    pub documents: Documents,
}

impl DocumentCorpus {
    /// Reads documents into memory and learns their vocabulary.
    ///
    /// [`DocumentCorpus::reader`] does the same with options set one by one.
    pub fn read(
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<DocumentCorpus, ReadError> {
        DocumentCorpus::read_clean(inputs, preprocessing, limits, &Cleaning::default())
    }

    /// Reads documents into memory, cleans them, and learns their vocabulary.
    pub fn read_clean(
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
        cleaning: &Cleaning,
    ) -> Result<DocumentCorpus, ReadError> {
        let flat = FlatDocuments::new(&inputs.columns.kept);
        DocumentCorpus::read_source(&mut Files::new(inputs), flat, preprocessing, limits, cleaning)
    }

    pub(crate) fn read_source(
        source: &mut impl Source,
        mut flat: FlatDocuments,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
        cleaning: &Cleaning,
    ) -> Result<DocumentCorpus, ReadError> {
        let mut seen = encode_new_words(source, preprocessing, &mut flat)?;
        let mut cleaning = cleaning.clone();
        let found = cleaning.learn(&mut seen, &mut flat)?;
        if let Some(found) = &found {
            flat.clean(found);
            if flat.numbers.is_empty() {
                return Err(ReadError::NoWordsLeft { files: source.names() });
            }
        }
        let settled = DocumentCorpus::settled(flat, &seen, preprocessing, limits, found.as_ref());
        let lexicon = Lexicon { cleaning, ..settled.lexicon };
        Ok(DocumentCorpus { lexicon, ..settled })
    }

    /// Documents given as counts of words: each is a sequence of pairs of an index into `words` and a count. The words
    /// of a document are in the order of the pairs.
    ///
    /// ```
    /// use latens_corpus::DocumentCorpus;
    ///
    /// let corpus = DocumentCorpus::from_counts(&["ball", "pan"], [vec![(0, 2)], vec![(0, 1), (1, 3)]])?;
    /// assert_eq!(corpus.documents.n_tokens(), 6);
    /// # Ok::<(), latens_corpus::ReadError>(())
    /// ```
    ///
    /// # Panics
    /// If an index is out of range.
    pub fn from_counts(
        words: &[impl AsRef<str>],
        documents: impl IntoIterator<Item = impl IntoIterator<Item = (usize, u64)>>,
    ) -> Result<DocumentCorpus, ReadError> {
        let mut seen = StringTable::default();
        let numbers: Vec<u32> = words.iter().map(|word| seen.intern(word.as_ref())).collect();
        let mut flat = FlatDocuments::default();
        let mut tokens = Vec::new();
        for document in documents {
            tokens.clear();
            for (word_idx, count) in document {
                tokens.extend(iter::repeat_n(numbers[word_idx], count as usize));
            }
            flat.push(EncodedRecord { words: &tokens, names: &RecordNames::default() });
        }
        if flat.numbers.is_empty() {
            return Err(ReadError::NoWords { files: "the counts".to_owned() });
        }
        let (preprocessing, limits) = (Preprocessing::default(), VocabLimits::default());
        Ok(DocumentCorpus::settled(flat, &seen, &preprocessing, &limits, None))
    }

    /// Learns the vocabulary of documents whose words are provisional numbers.
    fn settled(
        mut flat: FlatDocuments,
        seen: &StringTable,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
        cleaning: Option<&NumberCleaning>,
    ) -> DocumentCorpus {
        let mut counts = vec![0; seen.len()];
        count_words(&mut counts, &flat.numbers);
        let SettledWords { vocab, ids, extra } = settle_all_words(seen, &counts, limits, cleaning);
        for number in &mut flat.numbers {
            *number = ids[*number as usize].0;
        }
        let documents = flat.finish(vocab.len(), extra);
        let cleaning = Cleaning::default();
        let lexicon = Lexicon { preprocessing: *preprocessing, limits: *limits, vocab, cleaning };
        DocumentCorpus { lexicon, documents }
    }
}

impl Documents {
    /// Reads documents into memory and learns their vocabulary; see [`DocumentCorpus::read`].
    pub fn read(
        inputs: &Inputs,
        preprocessing: &Preprocessing,
        limits: &VocabLimits,
    ) -> Result<(Lexicon, Documents), ReadError> {
        let DocumentCorpus { lexicon, documents } =
            DocumentCorpus::read(inputs, preprocessing, limits)?;
        Ok((lexicon, documents))
    }
}

/// A learned vocabulary, and the final ids of all words.
pub(crate) struct SettledWords {
    pub(crate) vocab: Vocab,
    /// The final id of each provisional number.
    pub(crate) ids: Vec<WordId>,
    /// The words that the vocabulary lacks.
    pub(crate) extra: StringTable,
}

/// Learns the vocabulary from provisional numbers, and numbers the words that it lacks.
pub(crate) fn settle_all_words(
    seen: &StringTable,
    counts: &[u64],
    limits: &VocabLimits,
    cleaning: Option<&NumberCleaning>,
) -> SettledWords {
    let is_rare = |number: usize| cleaning.is_some_and(|c| c.is_rare.get(number) == Some(&true));
    // Words that are left out have no tokens, and rare words are not in the vocabulary.
    let kept = |number: usize| (cleaning.is_none() || counts[number] > 0) && !is_rare(number);
    let (vocab, mut ids) = settle(seen, counts, 0, limits, kept);
    let mut extra = StringTable::default();
    for (number, (id, word)) in ids.iter_mut().zip(seen.iter()).enumerate() {
        let is_used = cleaning.is_none() || counts[number] > 0;
        if *id == WordId::UNK && word != UNK && is_used {
            *id = WordId::from(vocab.len() + extra.intern(word) as usize);
        }
    }
    SettledWords { vocab, ids, extra }
}
