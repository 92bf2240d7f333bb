//! An index of the occurrences of each word.

use latens_corpus::{Sentences, WordId};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// A text, and the number of preceding tokens that count as the past of a token.
pub(crate) struct Text<'a> {
    tokens: &'a [WordId],
    /// Start of each stretch that the past of a token must not leave, then the end of the last one.
    stretches: Cow<'a, [u64]>,
    lookback: u8,
    n_words: usize,
}

impl<'a> Text<'a> {
    /// A text in which the past of a token starts with its sentence.
    ///
    /// # Panics
    /// If a word id is not below `n_words`.
    pub(crate) fn in_sentences(sentences: &'a Sentences, lookback: u8, n_words: usize) -> Self {
        Text::new(sentences, Cow::Borrowed(sentences.offsets()), lookback, n_words)
    }

    /// A text in which the past of a token starts with its file.
    ///
    /// # Panics
    /// If a word id is not below `n_words`.
    pub(crate) fn in_files(sentences: &'a Sentences, lookback: u8, n_words: usize) -> Self {
        let offsets = sentences.offsets();
        let bounds = sentences.segment_bounds().iter();
        Text::new(sentences, bounds.map(|&i| offsets[i as usize]).collect(), lookback, n_words)
    }

    fn new(
        sentences: &'a Sentences,
        stretches: Cow<'a, [u64]>,
        lookback: u8,
        n_words: usize,
    ) -> Self {
        let tokens = sentences.tokens();
        let known = tokens.par_chunks(1 << 16).all(|ids| ids.iter().all(|id| id.index() < n_words));
        assert!(known, "the sentences contain word ids outside the vocabulary of {n_words} words");
        Text { tokens, stretches, lookback, n_words }
    }

    pub(crate) fn n_tokens(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn n_words(&self) -> usize {
        self.n_words
    }

    /// Count of each word.
    pub(crate) fn unigrams(&self) -> Vec<u64> {
        let counts = self.tokens.par_chunks(self.chunk_size(self.tokens.len())).map(|tokens| {
            let mut counts = vec![0; self.n_words];
            tokens.iter().for_each(|word| counts[word.index()] += 1);
            counts
        });
        counts.reduce(
            || vec![0; self.n_words],
            |mut sums, counts| {
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                sums
            },
        )
    }

    /// Indexes the occurrences of each word in a range of the text, in parallel.
    pub(crate) fn occurrences(&self, range: Range<usize>) -> Occurrences<'_> {
        let chunk_size = self.chunk_size(range.len());
        assert!(chunk_size <= MAX_CHUNK, "positions in a chunk must fit in 24 bits");
        let begins: Vec<usize> = range.clone().step_by(chunk_size).collect();
        let chunks = begins.into_par_iter().map(|begin| {
            let end = (begin + chunk_size).min(range.end);
            Chunk::new(self, begin..end)
        });
        Occurrences { text: self, chunks: chunks.collect() }
    }

    /// One chunk per thread, but none shorter than the vocabulary, because every chunk has an array of
    /// that size.
    fn chunk_size(&self, n_tokens: usize) -> usize {
        n_tokens.div_ceil(rayon::current_num_threads()).max(self.n_words.clamp(1, MAX_CHUNK))
    }
}

/// Maximum number of tokens per chunk.
pub(crate) const MAX_CHUNK: usize = 1 << 24;

/// The occurrences of each word in a range of a text.
///
/// The index by the later word makes counting fast: all items before one word are counted together, in
/// counters that stay in the cache, and the results are already sorted. Sorting all items instead took
/// 2.5 times as long for lags (WikiText-2, 7 lags) and 1.9 times as long for n-grams (Penn Treebank,
/// order 5); a radix sort took even longer.
pub(crate) struct Occurrences<'a> {
    text: &'a Text<'a>,
    chunks: Vec<Chunk>,
}

struct Chunk {
    /// Index of the first token.
    begin: usize,
    /// Start of each word in `places`, then the end of the last one.
    starts: Vec<u32>,
    /// Position of a token in the chunk (24 bits) and the length of its past (8 bits). Both share one
    /// number, because they are read together in random order.
    places: Vec<u32>,
}

