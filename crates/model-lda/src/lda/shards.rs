//! LDA from the shards of a corpus.

use super::fit::{ALPHA_EVERY, ALPHA_STEPS, LIKELIHOOD_EVERY, log_topics};
use super::model::Lda;
use super::params::{LdaParams, LdaSampler};
use super::sampler::sweep_part;
use super::types::type_of;
use crate::counts::TypeCounts;
use crate::documents::TypedDocuments;
use crate::shards::{
    ALPHA, Mixtures, Sizes, alpha_of, apply, carried, changes, check_part_of, inconsistent, survey,
};
use latens_corpus::{Documents, Lexicon, ReadError};
use latens_math::Rng;
use latens_model::shards::{Arrays, Computed, Job, Part, ShardState, Sharded, Step};
use latens_model::{FitError, ParamError, Valid, check_that};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Learns LDA from shards: one round counts words, one draws the first topics, and then a round is a sweep.
///
/// In a sweep, every shard starts from the same counts and sees its own changes only, as with several threads in one
/// process. The shards of a run are those of the sampler: one shard is ordinary Gibbs sampling, bit for bit.
pub struct LdaShards;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Progress {
    sizes: Sizes,
    log_likelihood: f64,
}

const COUNTS: &str = "counts";
/// Rounds before the first sweep.
const FIRST: u64 = 2;

impl Sharded for LdaShards {
    const KIND: &'static str = Lda::KIND;
    type Params = LdaParams;
    type Text = Documents;

    fn check(params: &LdaParams) -> Result<(), ParamError> {
        // Proposals of the sparse sampler come from tokens of all shards.
        let can = params.sampler != LdaSampler::Sparse;
        check_that(can, "sampler", "`dense` or `auto` for shards", "sparse")
    }

