//! Documents as sequences of types.

use latens_corpus::{Documents, WordId};

/// The documents of a corpus as sequences of types. A type is a word that topics can contain; tokens of other words
/// are omitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypedDocuments {
    /// The type of each token of all documents, concatenated.
    pub(crate) types: Vec<u32>,
    /// Start of each document in `types`, followed by the end of the last.
    pub(crate) offsets: Vec<usize>,
    /// Number of documents before these, if they are part of a corpus.
    pub(crate) first: usize,
}

impl TypedDocuments {
    /// Creates documents from lists of types.
    pub(crate) fn new<D: AsRef<[u32]>>(documents: impl IntoIterator<Item = D>) -> TypedDocuments {
        let mut all = TypedDocuments { types: Vec::new(), offsets: vec![0], first: 0 };
        for document in documents {
            all.types.extend_from_slice(document.as_ref());
            all.offsets.push(all.types.len());
        }
        all
    }

    /// Converts the documents of a corpus; `type_of` maps words to types.
    pub(crate) fn of(
        documents: &Documents,
        type_of: impl Fn(WordId) -> Option<u32>,
    ) -> TypedDocuments {
        let mut all = TypedDocuments { types: Vec::new(), offsets: vec![0], first: 0 };
        for document in documents.iter() {
            all.types.extend(document.words.iter().filter_map(|&word| type_of(word)));
            all.offsets.push(all.types.len());
        }
        all
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of a document in the whole corpus, which chooses its random numbers.
    pub(crate) fn number(&self, document: usize) -> usize {
        self.first.wrapping_add(document)
    }

    pub(crate) fn n_tokens(&self) -> usize {
        self.types.len()
    }

    /// The token range of a document.
    pub(crate) fn range(&self, document: usize) -> std::ops::Range<usize> {
        self.offsets[document]..self.offsets[document + 1]
    }

    /// Number of tokens of each type.
    pub(crate) fn type_counts(&self, n_types: usize) -> Vec<u64> {
        let mut counts = vec![0; n_types];
        self.types.iter().for_each(|&t| counts[t as usize] += 1);
        counts
    }

    /// Numbers to hash for a fingerprint of the documents.
    pub(crate) fn fingerprint_numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.types.iter().copied().chain(self.offsets.iter().map(|&offset| offset as u32))
    }
}