impl Chunk {
    fn new(text: &Text<'_>, range: Range<usize>) -> Chunk {
        let tokens = &text.tokens[range.clone()];
        let mut starts = vec![0; text.n_words + 1];
        for word in tokens {
            starts[word.index() + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let (mut next, mut places) = (starts.clone(), vec![0; tokens.len()]);
        text.for_each_reach(range.clone(), |token_idx, reach| {
            let at = &mut next[text.tokens[token_idx].index()];
            places[*at as usize] = ((token_idx - range.start) as u32) << 8 | u32::from(reach);
            *at += 1;
        });
        Chunk { begin: range.start, starts, places }
    }

    fn places(&self, word_idx: usize) -> &[u32] {
        &self.places[self.starts[word_idx] as usize..self.starts[word_idx + 1] as usize]
    }
}

impl Text<'_> {
    /// Calls `visit` with each token of a range and the length of its past.
    fn for_each_reach(&self, range: Range<usize>, mut visit: impl FnMut(usize, u8)) {
        let lookback = usize::from(self.lookback);
        let first = self.stretches.partition_point(|&start| start as usize <= range.start);
        let mut token_idx = range.start;
        for stretch in self.stretches[first - 1..].windows(2) {
            let (start, end) = (stretch[0] as usize, range.end.min(stretch[1] as usize));
            while token_idx < end {
                visit(token_idx, (token_idx - start).min(lookback) as u8);
                token_idx += 1;
            }
            if end == range.end {
                return;
            }
        }
    }
}

impl Occurrences<'_> {
    pub(crate) fn n_words(&self) -> usize {
        self.text.n_words
    }

    /// Number of occurrences of a word.
    pub(crate) fn count(&self, word_idx: usize) -> usize {
        self.chunks.iter().map(|chunk| chunk.places(word_idx).len()).sum()
    }

    /// Calls `visit` with the past of each occurrence of a word; the nearest token is the last.
    #[inline]
    pub(crate) fn for_each_past(&self, word_idx: usize, mut visit: impl FnMut(&[WordId])) {
        for chunk in &self.chunks {
            for &place in chunk.places(word_idx) {
                let end = chunk.begin + (place >> 8) as usize;
                visit(&self.text.tokens[end - (place & 0xff) as usize..end]);
            }
        }
    }

    /// Splits the vocabulary into ranges with about equal numbers of occurrences. Returns the ranges
    /// and these numbers.
    ///
    /// There are several ranges per thread, so that all threads finish at about the same time. There
    /// are fewer if the work would not outweigh the vocabulary-sized counters that each range needs.
    pub(crate) fn tasks(&self) -> Vec<(Range<usize>, usize)> {
        let n_tasks = match rayon::current_num_threads() {
            1 => 1,
            n_threads => 16 * n_threads,
        };
        let n_places: usize = self.chunks.iter().map(|chunk| chunk.places.len()).sum();
        let enough = (n_places / n_tasks + 1).max(self.n_words() / 4);
        let (mut tasks, mut begin, mut n_seen) = (Vec::new(), 0, 0);
        for word_idx in 0..self.n_words() {
            n_seen += self.count(word_idx);
            if n_seen >= enough {
                tasks.push((begin..word_idx + 1, n_seen));
                (begin, n_seen) = (word_idx + 1, 0);
            }
        }
        tasks.push((begin..self.n_words(), n_seen));
        tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(text: &Text<'_>, range: Range<usize>, word_idx: usize) -> Vec<Vec<u32>> {
        let mut past = Vec::new();
        text.occurrences(range).for_each_past(word_idx, |words| {
            past.push(words.iter().map(|word| word.0).collect());
        });
        past
    }

    fn sentences() -> Sentences {
        let ids = [2, 3, 2, 1, 3, 1, 1, 2, 1].map(WordId).to_vec();
        let (offsets, segments) = (vec![0, 4, 6, 7, 9], vec![0, 2, 2, 4]);
        Sentences::from_parts(ids.into(), offsets.into(), segments.into(), 4).unwrap()
    }

    #[test]
    fn the_past_starts_with_the_sentence_or_the_file() {
        let sentences = sentences();
        let text = Text::in_sentences(&sentences, 2, 4);
        assert_eq!(past(&text, 0..9, 1), [vec![3, 2], vec![3], vec![], vec![2]]);
        let text = Text::in_files(&sentences, 2, 4);
        assert_eq!(past(&text, 0..9, 1), [vec![3, 2], vec![1, 3], vec![], vec![1, 2]]);
    }

    #[test]
    fn a_range_of_the_text_includes_the_past_before_it() {
        let sentences = sentences();
        let text = Text::in_files(&sentences, 3, 4);
        assert_eq!(past(&text, 5..6, 1), [[2, 1, 3]]);
        assert_eq!(past(&text, 6..7, 1), [[0_u32; 0]]);
        assert_eq!(past(&text, 9..9, 1), [[0_u32; 0]; 0]);
    }

    #[test]
    fn tasks_cover_the_vocabulary() {
        let sentences = sentences();
        let text = Text::in_files(&sentences, 3, 4);
        for n_threads in 1..4 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let tasks = pool.install(|| text.occurrences(0..9).tasks());
            let words: Vec<usize> = tasks.iter().flat_map(|task| task.0.clone()).collect();
            assert_eq!(words, [0, 1, 2, 3]);
            assert_eq!(tasks.iter().map(|task| task.1).sum::<usize>(), 9);
        }
    }

    #[test]
    #[should_panic(expected = "outside the vocabulary of 3 words")]
    fn words_outside_the_vocabulary_panic() {
        Text::in_files(&sentences(), 3, 3);
    }
}
