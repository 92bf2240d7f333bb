//! The vocabulary of a text, from the word counts of its shards.

use super::arrays::Arrays;
use super::contract::{Computed, Job, Part, ShardInput, Sharded, Step};
use super::error::ShardError;
use super::state::ShardState;
use crate::fit::FitError;
use crate::params::{ParamError, Params, Valid, check_that};
use latens_corpus::{Census, Corpus, Lexicon, ReadError, Vocab, VocabLimits};
use serde::{Deserialize, Serialize};

/// Parameters of a vocabulary. The preprocessing and the limits are those of the lexicon that a run starts with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct VocabParams {
    /// Whether the text consists of documents, which have no ends of sentences.
    pub documents: bool,
}

impl Params for VocabParams {
    fn check(&self) -> Result<(), ParamError> {
        Ok(())
    }
}

/// Learns a vocabulary from shards in one round.
pub struct VocabCounts;

impl Sharded for VocabCounts {
    const KIND: &'static str = "vocab";
    type Params = VocabParams;
    type Text = Census;
    const INPUTS: &'static [ShardInput] = &[];

    fn begin(_: &Valid<VocabParams>, lexicon: &Lexicon, _: Arrays) -> Result<ShardState, FitError> {
        check_that(lexicon.cleaning.is_empty(), "cleaning", "unset for shards", "a cleaning")?;
        Ok(ShardState { n_rounds: Some(1), ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<Census, ReadError> {
        // The limits apply to the counts of all shards.
        let (preprocessing, all) = (&lexicon.preprocessing, VocabLimits::default());
        match part {
            Part::Files(inputs) => Lexicon::learn(inputs, preprocessing, &all),
            Part::Lines(lines) => {
                let reader = Corpus::reader().preprocessing(*preprocessing).limits(all);
                let Corpus { lexicon, sentences } = reader.read_lines(lines)?;
                let (n_tokens, n_sentences) = (sentences.n_tokens() as u64, sentences.len() as u64);
                Ok(Census { lexicon, n_tokens, n_sentences })
            }
        }
    }

    fn statistics(
        _: &Job<'_, VocabParams>,
        _: usize,
        census: &Census,
        _: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        Ok(to_arrays(&census.lexicon.vocab).into())
    }

    fn merge(a: Arrays, b: Arrays) -> Result<Arrays, FitError> {
        let (a, b) = (from_arrays(&a)?, from_arrays(&b)?);
        let words = [&a, &b].into_iter().flat_map(|v| v.words().zip(v.counts().iter().copied()));
        Ok(to_arrays(&Vocab::from_counts(words, &VocabLimits::default())))
    }

    fn update(job: &Job<'_, VocabParams>, sums: Arrays) -> Result<Step, FitError> {
        let Lexicon { preprocessing, limits, .. } = job.lexicon;
        let all = from_arrays(&sums)?;
        let is_counted =
            |&(word, _): &(&str, u64)| !(job.params.documents && word == latens_corpus::EOS);
        let words = all.words().zip(all.counts().iter().copied()).filter(is_counted);
        let vocab = Vocab::from_counts(words, limits);
        Ok(Step::Lexicon(Lexicon::new(*preprocessing, *limits, vocab)))
    }
}

fn to_arrays(vocab: &Vocab) -> Arrays {
    let ends: Vec<u64> = vocab
        .words()
        .scan(0, |end, word| {
            *end += word.len() as u64;
            Some(*end)
        })
        .collect();
    let letters: Vec<u8> = vocab.words().flat_map(str::bytes).collect();
    let counts = vocab.counts().to_vec();
    Arrays::new().with("ends", ends).with("letters", letters).with("counts", counts)
}

fn from_arrays(arrays: &Arrays) -> Result<Vocab, FitError> {
    let ends = arrays.get::<u64>("ends").map_err(ShardError::inconsistent)?;
    let letters = arrays.get::<u8>("letters").map_err(ShardError::inconsistent)?;
    let counts = arrays.expect::<u64>("counts", ends.len())?;
    Vocab::from_arrays(letters, ends, counts.to_vec())
        .map_err(FitError::step("read the words of a shard"))
}
