//! Gradients of mini-batches that are split over shards.

use super::progress::{Batches, HmmText, Progress, inconsistent, progress, to_json};
use super::space::{constants, space};
use crate::fit::probabilities;
use crate::model::Hmm;
use crate::params::HmmParams;
use crate::recursion::batch::Batch;
use crate::recursion::forward_backward::ForwardBackward;
use crate::space::state_space::StateSpace;
use crate::steps::batches::{Data, shuffled};
use crate::steps::learner::Choices;
use crate::tables::expected_counts::ExpectedCounts;
use crate::tables::probability_tables::Tables;
use crate::train::gradient::{ORDER, WEIGHTS, choices, first_plateau, learning_rate};
use crate::train::task::Task;
use latens_corpus::Sentences;
use latens_math::{BatchPlace, Rng};
use latens_model::shards::{Arrays, Job, ShardState, Step};
use latens_model::{Device, FitError, Params, fingerprint};
use latens_nn::{AdamW, AdamWParams, clip_factor, norm};
use serde_json::Map;
use std::sync::{Arc, PoisonError};

/// The lengths of all sentences, and the first sentence of each shard with the end of the last.
const LENGTHS: &str = "lengths";
const BEGINS: &str = "begins";
const WEIGHTS_ARRAY: &str = "weights";
/// The state of the optimizer, which only updates need.
const MOMENTS: [&str; 2] = ["driver.mean", "driver.square"];

const GRADIENT: &str = "gradient";
const LOG_PROB: &str = "log_prob";
const TOKENS: &str = "tokens";

pub(super) fn begin(
    job: &Job<'_, HmmParams>,
    space: StateSpace,
    mut progress: Progress,
    mut state: ShardState,
    lengths: &[Vec<u32>],
) -> Result<Step, FitError> {
    let empty = Sentences::from_words::<Vec<_>>([]);
    let task = task(job, &space, &empty);
    let mapping = task.mapping();
    let mut weights = vec![0.0; mapping.layout().len()];
    mapping.init(&mut weights, &mut Rng::at(job.params.seed, WEIGHTS, BatchPlace::default()));
    drop((mapping, task));
    let mut begins = vec![0u64];
    begins.extend(lengths.iter().scan(0, |end, lengths| {
        *end += lengths.len() as u64;
        Some(*end)
    }));
    progress.plateau = Some(first_plateau(&job.params));
    let lengths = lengths.concat();
    progress.n_batches = epoch_batches(&job.params, &lengths, progress.tokens, 0).len();
    for moment in MOMENTS {
        state.arrays = state.arrays.with(moment, vec![0f32; weights.len()]);
    }
    state.arrays = state.arrays.with(LENGTHS, lengths).with(BEGINS, begins);
    state.arrays = state.arrays.with(WEIGHTS_ARRAY, weights);
    next(job, space, progress, state)
}

/// The state after a step, or the model after the last one.
fn next(
    job: &Job<'_, HmmParams>,
    space: StateSpace,
    progress: Progress,
    mut state: ShardState,
) -> Result<Step, FitError> {
    if progress.epoch < job.params.epochs {
        // The number of mini-batches differs a little between epochs.
        let all = (progress.n_batches as u64).saturating_mul(job.params.epochs as u64);
        state.n_rounds = Some(all.max(progress.n_steps + 1).saturating_add(1));
        state.progress = to_json(&progress);
        return Ok(Step::Next(state));
    }
    let empty = Sentences::from_words::<Vec<_>>([]);
    let task = task(job, &space, &empty);
    let n_weights = task.mapping().layout().len();
    let weights = state.arrays.expect::<f32>(WEIGHTS_ARRAY, n_weights)?.to_vec();
    let (weights, tables) = probabilities(&task, weights);
    drop(task);
    let mut facts = Map::new();
    facts.insert("epochs".into(), progress.epoch.into());
    facts.extend(progress.train_perplexity.map(|value| ("train_perplexity".into(), value.into())));
    facts.insert("tokens".into(), progress.tokens.into());
    facts.insert("sentences".into(), progress.sentences.into());
    facts.insert("shards".into(), job.n_shards.into());
    let params = job.params.for_text(progress.tokens as usize).validate()?;
    let lexicon = job.lexicon.clone();
    Ok(Step::Model(Box::new(Hmm::new(params, lexicon, facts, space, weights, tables, None))))
}

