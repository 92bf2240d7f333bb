//! Bigram counts of the shards of a text.

use crate::algorithms::task::Task;
use crate::counts::bigrams::Bigrams;
use crate::fit::cluster;
use crate::model::Brown;
use crate::params::BrownParams;
use latens_corpus::{Lexicon, ReadError, Sentences};
use latens_counts::Budget;
use latens_model::shards::{Arrays, Computed, Job, Part, ShardState, Sharded, Step};
use latens_model::{FitError, Valid, Watch, unwatched};

/// Counts bigrams in shards in one round, and clusters the words by the sums.
///
/// Bigrams do not cross the ends of shards. If every shard consists of whole files, the model is that of one process.
pub struct BrownShards;

/// Counts of words and bigrams, which add up over the parts of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BigramCounts {
    /// Number of occurrences of each word, without ends of sentences.
    pub frequency: Vec<u64>,
    /// Pairs of words with their counts, in ascending order. A pair has the first word in its upper 32 bits.
    pub pairs: Vec<(u64, u64)>,
}

const FREQUENCY: &str = "frequency";
const PAIRS: &str = "pairs";

impl BigramCounts {
    /// Counts the words and bigrams of a text.
    pub fn of(sentences: &Sentences, n_words: usize) -> Result<BigramCounts, FitError> {
        let (frequency, pairs) = Bigrams::pairs_of(sentences, n_words, &Budget::default())
            .map_err(FitError::step("count bigrams"))?;
        Ok(BigramCounts { frequency, pairs })
    }

    /// Adds the counts to arrays that merge by addition.
    pub fn add_to(self, arrays: Arrays) -> Arrays {
        let pairs = self.pairs.into_iter().map(|(key, count)| (key, count as i64));
        arrays.with(FREQUENCY, self.frequency).with_sparse(PAIRS, pairs)
    }

    /// The counts in arrays that [`BigramCounts::add_to`] made. Fails if they contain other words than a vocabulary.
    pub fn from_arrays(arrays: &Arrays, n_words: usize) -> Result<BigramCounts, FitError> {
        let frequency = arrays.expect_counts(FREQUENCY, n_words)?.to_vec();
        let pairs = arrays.expect_sparse(PAIRS)?;
        let is_word = |word: u64| (word as usize) < n_words;
        // An occurrence of a word is the first of one pair at most, so that sums over pairs do not overflow either.
        let mut left = frequency.clone();
        let mut is_pair = |&(key, n): &(u64, i64)| {
            let (first, second) = (key >> 32, key & 0xffff_ffff);
            if !is_word(first) || !is_word(second) || n <= 0 {
                return false;
            }
            let left = &mut left[first as usize];
            left.checked_sub(n as u64).map(|rest| *left = rest).is_some()
        };
        if !pairs.iter().all(&mut is_pair) {
            return Err(FitError::Step {
                action: "use the bigram counts of shards",
                source: "they contain invalid words or counts".into(),
            });
        }
        let pairs = pairs.into_iter().map(|(key, count)| (key, count as u64)).collect();
        Ok(BigramCounts { frequency, pairs })
    }
}

impl Brown {
    /// Clusters the words of a vocabulary by the bigrams of a text.
    pub fn from_counts(
        params: &Valid<BrownParams>,
        lexicon: &Lexicon,
        counts: BigramCounts,
        watch: &mut Watch,
    ) -> Result<Brown, FitError> {
        let bigrams = Bigrams::from_pairs(counts.frequency, counts.pairs);
        let task = Task::from_bigrams(params, None, bigrams)?;
        cluster(&task, params, lexicon, None, watch)
    }
}

impl Sharded for BrownShards {
    const KIND: &'static str = Brown::KIND;
    type Params = BrownParams;
    type Text = Sentences;

    fn begin(_: &Valid<BrownParams>, _: &Lexicon, _: Arrays) -> Result<ShardState, FitError> {
        Ok(ShardState { n_rounds: Some(1), ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<Sentences, ReadError> {
        part.sentences(lexicon)
    }

    fn statistics(
        job: &Job<'_, BrownParams>,
        _: usize,
        text: &Sentences,
        _: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        let counts = BigramCounts::of(text, job.lexicon.vocab.len())?;
        let arrays = Arrays::new().with("tokens", vec![text.n_tokens() as u64]);
        Ok(counts.add_to(arrays).into())
    }

    fn update(job: &Job<'_, BrownParams>, sums: Arrays) -> Result<Step, FitError> {
        let counts = BigramCounts::from_arrays(&sums, job.lexicon.vocab.len())?;
        let mut model = Brown::from_counts(&job.params, job.lexicon, counts, &mut unwatched)?;
        model.add_fact("tokens", sums.expect::<u64>("tokens", 1)?[0]);
        Ok(Step::Model(Box::new(model)))
    }
}
