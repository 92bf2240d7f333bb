//! Documents as the samplers see them.

use latens_corpus::{Documents, WordId};

/// The documents of a corpus as numbers of types. A type is a word that topics can have; tokens of other words are
/// left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypedDocuments {
    /// The type of each token, document after document.
    pub(crate) types: Vec<u32>,
    /// Where each document begins, and where the last one ends.
    pub(crate) offsets: Vec<usize>,
}

impl TypedDocuments {
    /// Documents from lists of types.
    pub(crate) fn new<D: AsRef<[u32]>>(documents: impl IntoIterator<Item = D>) -> TypedDocuments {
        let mut all = TypedDocuments { types: Vec::new(), offsets: vec![0] };
        for document in documents {
            all.types.extend_from_slice(document.as_ref());
            all.offsets.push(all.types.len());
        }
        all
    }

    /// The documents of a corpus, where `type_of` says which type a word is, if it is one.
    pub(crate) fn of(
        documents: &Documents,
        type_of: impl Fn(WordId) -> Option<u32>,
    ) -> TypedDocuments {
        let mut all = TypedDocuments { types: Vec::new(), offsets: vec![0] };
        for document in documents.iter() {
            all.types.extend(document.words.iter().filter_map(|&word| type_of(word)));
            all.offsets.push(all.types.len());
        }
        all
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn n_tokens(&self) -> usize {
        self.types.len()
    }

    /// Where the tokens of a document are.
    pub(crate) fn range(&self, document: usize) -> std::ops::Range<usize> {
        self.offsets[document]..self.offsets[document + 1]
    }

    /// How often each type is there.
    pub(crate) fn type_counts(&self, n_types: usize) -> Vec<u32> {
        let mut counts = vec![0; n_types];
        self.types.iter().for_each(|&t| counts[t as usize] += 1);
        counts
    }

    /// Numbers that two collections share if, and in practice only if, they are the same.
    pub(crate) fn fingerprint_numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.types.iter().copied().chain(self.offsets.iter().map(|&offset| offset as u32))
    }
}
