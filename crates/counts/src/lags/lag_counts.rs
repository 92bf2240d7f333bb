use crate::budget::Budget;
use crate::counting::batches::count_in_batches;
use crate::counting::occurrences::{Occurrences, Text};
use crate::counting::rows::Part;
use crate::error::CountError;
use crate::lags::lag_matrix::LagMatrix;
use crate::lags::tally::Tally;
use crate::table::count_table::CountTable;
use latens_corpus::{Corpus, Lexicon, Vocab};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::{ControlFlow, Range};

/// Boundary that pairs of tokens must not cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// End of a file. Its sentences form one stream, in which `<eos>` is an ordinary token.
    #[default]
    Stream,
    /// End of a sentence, after its `<eos>`.
    Sentence,
}

/// Counts of all pairs of words at distances of 1, 2, … K tokens.
///
/// They include the lexicon that defines the word ids. No pair crosses the end of a file, so the
/// counts of several files add up to the counts of all of them.
#[derive(Clone, Debug)]
pub struct LagCounts {
    pub(crate) lexicon: Lexicon,
    pub(crate) boundary: Boundary,
    pub(crate) unigrams: Vec<u64>,
    pub(crate) n_tokens: u64,
    pub(crate) lags: Vec<LagMatrix>,
}

impl LagCounts {
    /// Counts the pairs of tokens at distances from 1 to `n_lags`.
    ///
    /// `watch` receives the number of tokens processed so far and can stop the count.
    ///
    /// # Panics
    /// If the sentences contain word ids outside the vocabulary.
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

    /// Adds up counts of different files. The order of the parts does not matter.
    ///
    /// All parts must have the same lexicon, boundary and number of lags.
    pub fn merge(parts: &[LagCounts], budget: &Budget) -> Result<LagCounts, CountError> {
        let Some(first) = parts.first() else { return Err(CountError::NothingToMerge) };
        let (mut unigrams, mut n_tokens) = (vec![0; first.vocab().len()], 0_u64);
        for (i, part) in parts.iter().enumerate() {
            first.check_like(part).map_err(|difference| CountError::Unlike {
                part: i + 1,
                difference: difference.to_owned(),
            })?;
            // If this sum does not overflow, no sum below can: the others count fewer tokens.
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
            return Err("has a different vocabulary from part 1");
        }
        if ours.vocab.counts() != theirs.vocab.counts() || ours.limits != theirs.limits {
            return Err(
                "has the words of part 1, but its vocabulary was learned from another text",
            );
        }
        if ours.preprocessing != theirs.preprocessing {
            return Err("was preprocessed differently from part 1");
        }
        if self.boundary != other.boundary {
            return Err("uses a different boundary from part 1");
        }
        if self.n_lags() != other.n_lags() {
            return Err("has a different number of lags from part 1");
        }
        Ok(())
    }

    /// Number of lags K.
    pub fn n_lags(&self) -> usize {
        self.lags.len()
    }

    /// Returns the counts N_k of pairs at a distance of `lag` tokens.
    ///
    /// # Panics
    /// If `lag` is 0 or larger than [`LagCounts::n_lags`].
    pub fn lag(&self, lag: usize) -> &LagMatrix {
        assert!(
            (1..=self.n_lags()).contains(&lag),
            "the lag must be from 1 to {}, got {lag}",
            self.n_lags()
        );
        &self.lags[lag - 1]
    }

    /// The counts of all lags in order, starting with lag 1.
    pub fn lags(&self) -> &[LagMatrix] {
        &self.lags
    }

    /// Iterates over the lags by value, starting with lag 1, so that the memory of each can be freed
    /// before the next.
    pub fn into_lags(self) -> impl Iterator<Item = LagMatrix> {
        self.lags.into_iter()
    }

    /// Preprocessing and vocabulary.
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// The words of rows and columns.
    pub fn vocab(&self) -> &Vocab {
        &self.lexicon.vocab
    }

    /// Boundary that pairs do not cross.
    pub fn boundary(&self) -> Boundary {
        self.boundary
    }

    /// Count of each word in the text that was counted.
    ///
    /// These are not the counts of the vocabulary, which is often learned from a larger text.
    pub fn unigrams(&self) -> &[u64] {
        &self.unigrams
    }

    /// Number of tokens, including end-of-sentence tokens.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }
}

/// Counts the words before a range of words, with one part per lag.
fn count_words(occurrences: &Occurrences<'_>, words: Range<usize>, parts: &mut [Part<'_, u32>]) {
    let mut tally = Tally::new(occurrences.n_words());
    // The words seen at each lag. All lags are collected at once, because their words are adjacent.
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
