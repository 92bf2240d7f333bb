use crate::words::word_id::WordId;
use latens_store::FlatArray;
use std::ops::Range;

/// Sentences as word ids in one flat array, in memory or in a mapped file.
///
/// Every sentence ends with [`WordId::EOS`], which counts as a token; an empty sentence is this token
/// alone. The boundaries of files are kept: see [`Sentences::segments`].
#[derive(Clone, Debug)]
pub struct Sentences {
    ids: FlatArray<WordId>,
    /// Start of each sentence in `ids`, then the end of the last one.
    offsets: FlatArray<u64>,
    /// First sentence of each file, then the number of sentences.
    segments: FlatArray<u64>,
}

impl Sentences {
    /// Tells the system that the text is not needed for now; see [`FlatArray::release`].
    pub fn release(&self) {
        self.ids.release();
        self.offsets.release();
        self.segments.release();
    }

    /// Creates sentences from flat arrays, and describes the problem if they are inconsistent.
    ///
    /// Offsets must ascend strictly from 0 to the number of ids, and segments ascend from 0 to the
    /// number of sentences. Every sentence must end with [`WordId::EOS`] and contain no other, and
    /// every id must be below `n_words`.
    pub fn from_parts(
        ids: FlatArray<WordId>,
        offsets: FlatArray<u64>,
        segments: FlatArray<u64>,
        n_words: usize,
    ) -> Result<Sentences, &'static str> {
        if !ascends(&offsets, ids.len()) || offsets.windows(2).any(|w| w[0] == w[1]) {
            return Err("its sentence offsets do not ascend to the number of tokens");
        }
        if !ascends(&segments, offsets.len() - 1) {
            return Err("its file boundaries do not ascend to the number of sentences");
        }
        if ids.iter().any(|id| id.index() >= n_words) {
            return Err("it contains word ids outside its vocabulary");
        }
        let ends = offsets[1..].iter().all(|&end| ids[end as usize - 1] == WordId::EOS);
        if !ends || ids.iter().filter(|&&id| id == WordId::EOS).count() != offsets.len() - 1 {
            return Err("its sentences do not end with their only end-of-sentence token");
        }
        Ok(Sentences { ids, offsets, segments })
    }

    /// Creates sentences from the arrays of the encoder, which are consistent by construction.
    pub(crate) fn from_encoded(ids: Vec<WordId>, offsets: Vec<u64>, segments: Vec<u64>) -> Self {
        Sentences { ids: ids.into(), offsets: offsets.into(), segments: segments.into() }
    }

    /// Creates sentences from word ids, as if they came from one file. Appends [`WordId::EOS`] to each.
    pub fn from_words<S: AsRef<[WordId]>>(sentences: impl IntoIterator<Item = S>) -> Sentences {
        let (mut ids, mut offsets) = (Vec::new(), vec![0]);
        for sentence in sentences {
            ids.extend_from_slice(sentence.as_ref());
            ids.push(WordId::EOS);
            offsets.push(ids.len() as u64);
        }
        let segments = vec![0, offsets.len() as u64 - 1];
        Sentences { ids: ids.into(), offsets: offsets.into(), segments: segments.into() }
    }

    /// Number of sentences.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no sentences.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of tokens, including one end-of-sentence token per sentence.
    pub fn n_tokens(&self) -> usize {
        self.ids.len()
    }

    /// Returns one sentence with its end-of-sentence token.
    ///
    /// # Panics
    /// If `sentence_idx` is out of range.
    pub fn get(&self, sentence_idx: usize) -> &[WordId] {
        let (begin, end) = (self.offsets[sentence_idx], self.offsets[sentence_idx + 1]);
        &self.ids[begin as usize..end as usize]
    }

    /// Returns a range of the sentences, as if they came from one file. Does not copy the text.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Sentences {
        let offsets = &self.offsets[range.start..=range.end];
        let (begin, end) = (offsets[0], offsets[offsets.len() - 1]);
        let ids = self.ids.slice(begin as usize..end as usize);
        let offsets: Vec<u64> = offsets.iter().map(|offset| offset - begin).collect();
        let segments = vec![0, offsets.len() as u64 - 1];
        Sentences { ids, offsets: offsets.into(), segments: segments.into() }
    }

    /// Iterates over all sentences in order, each with its end-of-sentence token.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[WordId]> + Clone {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Iterates over the files: all tokens of each file in one slice.
    pub fn segments(&self) -> impl Iterator<Item = &[WordId]> {
        self.segments.windows(2).map(|bounds| {
            let (begin, end) = (self.offsets[bounds[0] as usize], self.offsets[bounds[1] as usize]);
            &self.ids[begin as usize..end as usize]
        })
    }

    /// All tokens of all sentences in order.
    pub fn tokens(&self) -> &[WordId] {
        &self.ids
    }

    /// Start of each sentence in [`Sentences::tokens`], then the end of the last one.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// First sentence of each file, then the number of sentences.
    pub fn segment_bounds(&self) -> &[u64] {
        &self.segments
    }
}

/// Whether offsets ascend from 0 to `last`; equal neighbors are allowed.
pub(crate) fn ascends(offsets: &[u64], last: usize) -> bool {
    offsets.first() == Some(&0)
        && offsets.last() == Some(&(last as u64))
        && offsets.windows(2).all(|pair| pair[0] <= pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(ids: &[u32], offsets: &[u64], segments: &[u64]) -> Result<Sentences, &'static str> {
        let ids: Vec<WordId> = ids.iter().map(|&id| WordId(id)).collect();
        Sentences::from_parts(ids.into(), offsets.to_vec().into(), segments.to_vec().into(), 5)
    }

    #[test]
    fn from_words_keeps_words_and_appends_the_end_of_sentence() {
        let sentences = Sentences::from_words([&[WordId(2), WordId(3)][..], &[]]);
        assert_eq!(sentences.get(0), [WordId(2), WordId(3), WordId::EOS]);
        assert_eq!(sentences.get(1), [WordId::EOS]);
        assert_eq!(sentences.n_tokens(), 4);
        assert_eq!(sentences.segments().count(), 1);
    }

    #[test]
    fn a_slice_has_the_sentences_of_its_range() {
        let word = |id| vec![WordId(id)];
        let sentences = Sentences::from_words([word(2), word(3), word(4)]);
        let slice = sentences.slice(1..3);
        assert!(slice.iter().eq(sentences.iter().skip(1)));
        assert_eq!(slice.segments().next(), Some(slice.tokens()));
        assert!(sentences.slice(3..3).is_empty());
    }

    #[test]
    fn inconsistent_arrays_are_refused() {
        assert!(parts(&[2, 3, 1, 1], &[0, 3, 4], &[0, 1, 2]).is_ok());
        assert!(parts(&[], &[0], &[0, 0]).is_ok());
        assert!(parts(&[2, 3, 1, 1], &[0, 3, 5], &[0, 2]).is_err());
        assert!(parts(&[2, 3, 1, 1], &[0, 4, 4], &[0, 2]).is_err());
        assert!(parts(&[2, 3, 1, 1], &[0, 3, 4], &[0, 3]).is_err());
        assert!(parts(&[2, 3, 1, 1], &[], &[0, 0]).is_err());
        assert!(parts(&[2, 5, 1, 1], &[0, 3, 4], &[0, 2]).is_err());
        assert!(parts(&[2, 1, 1, 1], &[0, 3, 4], &[0, 2]).is_err());
        assert!(parts(&[2, 1, 3, 1], &[0, 3, 4], &[0, 2]).is_err());
    }
}