    fn begin(params: &Valid<LdaParams>, _: &Lexicon, _: Arrays) -> Result<ShardState, FitError> {
        let n_rounds = Some(FIRST + params.n_iterations as u64);
        Ok(ShardState { n_rounds, ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<Documents, ReadError> {
        part.documents(lexicon)
    }

    fn statistics(
        job: &Job<'_, LdaParams>,
        shard: usize,
        text: &Documents,
        carry: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        let (params, n_words) = (&job.params, job.lexicon.vocab.len());
        let n_topics = params.n_topics;
        let documents = TypedDocuments::of(text, |word| type_of(word, n_words));
        if job.round == 0 {
            return Ok(survey(shard, &documents, n_words, text.n_tokens()).into());
        }
        let Progress { sizes, .. } = job.progress()?;
        sizes.check(job.n_shards)?;
        let documents = sizes.placed(shard, documents)?;
        let size = (n_words, n_topics);
        if job.round < FIRST {
            let mut rng = Rng::stream(params.seed, u64::MAX);
            // The draws of the shards before this one.
            (0..sizes.first_token[shard]).for_each(|_| _ = rng.uniform());
            let draw = |_: &u32| (rng.uniform() * n_topics as f64) as u16;
            let topics = documents.types.iter().map(draw).collect();
            return Ok(changes(&documents, None, topics, size, false));
        }
        let before = carried(carry, documents.n_tokens(), n_topics)?;
        let iteration = job.round - FIRST;
        let seed: [u64; 4] = Rng::stream(params.seed, iteration).into();
        let counts = job.array::<u32>(COUNTS, n_words * n_topics)?;
        check_part_of(&documents, &before, counts, n_topics)?;
        let alpha = alpha_of(job, n_topics)?;
        let mut topics = before.clone();
        let prior = (&alpha[..], params.beta, n_words - 2);
        sweep_part(&documents, counts, prior, &mut topics, seed[0]);
        let is_measured = is_measured(params, iteration + 1);
        Ok(changes(&documents, Some(&before), topics, size, is_measured))
    }

    fn update(job: &Job<'_, LdaParams>, sums: Arrays) -> Result<Step, FitError> {
        let (params, n_words) = (&job.params, job.lexicon.vocab.len());
        let n_topics = params.n_topics;
        let mut state = ShardState { n_rounds: job.state.n_rounds, ..ShardState::default() };
        if job.round == 0 {
            let (sizes, _) = Sizes::from_survey(&sums, n_words, job.n_shards)?;
            let n_tokens = sizes.n_tokens();
            if n_tokens == 0 {
                return Err(FitError::not_enough_data("a word of the vocabulary", "none"));
            }
            let must = format!("at most the number of tokens, {n_tokens}");
            check_that(n_topics as u64 <= n_tokens, "n_topics", must, n_topics)?;
            state.progress = to_json(&Progress { sizes, ..Progress::default() });
            state.arrays = Arrays::new()
                .with(COUNTS, vec![0u32; n_words * n_topics])
                .with(ALPHA, vec![params.first_alpha(); n_topics]);
            return Ok(Step::Next(state));
        }
        let mut progress: Progress = job.progress()?;
        progress.sizes.check(job.n_shards)?;
        if n_words <= 2 {
            return Err(inconsistent("the vocabulary has no words"));
        }
        let n_tokens = progress.sizes.n_tokens();
        let mut counts = job.array::<u32>(COUNTS, n_words * n_topics)?.to_vec();
        let mut alpha = alpha_of(job, n_topics)?;
        let changed = apply(&mut counts, &sums, n_tokens)?;
        let n_done = job.round.saturating_add(1).saturating_sub(FIRST);
        if job.round >= FIRST && is_measured(params, n_done) {
            let mixtures = Mixtures::of(&sums, n_topics)?;
            if params.optimize_alpha && n_done.is_multiple_of(ALPHA_EVERY) {
                (0..ALPHA_STEPS).for_each(|_| mixtures.improve_alpha(&mut alpha));
            }
            let types = TypeCounts::from_values(n_topics, counts.clone());
            let of_topics = log_topics(&types, n_words - 2, params.beta);
            progress.log_likelihood = of_topics + mixtures.log_prob(&alpha);
            let per_token = progress.log_likelihood / n_tokens as f64;
            state.metrics.insert("log_likelihood_per_token".into(), per_token);
            state.metrics.insert("changed".into(), changed);
        }
        if job.round >= FIRST && n_done == params.n_iterations as u64 {
            return Ok(Step::Model(Box::new(finish(job, &progress, counts, alpha))));
        }
        state.progress = to_json(&progress);
        state.arrays = Arrays::new().with(COUNTS, counts).with(ALPHA, alpha);
        Ok(Step::Next(state))
    }
}

/// Whether the likelihood is measured after this many iterations, as in one process.
fn is_measured(params: &LdaParams, n_done: u64) -> bool {
    n_done.is_multiple_of(LIKELIHOOD_EVERY) || n_done == params.n_iterations as u64 || n_done == 1
}

fn to_json(progress: &Progress) -> Value {
    serde_json::to_value(progress).expect("progress consists of numbers")
}

fn finish(job: &Job<'_, LdaParams>, progress: &Progress, counts: Vec<u32>, alpha: Vec<f64>) -> Lda {
    let Progress { sizes, log_likelihood } = progress;
    let n_tokens = sizes.n_tokens();
    let counts = TypeCounts::from_values(alpha.len(), counts);
    let mut facts = Map::new();
    let mut fact = |name: &str, value: Value| facts.insert(name.into(), value);
    fact("tokens", n_tokens.into());
    fact("tokens_out_of_vocabulary", sizes.all_tokens.saturating_sub(n_tokens).into());
    fact("sampler", json!(LdaSampler::Dense));
    fact("documents", sizes.n_documents().into());
    fact("shards", job.n_shards.into());
    fact("log_likelihood", (*log_likelihood).into());
    fact("log_likelihood_per_token", (log_likelihood / n_tokens as f64).into());
    fact("empty_topics", counts.totals().iter().filter(|&&n| n == 0).count().into());
    Lda::new(job.params.clone(), job.lexicon.clone(), counts, alpha, facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lda::sampler::{LdaState, Sampling};
    use latens_corpus::DocumentCorpus;
    use latens_model::Params;
    use latens_model::shards::{KindOf, Round, ShardKind};
    use std::ops::Range;

    /// Documents of words whose frequencies differ.
    fn texts() -> Vec<String> {
        let mut rng = Rng::new(3);
        let word = |rng: &mut Rng| format!("w{}", (rng.uniform().powi(2) * 60.0) as u32);
        let text = |rng: &mut Rng| {
            let n = 5 + (rng.uniform() * 40.0) as usize;
            (0..n).map(|_| word(rng)).collect::<Vec<_>>().join(" ")
        };
        (0..70).map(|_| text(&mut rng)).collect()
    }

    #[test]
    fn shards_sample_the_topics_that_the_same_shards_of_one_process_sample() {
        let texts = texts();
        let DocumentCorpus { lexicon, documents } =
            latens_corpus::Documents::from_texts(&texts).unwrap();
        let params = LdaParams::default().n_topics(6).n_iterations(5);
        let params = LdaParams { sampler: LdaSampler::Dense, ..params }.validate().unwrap();
        let n_words = lexicon.vocab.len();
        let typed = TypedDocuments::of(&documents, |word| type_of(word, n_words));
        for n in [1, 2, 7] {
            let ranges: Vec<Range<usize>> = (0..n).map(|i| 70 * i / n..70 * (i + 1) / n).collect();

            let mut rng = Rng::stream(params.seed, u64::MAX);
            let topics = typed.types.iter().map(|_| (rng.uniform() * 6.0) as u16).collect();
            let mut state = LdaState::new(&typed, topics, n_words, vec![params.first_alpha(); 6]);
            state.set_n_types(n_words - 2);
            state.set_shards(ranges.clone());
            for iteration in 0..5 {
                let seed: [u64; 4] = Rng::stream(params.seed, iteration).into();
                Sampling::Dense.sweep(&mut state, &typed, params.beta, seed[0]);
            }

            let kind = KindOf::<LdaShards>::new();
            let json = serde_json::to_value(&params).unwrap();
            let mut broadcast = kind.begin(json, lexicon.clone(), n, Arrays::new()).unwrap();
            let mut kept = vec![None; n];
            let model = loop {
                let mut parts = Vec::new();
                for (shard, range) in ranges.iter().enumerate() {
                    let part = Part::Lines(texts[range.clone()].to_vec());
                    let text = kind.read(&broadcast, shard, &part).unwrap();
                    let last: Option<&latens_model::shards::Statistics> = kept[shard].as_ref();
                    let mut part = kind.statistics(&broadcast, &text, last).unwrap();
                    kept[shard] = part.take_carry();
                    parts.push(part);
                }
                match kind.update(&broadcast, kind.merge(parts).unwrap()).unwrap() {
                    Round::Next(next) => broadcast = *next,
                    Round::Model(model) => break model,
                    other => panic!("{other:?}"),
                }
            };
            let (params, facts) = (params.clone(), model.facts().clone());
            let (counts, alpha) = (state.counts(), state.alpha.clone());
            let expected = Lda::new(params, lexicon.clone(), counts, alpha, facts);
            let expected: Box<dyn latens_model::Model> = Box::new(expected);
            assert!(model.to_bytes() == expected.to_bytes(), "{n} shards");
        }
    }
}
