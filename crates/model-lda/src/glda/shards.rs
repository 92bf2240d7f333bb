//! Gaussian LDA from the shards of a corpus.

use super::gaussian::prior::Prior;
use super::kmeans::kmeans;
use super::model::Glda;
use super::params::{GldaParams, Sampler, Start};
use super::problem::{Problem, State};
use super::sampler::{document_rng, sweep};
use super::types::Types;
use crate::counts::TypeCounts;
use crate::documents::TypedDocuments;
use crate::glda::gaussian::prior::check_components;
use crate::shards::{
    ALPHA, Mixtures, Sizes, alpha_of, apply, carried, changes, check_part_of, inconsistent, survey,
};
use latens_corpus::{Documents, Lexicon, ReadError};
use latens_math::Rng;
use latens_model::shards::{Arrays, Computed, Job, Part, ShardInput, ShardState, Sharded, Step};
use latens_model::{FitError, ParamError, Valid, WordVectors, check_that};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Learns Gaussian LDA from shards with the sampler `parallel`: given the Gaussians, which follow from the counts of all
/// shards, documents are independent. Any number of shards gives the model of one process, bit for bit.
///
/// The additional inputs are `vectors`, the values of [`WordVectors`], and `dim`.
pub struct GldaShards;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Progress {
    sizes: Sizes,
    log_likelihood: f64,
}

const VECTORS: &str = "vectors";
const DIM: &str = "dim";
const CLUSTERS: &str = "clusters";
const COUNTS: &str = "counts";
/// Rounds before the first sweep.
const FIRST: u64 = 2;
/// Number of iterations between updates of α, and number of fixed-point steps per update.
const ALPHA_EVERY: u64 = 20;
const ALPHA_STEPS: usize = 10;
/// Number of iterations between measurements of the likelihood.
const LIKELIHOOD_EVERY: u64 = 10;

impl Sharded for GldaShards {
    const KIND: &'static str = Glda::KIND;
    type Params = GldaParams;
    type Text = Documents;
    const INPUTS: &'static [ShardInput] = &[ShardInput::Vocab, ShardInput::WordVectors];

    fn check(params: &GldaParams) -> Result<(), ParamError> {
        let can = matches!(params.sampler, Sampler::Auto | Sampler::Parallel);
        let asked = json!(params.sampler);
        check_that(can, "sampler", "`parallel` or `auto` for shards", asked)
    }

