//! Factorial hidden Markov models from the shards of a text.

use crate::distribution::Distribution;
use crate::fitted::fit::{base_scores, collapsed_layers, unigrams};
use crate::fitted::model::Fhmm;
use crate::inference::convergence::Stop;
use crate::inference::smoother::{Expected, Smoother};
use crate::params::FhmmParams;
use crate::shape::Shape;
use crate::train::lazy_update::Turn;
use crate::train::m_step::Evidence;
use crate::train::state::{INITIALIZATION, ORDER, stream};
use crate::train::statistics::Statistics;
use crate::word_rows::WordRows;
use latens_corpus::{Lexicon, ReadError, Sentences};
use latens_model::shards::{Arrays, Computed, Job, Part, ShardState, Sharded, Step};
use latens_model::{FitError, ParamError, Valid, check_that};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

/// Learns a factorial hidden Markov model from shards: a round is a mini-batch of stepwise EM, split over the shards.
///
/// The normalizer of the emission must be exact (`inference` = `exact-mf` or `exact`): bounds for every token have no
/// statistics that add up.
pub struct FhmmShards;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// The first sentence of each shard, with the end of the last.
    begins: Vec<u64>,
    n_tokens: u64,
    epoch: usize,
    batch: usize,
    n_steps: u64,
    /// Bound and tokens of this epoch so far.
    bound: f64,
    epoch_tokens: u64,
    train_bound: Option<f64>,
}

/// The largest number of sentences of all shards, which every worker shuffles in 256 MiB.
const MAX_SENTENCES: u64 = 1 << 26;
const WORDS: &str = "words";
const SENTENCES: &str = "sentences";
const MODEL: [&str; 3] = ["start", "transition", "scores"];
const NORMALIZERS: &str = "normalizers";
const COUNTS: [&str; 4] = ["counts.start", "counts.pairs", "counts.words", "counts.emitting"];
/// Running averages, which only updates need.
const AVERAGES: [&str; 4] = ["driver.start", "driver.pairs", "driver.words", "driver.emitting"];
const BOUND: &str = "bound";
const TOKENS: &str = "tokens";

impl Sharded for FhmmShards {
    const KIND: &'static str = Fhmm::KIND;
    type Params = FhmmParams;
    type Text = Sentences;

    fn check(params: &FhmmParams) -> Result<(), ParamError> {
        let inference = params.chosen_inference();
        let adds_up = inference.counts_joint_states();
        check_that(adds_up, "inference", "`exact-mf` or `exact` for shards", json!(inference))?;
        check_that(params.restarts == 1, "restarts", "1 for shards", params.restarts)
    }

