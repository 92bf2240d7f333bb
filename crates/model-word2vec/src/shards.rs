//! Word vectors from the shards of a text, by parameter averaging.

use crate::learner::Learner;
use crate::model::Word2vec;
use crate::params::Word2vecParams;
use crate::text::counts;
use crate::worker::{Loss, learn_blocks};
use latens_corpus::{Corpus, Lexicon, ReadError, Sentences};
use latens_model::shards::{Arrays, Computed, Job, Part, ShardState, Sharded, Step};
use latens_model::{FitError, Valid, WordVectors};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Learns word vectors from shards: after each epoch, the vectors of all shards are averaged, weighted by their numbers of
/// tokens.
///
/// One shard is ordinary training with one thread, bit for bit. More shards learn other vectors, since each shard takes
/// an epoch of its own steps from the same start.
pub struct Word2vecShards;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// Completed epochs.
    epoch: usize,
    n_tokens: u64,
    loss: Option<f64>,
}

const COUNTS: &str = "counts";
const TOKENS: &str = "tokens";
const LOSS: &str = "loss";
const PREDICTIONS: &str = "predictions";
const ROWS: [&str; 2] = ["inputs", "outputs"];

impl Sharded for Word2vecShards {
    const KIND: &'static str = Word2vec::KIND;
    type Params = Word2vecParams;
    type Text = Sentences;

    fn begin(
        params: &Valid<Word2vecParams>,
        _: &Lexicon,
        _: Arrays,
    ) -> Result<ShardState, FitError> {
        Ok(ShardState { n_rounds: Some(1 + params.epochs as u64), ..ShardState::default() })
    }

    fn read(lexicon: &Lexicon, part: &Part) -> Result<Sentences, ReadError> {
        part.sentences(lexicon)
    }

    fn statistics(
        job: &Job<'_, Word2vecParams>,
        shard: usize,
        text: &Sentences,
        _: Option<&Arrays>,
    ) -> Result<Computed, FitError> {
        let n_words = job.lexicon.vocab.len();
        let n_tokens = Arrays::new().with(TOKENS, vec![text.n_tokens() as u64]);
        if job.round == 0 {
            return Ok(n_tokens.with(COUNTS, counts(text, n_words)).into());
        }
        let progress = progress(job)?;
        // Shards must not draw the same negative samples. The first has the stream of one process.
        let seed = job.params.seed ^ (shard as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let params = Word2vecParams { seed, ..job.params.clone().into_inner() };
        let corpus = Corpus { lexicon: job.lexicon.clone(), sentences: text.clone() };
        let all = job.state.arrays.expect_counts(COUNTS, n_words)?.to_vec();
        check_words(&all)?;
        let [inputs, outputs] = ROWS.map(|name| job.array::<f32>(name, n_words * params.dim));
        let learner = Learner::with_counts(&params, &corpus, all, inputs?, outputs?);
        // Several threads would make the result depend on their speed.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.map_err(FitError::step("start a thread"))?;
        let Loss { sum, n } =
            pool.install(|| learn_blocks(&learner, progress.epoch, 0..learner.n_blocks()));
        let weight = text.n_tokens() as f64;
        let weighted = |rows: Vec<f32>| -> Vec<f64> {
            rows.into_iter().map(|x| f64::from(x) * weight).collect()
        };
        let [first, second] = ROWS;
        let sums = n_tokens.with(LOSS, vec![sum]).with(PREDICTIONS, vec![n]);
        let sums = sums.with(first, weighted(learner.inputs.to_vec()));
        Ok(sums.with(second, weighted(learner.outputs.to_vec())).into())
    }

    fn update(job: &Job<'_, Word2vecParams>, sums: Arrays) -> Result<Step, FitError> {
        let (params, n_words) = (&job.params, job.lexicon.vocab.len());
        let n_tokens = sums.expect::<u64>(TOKENS, 1)?[0];
        if job.round == 0 {
            let counts = sums.expect_counts(COUNTS, n_words)?.to_vec();
            check_words(&counts)?;
            let rows = Learner::first_rows(params, n_words);
            return next(job, Progress { n_tokens, ..Progress::default() }, counts, rows);
        }
        let mut progress = progress(job)?;
        progress.epoch += 1;
        let loss = sums.expect::<f64>(LOSS, 1)?[0];
        if !loss.is_finite() {
            return Err(FitError::Diverged { epoch: progress.epoch, lower: "learning_rate" });
        }
        let n_predictions = sums.expect::<u64>(PREDICTIONS, 1)?[0];
        progress.loss = (n_predictions > 0).then(|| loss / n_predictions as f64).or(progress.loss);
        let mean = |name: &str| -> Result<Vec<f32>, FitError> {
            let sums = sums.expect::<f64>(name, n_words * params.dim)?;
            Ok(sums.iter().map(|sum| (sum / n_tokens as f64) as f32).collect())
        };
        let rows = [mean(ROWS[0])?, mean(ROWS[1])?];
        let counts = job.state.arrays.expect_counts(COUNTS, n_words)?.to_vec();
        next(job, progress, counts, rows)
    }
}

fn check_words(counts: &[u64]) -> Result<(), FitError> {
    match counts.iter().filter(|&&count| count > 0).count() {
        n @ (0 | 1) => Err(FitError::not_enough_data("at least 2 distinct words", n)),
        _ => Ok(()),
    }
}

/// The progress before a round, which is one of an epoch.
fn progress(job: &Job<'_, Word2vecParams>) -> Result<Progress, FitError> {
    let progress: Progress = job.progress()?;
    match progress.epoch < job.params.epochs {
        true => Ok(progress),
        false => Err(FitError::Step {
            action: "use the broadcast of a round",
            source: "all epochs are done".into(),
        }),
    }
}

fn next(
    job: &Job<'_, Word2vecParams>,
    progress: Progress,
    counts: Vec<u64>,
    [inputs, outputs]: [Vec<f32>; 2],
) -> Result<Step, FitError> {
    if progress.epoch == job.params.epochs {
        return finish(job, &progress, &counts, inputs);
    }
    let mut state = ShardState { n_rounds: job.state.n_rounds, ..ShardState::default() };
    state.metrics.extend(progress.loss.map(|loss| (LOSS.to_owned(), loss)));
    state.progress = serde_json::to_value(&progress).expect("progress consists of numbers");
    state.arrays = Arrays::new().with(COUNTS, counts).with(ROWS[0], inputs).with(ROWS[1], outputs);
    Ok(Step::Next(state))
}

fn finish(
    job: &Job<'_, Word2vecParams>,
    progress: &Progress,
    counts: &[u64],
    mut values: Vec<f32>,
) -> Result<Step, FitError> {
    let Some(loss) = progress.loss else {
        let needs = "sentences with at least two words kept by `subsample`";
        return Err(FitError::not_enough_data(needs, "none"));
    };
    // A word that does not occur in the text keeps no vector.
    let rows = values.chunks_exact_mut(job.params.dim).zip(counts);
    rows.filter(|&(_, &count)| count == 0).for_each(|(row, _)| row.fill(0.0));
    let Ok(vectors) = WordVectors::new(job.params.dim, values) else {
        return Err(FitError::Diverged { epoch: progress.epoch, lower: "learning_rate" });
    };
    let facts: Map<String, Value> = [
        ("tokens".to_owned(), progress.n_tokens.into()),
        ("loss".to_owned(), loss.into()),
        ("shards".to_owned(), job.n_shards.into()),
    ]
    .into_iter()
    .collect();
    let model = Word2vec::new(job.params.clone(), job.lexicon.clone(), vectors, facts);
    Ok(Step::Model(Box::new(model)))
}
