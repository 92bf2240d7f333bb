use crate::batches::count_in_batches;
use crate::budget::Budget;
use crate::error::CountError;
use crate::lag_matrix::LagMatrix;
use crate::occurrences::{Occurrences, Text};
use crate::rows::Part;
use crate::table::CountTable;
use crate::tally::Tally;
use latens_corpus::{Corpus, Lexicon, Vocab};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::{ControlFlow, Range};

/// The most lags that are counted.
pub const MAX_LAGS: usize = u8::MAX as usize;

/// What a pair of tokens may not cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The end of a file: its sentences are one stream, and ends of sentences ordinary tokens.
    #[default]
    Stream,
    /// The end of a sentence, whose end-of-sentence token still belongs to it.
    Sentence,
}

/// How often each word was seen 1, 2, … K tokens after each other word.
///
/// They carry the lexicon that the ids come from. Counts of parts of a text add up to those of the
/// whole, since no pair crosses the end of a file.
#[derive(Clone, Debug)]
pub struct LagCounts {
    pub(crate) lexicon: Lexicon,
    pub(crate) boundary: Boundary,
    pub(crate) unigrams: Vec<u64>,
    pub(crate) n_tokens: u64,
    pub(crate) lags: Vec<LagMatrix>,
}

impl LagCounts {
    /// Counts the pairs of tokens that are 1 to `n_lags` apart.
    ///
    /// `watch` is told how many tokens are done, and says whether to go on.
    ///
    /// # Panics
    /// If the sentences have words that the vocabulary lacks.
    pub fn of(
        corpus: &Corpus,
        n_lags: usize,
        boundary: Boundary,
        budget: &Budget,
        watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<LagCounts, CountError> {
        let lookback = u8::try_from(n_lags).ok().filter(|&n_lags| n_lags > 0);
        let lookback = lookback.ok_or(CountError::Lags { n_lags })?;
        let Corpus { lexicon, sentences } = corpus;
        let n_words = lexicon.vocab.len();
        let text = match boundary {
            Boundary::Stream => Text::in_files(sentences, lookback, n_words),
            Boundary::Sentence => Text::in_sentences(sentences, lookback, n_words),
        };
        let lags = count_in_batches(&text, n_lags, budget, watch, count_words)?;
        Ok(LagCounts {
            lexicon: lexicon.clone(),
            boundary,
            unigrams: text.unigrams(),
            n_tokens: sentences.n_tokens() as u64,
            lags: lags.into_iter().map(LagMatrix).collect(),
        })
    }

    /// The sum of counts that were made apart, of different files. The order of the parts plays no
    /// role. Lexicon, boundary and number of lags must be the same in all of them.
    pub fn merge(parts: &[LagCounts], budget: &Budget) -> Result<LagCounts, CountError> {
        let Some(first) = parts.first() else { return Err(CountError::NothingToMerge) };
        let (mut unigrams, mut n_tokens) = (vec![0; first.vocab().len()], 0_u64);
        for (i, part) in parts.iter().enumerate() {
            first.check_like(part).map_err(|difference| CountError::Unlike {
                part: i + 1,
                difference: difference.to_owned(),
            })?;
            // No sum below can overflow if this one does not: the others are of some of the tokens.
            n_tokens = n_tokens.checked_add(part.n_tokens).ok_or(CountError::Overflow)?;
            unigrams.iter_mut().zip(&part.unigrams).for_each(|(sum, &count)| *sum += count);
        }
        let share = budget.share(first.n_lags());
        let lags = (0..first.n_lags()).into_par_iter().map(|i| {
            let tables: Vec<_> = parts.iter().map(|part| &part.lags[i].0).collect();
            CountTable::merge(first.vocab().len(), &tables, &share).map(LagMatrix)
        });
        let lags = lags.collect::<Result<_, _>>()?;
        Ok(LagCounts { unigrams, n_tokens, lags, lexicon: first.lexicon.clone(), ..*first })
    }

    fn check_like(&self, other: &LagCounts) -> Result<(), &'static str> {
        let (ours, theirs) = (&self.lexicon, &other.lexicon);
        if !ours.vocab.words().eq(theirs.vocab.words()) {
            return Err("has another vocabulary than part 1");
        }
        if ours.vocab.counts() != theirs.vocab.counts() || ours.limits != theirs.limits {
            return Err("has the words of part 1, but its vocabulary was made from another text");
        }
        if ours.preprocessing != theirs.preprocessing {
            return Err("had its text preprocessed in another way than part 1");
        }
        if self.boundary != other.boundary {
            return Err("lets pairs cross other boundaries than part 1");
        }
        if self.n_lags() != other.n_lags() {
            return Err("has another number of lags than part 1");
        }
        Ok(())
    }

    /// The number of lags K.
    pub fn n_lags(&self) -> usize {
        self.lags.len()
    }

    /// The counts N_k of pairs that are `lag` tokens apart.
    ///
    /// # Panics
    /// If `lag` is 0 or more than [`LagCounts::n_lags`].
    pub fn lag(&self, lag: usize) -> &LagMatrix {
        assert!((1..=self.n_lags()).contains(&lag), "there are lags 1 to {}", self.n_lags());
        &self.lags[lag - 1]
    }

    /// All lags in order, from lag 1.
    pub fn lags(&self) -> &[LagMatrix] {
        &self.lags
    }

    /// The lags one after the other, from lag 1; what was taken can be dropped before the next one.
    pub fn into_lags(self) -> impl Iterator<Item = LagMatrix> {
        self.lags.into_iter()
    }

    /// How the text was read.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// The words that rows and columns stand for.
    pub fn vocab(&self) -> &Vocab {
        &self.lexicon.vocab
    }

    /// What pairs did not cross.
    pub fn boundary(&self) -> Boundary {
        self.boundary
    }

    /// How often each word was seen in the text that was counted.
    ///
    /// Not the counts of the vocabulary, which is often made from a larger text.
    pub fn unigrams(&self) -> &[u64] {
        &self.unigrams
    }

    /// How many tokens were counted, ends of sentences among them.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }
}

/// Counts what was seen before a range of words, one part for each lag.
fn count_words(occurrences: &Occurrences<'_>, words: Range<usize>, parts: &mut [Part<'_, u32>]) {
    let mut tally = Tally::new(occurrences.n_words());
    // What was seen, for each lag. All lags are collected at once, since their words lie together.
    let mut seen = vec![Vec::new(); parts.len()];
    for word_idx in words {
        seen.iter_mut().for_each(Vec::clear);
        occurrences.for_each_past(word_idx, |past| {
            for (seen, word) in seen.iter_mut().zip(past.iter().rev()) {
                seen.push(word.0);
            }
        });
        for (seen, part) in seen.iter_mut().zip(&mut *parts) {
            tally.count(seen, part);
        }
    }
}
