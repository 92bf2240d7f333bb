use crate::kneser_ney::Estimator;
use crate::model::Ngram;
use crate::params::NgramParams;
use latens_corpus::{Corpus, Lexicon};
use latens_counts::{Budget, CountError, NgramCounts};
use latens_model::{FitError, Progress, Valid, Watch};
use serde_json::{Map, json};
use std::time::Instant;

impl Ngram {
    /// Learns a model from a text: counts its n-grams, then turns counts into probabilities.
    pub fn fit(
        params: &Valid<NgramParams>,
        corpus: &Corpus,
        watch: &mut Watch,
    ) -> Result<Ngram, FitError> {
        let started = Instant::now();
        let counts = Ngram::count(params, corpus, &Budget::default(), watch)?;
        let mut model = Ngram::from_counts(params, &corpus.lexicon, &counts);
        model.add_fact("tokens", corpus.sentences.n_tokens());
        model.add_fact("sentences", corpus.sentences.len());
        model.add_fact("seconds", started.elapsed().as_secs_f64());
        Ok(model)
    }

    /// The statistics of one shard of a text. Those of several shards, encoded with one vocabulary,
    /// merge with [`NgramCounts::merge`] to those of the whole.
    pub fn count(
        params: &Valid<NgramParams>,
        shard: &Corpus,
        budget: &Budget,
        watch: &mut Watch,
    ) -> Result<NgramCounts, FitError> {
        let total = shard.sentences.n_tokens() as u64;
        let mut report = |done_tokens: usize| {
            let progress = Progress {
                phase: "count n-grams",
                done: done_tokens as u64,
                total: Some(total),
                unit: "tokens",
                ..Progress::default()
            };
            watch(&progress)
        };
        let n_words = shard.lexicon.vocab.len();
        let counts = NgramCounts::of(&shard.sentences, n_words, params.order, budget, &mut report);
        counts.map_err(|error| match error {
            CountError::Interrupted => FitError::Interrupted,
            error => FitError::step("count n-grams")(error),
        })
    }

    /// The model of counts of the order that `params` has.
    ///
    /// # Panics
    /// If the counts have another order, or were made with another number of words.
    pub fn from_counts(
        params: &Valid<NgramParams>,
        lexicon: &Lexicon,
        counts: &NgramCounts,
    ) -> Ngram {
        assert_eq!(counts.order(), params.order, "counts of the model's order");
        assert_eq!(counts.n_words(), lexicon.vocab.len(), "counts with the model's vocabulary");
        let mut estimator = Estimator::new(params.order, lexicon.vocab.len());
        counts.for_each(|reversed, count| estimator.add(reversed, count));
        let (trie, discounts) = estimator.finish(params);
        let mut facts = Map::new();
        let discounts: Vec<[f64; 3]> = discounts.iter().map(|discounts| discounts.0).collect();
        facts.insert("discounts".to_owned(), json!(discounts));
        Ngram { params: params.clone(), lexicon: lexicon.clone(), facts, trie }
    }
}