/// The inputs of training without a text.
fn task<'a>(job: &'a Job<'_, HmmParams>, space: &'a StateSpace, empty: &'a Sentences) -> Task<'a> {
    Task {
        params: &job.params,
        space,
        spellings: space.words().iter().map(|&word| job.lexicon.vocab.word(word)).collect(),
        n_tags: 0,
        drawn: None,
        train: Data { sentences: empty, tags: None, run_tokens: None },
        valid: None,
        fingerprint: 0,
        device: Device::Cpu,
        group: None,
        kind: Hmm::KIND,
    }
}

/// The mini-batches of an epoch of the whole text: those of one process.
fn epoch_batches(
    params: &HmmParams,
    lengths: &[u32],
    n_tokens: u64,
    epoch: usize,
) -> Vec<Vec<u32>> {
    let mut order = Rng::at(params.seed, ORDER, BatchPlace { epoch, batch: 0 });
    let batch_tokens = params.batch_tokens_of(n_tokens as usize);
    shuffled(lengths.len(), |idx| lengths[idx] as usize, batch_tokens, &mut order)
}

/// The mini-batches of an epoch, from the last round if the epoch is the same.
fn cached_batches(
    job: &Job<'_, HmmParams>,
    text: &HmmText,
    progress: &Progress,
    lengths: &[u32],
) -> Batches {
    let (params, epoch) = (&job.params, progress.epoch);
    let numbers = [params.seed as u32, (params.seed >> 32) as u32, epoch as u32];
    let sizes = [params.batch_tokens as u32, progress.tokens as u32];
    let key = fingerprint(numbers.into_iter().chain(sizes).chain(lengths.iter().copied()));
    let mut cache = text.batches.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, batches)) = cache.as_ref().filter(|(cached, _)| *cached == key) {
        return batches.clone();
    }
    let batches = Arc::new(epoch_batches(params, lengths, progress.tokens, epoch));
    *cache = Some((key, batches.clone()));
    batches
}

/// The gradient of the sentences of a shard that belong to the mini-batch.
pub(super) fn statistics(
    job: &Job<'_, HmmParams>,
    shard: usize,
    text: &HmmText,
) -> Result<Arrays, FitError> {
    let progress = progress(job)?;
    let space = space(job)?;
    let begins = job.array::<u64>(BEGINS, job.n_shards + 1)?;
    let own = begins[shard] as u32..begins[shard + 1] as u32;
    let lengths = job.array::<u32>(LENGTHS, begins[job.n_shards] as usize)?;
    let is_same = text.sentences.len() == own.len()
        && text.sentences.tokens().iter().all(|&word| space.slot(word).is_some());
    if !is_same {
        return Err(inconsistent("the text of the shard is not the one of the first round"));
    }
    let batches = cached_batches(job, text, &progress, lengths);
    let idxs = batches.get(progress.batch).ok_or_else(|| inconsistent("there is no such batch"))?;
    let idxs = idxs.iter().filter(|idx| own.contains(idx)).map(|idx| (idx - own.start) as usize);
    let batch =
        Batch { sentences: idxs.map(|idx| text.sentences.get(idx)).collect(), tags: vec![] };

    let empty = Sentences::from_words::<Vec<_>>([]);
    let mut mapping = task(job, &space, &empty).mapping();
    let n_weights = mapping.layout().len();
    let weights = job.array::<f32>(WEIGHTS_ARRAY, n_weights)?;
    let mut gradient = vec![0.0; n_weights];
    let mut log_prob = 0.0;
    if !batch.sentences.is_empty() {
        let place = BatchPlace { epoch: progress.epoch, batch: progress.batch };
        let params = job.params.for_text(progress.tokens as usize);
        let Choices { kept, dropout, .. } = choices(&params, &space, place, batch.n_tokens());
        let (mut tables, mut expected) = (Tables::default(), ExpectedCounts::default());
        mapping.forward(weights, &space, &kept, dropout, &mut tables);
        let log_probs =
            ForwardBackward::default().expected_counts(&space, &tables, &batch, &mut expected);
        mapping.backward(weights, &space, &kept, &mut tables, &expected, &mut gradient);
        log_prob = log_probs.iter().sum();
    }
    let gradient: Vec<f64> = gradient.into_iter().map(f64::from).collect();
    Ok(Arrays::new()
        .with(GRADIENT, gradient)
        .with(LOG_PROB, vec![log_prob])
        .with(TOKENS, vec![batch.n_tokens() as u64]))
}