    fn begin(_: &Valid<FhmmParams>, _: &Lexicon, _: Arrays) -> Result<ShardState, FitError> {
        Ok(ShardState::default())
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<Sentences, ReadError> {
        part.sentences(lexicon)
    }

    fn statistics(
        job: &Job<'_, FhmmParams>,
        shard: usize,
        text: &Sentences,
        _: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        if job.round == 0 {
            let mut counts = vec![0u64; job.lexicon.vocab.len()];
            text.tokens().iter().for_each(|word| counts[word.index()] += 1);
            let sizes = [(shard as u64, text.len() as i64)];
            return Ok(Arrays::new().with(WORDS, counts).with_sparse(SENTENCES, sizes).into());
        }
        let progress = progress(job)?;
        let (rows, smoother) = model(job)?;
        let own = match progress.begins.get(shard..shard + 2) {
            Some(&[begin, end]) if end.checked_sub(begin) == Some(text.len() as u64) => {
                begin as u32..end as u32
            }
            _ => return Err(inconsistent("the text is not the one of the first round")),
        };
        let batch = batch(&job.params, &progress)?;
        let own =
            batch.iter().filter(|idx| own.contains(idx)).map(|idx| (idx - own.start) as usize);
        let sentences: Vec<Vec<u32>> =
            own.map(|idx| text.get(idx).iter().map(|&word| rows.row(word)).collect()).collect();
        let sentences: Vec<&[u32]> = sentences.iter().map(Vec::as_slice).collect();
        let n_tokens: usize = sentences.iter().map(|sentence| sentence.len()).sum();
        let shape = smoother.distribution().shape;
        let mut counts = Statistics::new(shape, smoother.inference());
        let mut bound = 0.0;
        if n_tokens > 0 {
            let expected = smoother.expect(&sentences, Stop::after(job.params.sweeps));
            counts.blend(1.0, &sentences, &expected);
            bound = expected.bound;
        }
        let mut sums = Arrays::new().with(BOUND, vec![bound]).with(TOKENS, vec![n_tokens as u64]);
        for (name, mut values) in COUNTS.iter().zip(parts(counts)) {
            values.iter_mut().for_each(|value| *value *= n_tokens as f64);
            sums = sums.with(name, values);
        }
        Ok(sums.into())
    }

    fn update(job: &Job<'_, FhmmParams>, sums: Arrays) -> Result<Step, FitError> {
        if job.round == 0 {
            return begin(job, &sums);
        }
        let mut progress = progress(job)?;
        let (rows, mut smoother) = model(job)?;
        let shape = smoother.distribution().shape;
        let n = sums.expect::<u64>(TOKENS, 1)?[0];
        let bound = sums.expect::<f64>(BOUND, 1)?[0];
        progress.bound += bound;
        progress.epoch_tokens = progress.epoch_tokens.saturating_add(n);
        if !progress.bound.is_finite() {
            return Err(FitError::Diverged { epoch: progress.epoch + 1, lower: "n_layers" });
        }
        let eta = match progress.n_steps {
            0 => 1.0,
            k => (k as f64 + 2.0).powf(-job.params.step_power),
        };
        let like = parts(Statistics::new(shape, smoother.inference()));
        let turn = turn(job, &progress, shape, sums.expect::<f64>(COUNTS[2], like[2].len())?);
        let mut blended: Vec<Vec<f64>> = Vec::new();
        for ((average, count), like) in AVERAGES.iter().zip(COUNTS).zip(&like) {
            let average = job.array::<f64>(average, like.len())?;
            let counts = sums.expect::<f64>(count, like.len())?;
            let share = eta / n.max(1) as f64;
            let blend = |(a, c): (&f64, &f64)| (1.0 - eta) * a + share * c;
            blended.push(average.iter().zip(&**counts).map(blend).collect());
        }
        let [start, pairs, words, emitting] = blended.try_into().expect("four arrays");
        let statistics = Statistics { shape, start, pairs, words, emitting };
        let expected = Expected {
            bound,
            token_sweeps: 0,
            gamma: vec![],
            tilted: vec![],
            pairs: vec![],
            emitting: vec![],
        };
        let counts = job.state.arrays.expect_counts(WORDS, job.lexicon.vocab.len())?;
        let evidence = Evidence {
            params: &job.params,
            statistics: &statistics,
            n_tokens: progress.n_tokens as f64,
            unigrams: &unigrams(&rows, counts),
            sentences: &[],
            expected: &expected,
            eta,
            turn: &turn,
        };
        evidence.advance(&mut smoother);
        if let Some(problem) = smoother.problem() {
            return Err(inconsistent(problem));
        }
        progress.n_steps += 1;
        progress.batch += 1;
        if progress.batch == n_batches(&job.params, &progress) {
            progress.train_bound = Some(progress.bound / progress.epoch_tokens.max(1) as f64);
            progress.epoch += 1;
            (progress.batch, progress.bound, progress.epoch_tokens) = (0, 0.0, 0);
        }
        next(job, progress, rows, smoother, statistics)
    }
}

fn inconsistent(problem: &str) -> FitError {
    FitError::Step { action: "use the arrays of shards", source: problem.into() }
}

/// The progress before a round. Sums of its numbers do not overflow.
fn progress(job: &Job<'_, FhmmParams>) -> Result<Progress, FitError> {
    let progress: Progress = job.progress()?;
    let counts = job.state.arrays.expect_counts(WORDS, job.lexicon.vocab.len())?;
    let n_sentences = progress.begins.last().copied().unwrap_or(0);
    let is_round = progress.n_tokens == counts.iter().sum::<u64>()
        && n_sentences <= progress.n_tokens.min(MAX_SENTENCES)
        && progress.begins.is_sorted()
        && progress.epoch < job.params.epochs
        && progress.batch < n_batches(&job.params, &progress)
        && progress.n_steps < u64::MAX;
    match is_round {
        true => Ok(progress),
        false => Err(inconsistent("the progress is not valid before a round")),
    }
}

fn parts(counts: Statistics) -> [Vec<f64>; 4] {
    [counts.start, counts.pairs, counts.words, counts.emitting]
}

fn n_sentences(progress: &Progress) -> usize {
    progress.begins.last().copied().unwrap_or(0) as usize
}

fn n_batches(params: &FhmmParams, progress: &Progress) -> usize {
    let n = n_sentences(progress);
    n.div_ceil(params.batch_size(n).max(1))
}

/// The words to update after this mini-batch, given its expected counts of words.
fn turn(job: &Job<'_, FhmmParams>, progress: &Progress, shape: Shape, counts: &[f64]) -> Turn {
    let n_batches = n_batches(&job.params, progress);
    if Turn::is_of_all(progress.batch, n_batches, shape.n_words, progress.n_tokens) {
        return Turn::All;
    }
    let words = counts.chunks_exact(shape.row()).enumerate();
    let words = words.filter(|(_, counts)| counts.iter().any(|&count| count > 0.0));
    Turn::Batch(words.map(|(word, _)| word as u32).collect())
}

/// The sentences of the mini-batch: those of one process.
fn batch(params: &FhmmParams, progress: &Progress) -> Result<Vec<u32>, FitError> {
    let n = n_sentences(progress);
    let mut idxs: Vec<u32> = (0..n as u32).collect();
    let mut rng = stream(params, ORDER, progress.epoch);
    for i in (1..n).rev() {
        idxs.swap(i, (rng.uniform() * (i + 1) as f64) as usize);
    }
    let mut batch = idxs
        .chunks(params.batch_size(n))
        .nth(progress.batch)
        .ok_or_else(|| inconsistent("there is no such batch"))?
        .to_vec();
    batch.sort_unstable();
    Ok(batch)
}

fn rows_of(job: &Job<'_, FhmmParams>, counts: &[u64]) -> WordRows {
    WordRows::new(&job.lexicon.vocab, counts, job.params.min_count, job.params.unknown)
}

fn check_rows(params: &FhmmParams, rows: &WordRows) -> Result<(), FitError> {
    let needs = || format!("at least 2 words that occur {} times", params.min_count);
    match rows.n_rows {
        0 | 1 => Err(FitError::not_enough_data(needs(), rows.n_rows)),
        _ => Ok(()),
    }
}

fn shape(params: &FhmmParams, rows: &WordRows) -> Shape {
    Shape { n_layers: params.n_layers, n_states: params.n_states, n_words: rows.n_rows }
}

/// The current model.
fn model(job: &Job<'_, FhmmParams>) -> Result<(WordRows, Smoother<f32>), FitError> {
    let counts = job.state.arrays.expect_counts(WORDS, job.lexicon.vocab.len())?;
    let rows = rows_of(job, counts);
    check_rows(&job.params, &rows)?;
    let shape = shape(&job.params, &rows);
    let base = base_scores(&job.params, &rows, &unigrams(&rows, counts));
    let row = shape.row();
    let lengths = [row, row * shape.n_states, shape.n_words * row];
    let mut arrays: Vec<Vec<f32>> = Vec::new();
    for (name, n) in MODEL.iter().zip(lengths) {
        let values = job.array::<f32>(name, n)?.to_vec();
        if !values.iter().all(|value| value.is_finite()) {
            return Err(inconsistent("values are not finite"));
        }
        arrays.push(values);
    }
    let [start, transition, theta] = arrays.try_into().expect("three arrays");
    let base = base.into_iter().map(|b| b as f32).collect();
    let distribution = Distribution { shape, base, start, transition, theta };
    let mut smoother = Smoother::new(distribution, job.params.chosen_inference());
    // Z changes by differences: computed anew, it would be slightly different.
    let z = job.array::<f32>(NORMALIZERS, shape.n_joint())?.to_vec();
    if !smoother.set_normalizers(z) {
        return Err(inconsistent("normalizers are not those of the scores"));
    }
    match smoother.problem() {
        Some(problem) => Err(inconsistent(problem)),
        None => Ok((rows, smoother)),
    }
}

/// Makes the initial model from the counts of words.
fn begin(job: &Job<'_, FhmmParams>, sums: &Arrays) -> Result<Step, FitError> {
    let params = &job.params;
    let counts = sums.expect_counts(WORDS, job.lexicon.vocab.len())?.clone();
    let mut begins = vec![0u64];
    for (i, (shard, n)) in sums.expect_sparse(SENTENCES)?.into_iter().enumerate() {
        let end = u64::try_from(n).ok().and_then(|n| begins[i].checked_add(n));
        match end.filter(|&end| shard == i as u64 && end <= MAX_SENTENCES) {
            Some(end) => begins.push(end),
            None if shard == i as u64 && n > 0 => {
                let allows = format!("at most {MAX_SENTENCES} sentences");
                return Err(FitError::too_much_data(allows, begins[i].saturating_add(n as u64)));
            }
            None => return Err(inconsistent("the size of a shard is missing")),
        }
    }
    let rows = rows_of(job, &counts);
    check_rows(params, &rows)?;
    let progress = Progress { begins, n_tokens: counts.iter().sum(), ..Progress::default() };
    let shape = shape(params, &rows);
    let base = base_scores(params, &rows, &unigrams(&rows, &counts));
    let mut rng = stream(params, INITIALIZATION, 0);
    let distribution = Distribution::random(shape, &base, &mut rng);
    let inference = params.chosen_inference();
    let smoother = Smoother::new(distribution, inference);
    let statistics = Statistics::new(shape, inference);
    let first = ShardState { arrays: Arrays::new().with(WORDS, counts), ..ShardState::default() };
    let first = Job { params: params.clone(), state: &first, ..*job };
    next(&first, progress, rows, smoother, statistics)
}

/// The state after a step, or the model after the last one.
fn next(
    job: &Job<'_, FhmmParams>,
    progress: Progress,
    rows: WordRows,
    smoother: Smoother<f32>,
    statistics: Statistics,
) -> Result<Step, FitError> {
    let params = &job.params;
    if progress.epoch == params.epochs {
        let mut facts = Map::new();
        facts.insert("epochs".into(), progress.epoch.into());
        facts.insert("inference".into(), json!(params.chosen_inference()));
        facts.extend(progress.train_bound.map(|bound| ("train_bound".into(), bound.into())));
        facts.insert("tokens".into(), progress.n_tokens.into());
        facts.insert("sentences".into(), n_sentences(&progress).into());
        facts.insert("words".into(), rows.n_rows.into());
        facts.insert("shards".into(), job.n_shards.into());
        let warnings = collapsed_layers(params, &statistics.occupancy());
        if progress.epoch > 0 && !warnings.is_empty() {
            facts.insert("warnings".into(), json!(warnings));
        }
        let (params, lexicon) = (params.clone(), job.lexicon.clone());
        return Ok(Step::Model(Box::new(Fhmm { params, lexicon, facts, rows, smoother })));
    }
    let mut state = ShardState {
        n_rounds: Some(1 + (n_batches(params, &progress) * params.epochs) as u64),
        progress: serde_json::to_value(&progress).expect("progress consists of numbers"),
        ..ShardState::default()
    };
    state.metrics.extend(progress.train_bound.map(|bound| ("train_bound".to_owned(), bound)));
    let counts = job.state.arrays.expect_counts(WORDS, job.lexicon.vocab.len())?.clone();
    state.arrays = Arrays::new().with(WORDS, counts);
    let Distribution { start, transition, theta, .. } = smoother.distribution().clone();
    for (name, values) in MODEL.iter().zip([start, transition, theta]) {
        state.arrays = state.arrays.with(name, values);
    }
    state.arrays = state.arrays.with(NORMALIZERS, smoother.table().values.clone());
    for (name, values) in AVERAGES.iter().zip(parts(statistics)) {
        state.arrays = state.arrays.with(name, values);
    }
    Ok(Step::Next(state))
}