    fn begin(
        params: &Valid<GldaParams>,
        lexicon: &Lexicon,
        inputs: Arrays,
    ) -> Result<ShardState, FitError> {
        if !inputs.has(VECTORS) {
            return Err(FitError::not_enough_data("word vectors", "none"));
        }
        vectors_of(&inputs, lexicon)?;
        let n_rounds = Some(FIRST + params.n_iterations as u64);
        Ok(ShardState { n_rounds, arrays: inputs, ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<Documents, ReadError> {
        part.documents(lexicon)
    }

    fn statistics(
        job: &Job<'_, GldaParams>,
        shard: usize,
        text: &Documents,
        carry: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        let (params, n_topics) = (&job.params, job.params.n_topics);
        let (types, vectors) = Types::new(&vectors_of(&job.state.arrays, job.lexicon)?);
        let documents = TypedDocuments::of(text, |word| types.of(word));
        if job.round == 0 {
            return Ok(survey(shard, &documents, types.len(), text.n_tokens()).into());
        }
        let Progress { sizes, .. } = job.progress()?;
        sizes.check(job.n_shards)?;
        let documents = sizes.placed(shard, documents)?;
        let size = (types.len(), n_topics);
        if job.round < FIRST {
            let topics = first_topics(job, &documents, types.len())?;
            return Ok(changes(&documents, None, topics, size, false));
        }
        let before = carried(carry, documents.n_tokens(), n_topics)?;
        let counts = job.array::<u32>(COUNTS, types.len() * n_topics)?.to_vec();
        check_part_of(&documents, &before, &counts, n_topics)?;
        let mut state = State {
            topics: before.clone(),
            counts: TypeCounts::from_values(n_topics, counts),
            alpha: alpha_of(job, n_topics)?,
        };
        let prior = Prior::of(params, &vectors)?;
        let problem = Problem { prior, vectors, documents, weight: params.likelihood_weight };
        let iteration = job.round - FIRST;
        sweep(Sampler::Parallel, &problem, &mut state, 1, (params.seed, iteration));
        let measured = is_measured(params, iteration + 1);
        Ok(changes(&problem.documents, Some(&before), state.topics, size, measured))
    }

    fn update(job: &Job<'_, GldaParams>, sums: Arrays) -> Result<Step, FitError> {
        let (params, n_topics) = (&job.params, job.params.n_topics);
        let word_vectors = vectors_of(&job.state.arrays, job.lexicon)?;
        let (types, vectors) = Types::new(&word_vectors);
        let inputs = Arrays::new()
            .with(VECTORS, job.state.arrays.expect_any::<f32>(VECTORS)?.clone())
            .with(DIM, job.array::<u64>(DIM, 1)?.clone());
        let mut state = ShardState { n_rounds: job.state.n_rounds, ..ShardState::default() };
        if job.round == 0 {
            let (sizes, counts) = Sizes::from_survey(&sums, types.len(), job.n_shards)?;
            let n_tokens = sizes.n_tokens();
            if n_tokens == 0 {
                return Err(FitError::not_enough_data("a word that has a vector", "none"));
            }
            let must = format!("at most the number of tokens that have a vector, {n_tokens}");
            check_that(n_topics as u64 <= n_tokens, "n_topics", must, n_topics)?;
            state.arrays = inputs
                .with(COUNTS, vec![0u32; types.len() * n_topics])
                .with(ALPHA, vec![params.first_alpha(); n_topics]);
            if params.start == Start::Kmeans {
                let weights: Vec<f64> = counts.iter().map(|&n| (n as f64).sqrt()).collect();
                let mut rng = Rng::stream(params.seed, u64::MAX);
                let clusters = kmeans(&vectors, &weights, n_topics, &mut rng);
                state.arrays = state.arrays.with(CLUSTERS, clusters);
            }
            state.progress = to_json(&Progress { sizes, ..Progress::default() });
            return Ok(Step::Next(state));
        }
        let mut progress: Progress = job.progress()?;
        progress.sizes.check(job.n_shards)?;
        let n_tokens = progress.sizes.n_tokens();
        let mut counts = job.array::<u32>(COUNTS, types.len() * n_topics)?.to_vec();
        let mut alpha = alpha_of(job, n_topics)?;
        let changed = apply(&mut counts, &sums, n_tokens)?;
        let n_done = job.round.saturating_add(1).saturating_sub(FIRST);
        let prior = Prior::of(params, &vectors)?;
        let documents = TypedDocuments::default();
        let problem = Problem { prior, vectors, documents, weight: params.likelihood_weight };
        if job.round >= FIRST && is_measured(params, n_done) {
            let mixtures = Mixtures::of(&sums, n_topics)?;
            if params.optimize_alpha && n_done.is_multiple_of(ALPHA_EVERY) {
                (0..ALPHA_STEPS).for_each(|_| mixtures.improve_alpha(&mut alpha));
            }
            let topics = problem.topics(&TypeCounts::from_values(n_topics, counts.clone()));
            let marginals: f64 =
                topics.iter().map(|topic| topic.log_marginal(&problem.prior)).sum();
            progress.log_likelihood = marginals + mixtures.log_prob(&alpha);
            let per_token = progress.log_likelihood / n_tokens as f64;
            state.metrics.insert("log_likelihood_per_token".into(), per_token);
            state.metrics.insert("changed".into(), changed);
        }
        if job.round >= FIRST && n_done == params.n_iterations as u64 {
            let facts = facts(job, &progress, &counts);
            let (params, lexicon) = (params.clone(), job.lexicon.clone());
            let counts = TypeCounts::from_values(n_topics, counts);
            let glda =
                Glda::new(params, lexicon, word_vectors, types, problem, counts, alpha, facts);
            return Ok(Step::Model(Box::new(glda)));
        }
        state.progress = to_json(&progress);
        state.arrays = inputs.with(COUNTS, counts).with(ALPHA, alpha);
        Ok(Step::Next(state))
    }
}

/// Whether the likelihood is measured after this many iterations.
fn is_measured(params: &GldaParams, n_done: u64) -> bool {
    n_done.is_multiple_of(LIKELIHOOD_EVERY) || n_done == params.n_iterations as u64 || n_done == 1
}

fn vectors_of(arrays: &Arrays, lexicon: &Lexicon) -> Result<WordVectors, FitError> {
    let dim = arrays.expect::<u64>(DIM, 1)?[0] as usize;
    let n_values = lexicon.vocab.len().checked_mul(dim);
    let n_values = n_values.ok_or_else(|| inconsistent("the dimension is too large"))?;
    let values = arrays.expect::<f32>(VECTORS, n_values)?.clone();
    check_components(&values)?;
    WordVectors::new(dim, values).map_err(FitError::step("use word vectors"))
}

fn first_topics(
    job: &Job<'_, GldaParams>,
    documents: &TypedDocuments,
    n_types: usize,
) -> Result<Vec<u16>, FitError> {
    let n_topics = job.params.n_topics;
    if job.params.start == Start::Kmeans {
        let clusters = job.array::<u16>(CLUSTERS, n_types)?;
        if clusters.iter().any(|&k| usize::from(k) >= n_topics) {
            return Err(inconsistent("a topic is out of range"));
        }
        return Ok(documents.types.iter().map(|&t| clusters[t as usize]).collect());
    }
    let of_document = |d: usize| {
        let mut rng = document_rng(!job.params.seed, documents.number(d));
        let n = documents.range(d).len();
        (0..n).map(move |_| (rng.uniform() * n_topics as f64) as u16)
    };
    Ok((0..documents.len()).flat_map(of_document).collect())
}

fn to_json(progress: &Progress) -> Value {
    serde_json::to_value(progress).expect("progress consists of numbers")
}

fn facts(job: &Job<'_, GldaParams>, progress: &Progress, counts: &[u32]) -> Map<String, Value> {
    let Progress { sizes, log_likelihood } = progress;
    let n_tokens = sizes.n_tokens();
    let totals = TypeCounts::from_values(job.params.n_topics, counts.to_vec()).totals();
    let mut facts = Map::new();
    let mut fact = |name: &str, value: Value| facts.insert(name.into(), value);
    fact("tokens", n_tokens.into());
    fact("tokens_without_vector", sizes.all_tokens.saturating_sub(n_tokens).into());
    fact("documents", sizes.n_documents().into());
    fact("shards", job.n_shards.into());
    fact("sampler", json!(Sampler::Parallel));
    fact("log_likelihood", (*log_likelihood).into());
    fact("log_likelihood_per_token", (log_likelihood / n_tokens as f64).into());
    fact("empty_topics", totals.iter().filter(|&&n| n == 0).count().into());
    facts
}
