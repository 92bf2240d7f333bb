//! Where words occur.

use latens_corpus::{Sentences, WordId};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// A text, and how far one may look back from each of its tokens.
pub(crate) struct Text<'a> {
    tokens: &'a [WordId],
    /// Where each stretch begins that one may not look beyond, and where the last one ends.
    stretches: Cow<'a, [u64]>,
    lookback: u8,
    n_words: usize,
}

impl<'a> Text<'a> {
    /// The past of a token ends where its sentence begins.
    ///
    /// # Panics
    /// If a word id is not below `n_words`.
    pub(crate) fn in_sentences(sentences: &'a Sentences, lookback: u8, n_words: usize) -> Self {
        Text::new(sentences, Cow::Borrowed(sentences.offsets()), lookback, n_words)
    }

    /// The past of a token ends where its file begins.
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
        assert!(known, "the sentences have words outside the vocabulary of {n_words} words");
        Text { tokens, stretches, lookback, n_words }
    }

    pub(crate) fn n_tokens(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn n_words(&self) -> usize {
        self.n_words
    }

    /// How often each word occurs.
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

    /// Where each word occurs in a part of the text. Threads index chunks of it.
    pub(crate) fn occurrences(&self, range: Range<usize>) -> Occurrences<'_> {
        let chunk_size = self.chunk_size(range.len());
        assert!(chunk_size <= MAX_CHUNK, "a place in a chunk has 24 bits");
        let begins: Vec<usize> = range.clone().step_by(chunk_size).collect();
        let chunks = begins.into_par_iter().map(|begin| {
            let end = (begin + chunk_size).min(range.end);
            Chunk::new(self, begin..end)
        });
        Occurrences { text: self, chunks: chunks.collect() }
    }

    /// One chunk a thread; but none shorter than the vocabulary, since it has counters of that size.
    fn chunk_size(&self, n_tokens: usize) -> usize {
        n_tokens.div_ceil(rayon::current_num_threads()).max(self.n_words.clamp(1, MAX_CHUNK))
    }
}

/// The most tokens that occurrences are looked for at once.
pub(crate) const MAX_CHUNK: usize = 1 << 24;

/// Where each word occurs in a part of a text.
///
/// An index by the later word is what makes counting fast: everything that was seen before one word
/// is counted together, in counters that stay in the processor's cache, and comes out in the order
/// of the result. Sorting what is counted took 2.5 times as long for lags (WikiText-2, 7 lags), and
/// 1.9 times for n-grams (Penn Treebank, order 5); a radix sort took longer still.
pub(crate) struct Occurrences<'a> {
    text: &'a Text<'a>,
    chunks: Vec<Chunk>,
}

struct Chunk {
    /// The first token.
    begin: usize,
    /// Where the places of each word begin, and where the last ones end.
    starts: Vec<u32>,
    /// The place of a token in the chunk (24 bits), and how many tokens before it may be seen
    /// (8 bits): both in one number, since both are needed at the same, unpredictable time.
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
    /// Hands each token of a part of the text to `visit`, with the number of tokens before it that
    /// may be seen.
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

    /// How often a word occurs.
    pub(crate) fn count(&self, word_idx: usize) -> usize {
        self.chunks.iter().map(|chunk| chunk.places(word_idx).len()).sum()
    }

    /// Hands the past of each occurrence of a word to `visit`: as many tokens as may be seen, the
    /// nearest one last.
    #[inline]
    pub(crate) fn for_each_past(&self, word_idx: usize, mut visit: impl FnMut(&[WordId])) {
        for chunk in &self.chunks {
            for &place in chunk.places(word_idx) {
                let end = chunk.begin + (place >> 8) as usize;
                visit(&self.text.tokens[end - (place & 0xff) as usize..end]);
            }
        }
    }

    /// The vocabulary in ranges of ids that occur about equally often, and how often they do:
    /// several for each thread, so that none waits long for the last, unless there is too little to
    /// do for the counters of the size of the vocabulary that each needs.
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
    fn the_past_ends_where_sentence_or_file_begins() {
        let sentences = sentences();
        let text = Text::in_sentences(&sentences, 2, 4);
        assert_eq!(past(&text, 0..9, 1), [vec![3, 2], vec![3], vec![], vec![2]]);
        let text = Text::in_files(&sentences, 2, 4);
        assert_eq!(past(&text, 0..9, 1), [vec![3, 2], vec![1, 3], vec![], vec![1, 2]]);
    }

    #[test]
    fn a_part_of_the_text_sees_the_past_before_it() {
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
    fn words_outside_the_vocabulary_are_a_bug() {
        Text::in_files(&sentences(), 3, 3);
    }
}