/// A step of the optimizer.
pub(super) fn update(job: &Job<'_, HmmParams>, sums: &Arrays) -> Result<Step, FitError> {
    let (params, space) = (&job.params, space(job)?);
    let mut progress = progress(job)?;
    let n_weights = {
        let empty = Sentences::from_words::<Vec<_>>([]);
        task(job, &space, &empty).mapping().layout().len()
    };
    let gradient = sums.expect::<f64>(GRADIENT, n_weights)?;
    let gradient: Vec<f32> = gradient.iter().map(|&value| value as f32).collect();
    let (log_prob, n) = (sums.expect::<f64>(LOG_PROB, 1)?[0], sums.expect::<u64>(TOKENS, 1)?[0]);
    // The loss is the mean of −ln p per token.
    let per_token = 1.0 / n.max(1) as f64;
    let norm = norm(&gradient) * per_token;
    if !log_prob.is_finite() || !norm.is_finite() {
        return Err(FitError::Diverged { epoch: progress.epoch + 1, lower: "learning_rate" });
    }
    let mut weights = job.array::<f32>(WEIGHTS_ARRAY, n_weights)?.to_vec();
    let [mean, square] = MOMENTS.map(|name| job.array::<f32>(name, n_weights));
    let adamw = AdamWParams { weight_decay: params.weight_decay, ..AdamWParams::default() };
    let (mean, square) = (mean?.to_vec(), square?.to_vec());
    let is_finite = |values: &[f32]| values.iter().all(|value| value.is_finite());
    if !is_finite(&weights)
        || !is_finite(&mean)
        || square.iter().any(|v| !(0.0..=f32::MAX).contains(v))
    {
        return Err(inconsistent("weights or the state of the optimizer are not finite"));
    }
    let mut optimizer = AdamW::from_parts(adamw, mean, square, progress.n_steps);
    let plateau = progress.plateau.take().ok_or_else(|| inconsistent("a schedule is missing"))?;
    let rate = learning_rate(params, progress.n_steps, progress.n_batches, &plateau);
    let scale = -per_token * clip_factor(norm, params.clip);
    optimizer.update(&mut weights, &gradient, rate, scale);
    let (mean, square) = optimizer.moments();
    if [&weights[..], mean, square].into_iter().any(|values| !is_finite(values)) {
        return Err(FitError::Diverged { epoch: progress.epoch + 1, lower: "learning_rate" });
    }
    progress.plateau = Some(plateau);
    progress.n_steps += 1;
    progress.batch += 1;
    progress.log_prob += log_prob;
    let lengths = job.state.arrays.expect_any::<u32>(LENGTHS)?.clone();
    if progress.batch >= progress.n_batches {
        end_epoch(params, &mut progress, &lengths);
    }
    let arrays = constants(job)?
        .with(LENGTHS, lengths)
        .with(BEGINS, job.array::<u64>(BEGINS, job.n_shards + 1)?.clone())
        .with(WEIGHTS_ARRAY, weights)
        .with(MOMENTS[0], mean.to_vec())
        .with(MOMENTS[1], square.to_vec());
    let batch_perplexity = (-log_prob * per_token).exp();
    let mut metrics = [("batch_perplexity".to_owned(), batch_perplexity)].into();
    if let Some(perplexity) = progress.train_perplexity {
        metrics = [("train_perplexity".to_owned(), perplexity)].into();
    }
    let state = ShardState { metrics, arrays, ..ShardState::default() };
    next(job, space, progress, state)
}

fn end_epoch(params: &HmmParams, progress: &mut Progress, lengths: &[u32]) {
    let perplexity = (-progress.log_prob / progress.tokens.max(1) as f64).exp();
    progress.train_perplexity = Some(perplexity);
    if let Some(plateau) = &mut progress.plateau {
        plateau.observe(perplexity);
    }
    progress.epoch += 1;
    (progress.batch, progress.log_prob) = (0, 0.0);
    if progress.epoch < params.epochs {
        let batches = epoch_batches(params, lengths, progress.tokens, progress.epoch);
        progress.n_batches = batches.len();
    }
}
