//! Checkpoints of training.

use crate::distribution::Distribution;
use crate::inference::smoother::Smoother;
use crate::params::MStep;
use crate::train::state::{Candidate, State, Trainer, initial_model};
use crate::train::statistics::Statistics;
use crate::train::task::Task;
use latens_model::{Checkpoint, CheckpointError, FitError};

/// Bound on counters, so that they cannot overflow.
const MAX_COUNT: u64 = 1 << 53;

/// Name of the array of Z.
const NORMALIZERS: &str = "normalizers";

/// Saves the state of training.
pub(super) fn save(trainer: &Trainer<'_>) -> Checkpoint {
    let Task { params, fingerprint, kind, .. } = *trainer.task;
    let mut checkpoint = Checkpoint::new(kind, params, fingerprint, &trainer.state);
    let current = [("", trainer.smoother.distribution(), &trainer.statistics)];
    let best = trainer.best.iter().map(|best| ("best.", &best.distribution, &best.statistics));
    for (prefix, distribution, statistics) in current.into_iter().chain(best) {
        for (name, values) in weights(distribution) {
            let name = format!("{prefix}{name}");
            checkpoint = checkpoint.with_array(&name, &[values.len()], values);
        }
        for (name, values) in counts(statistics) {
            let name = format!("{prefix}{name}");
            checkpoint = checkpoint.with_array(&name, &[values.len()], values);
        }
    }
    if let Some(best) = &trainer.best {
        checkpoint = checkpoint.with_array("best.n_steps", &[1], &[best.n_steps]);
    }
    if params.chosen_m_step() == MStep::Lazy {
        // Z changes by differences: computed anew, it would be slightly different.
        let z = &trainer.smoother.table().values;
        checkpoint = checkpoint.with_array(NORMALIZERS, &[z.len()], z);
    }
    checkpoint
}

/// Restores the state of training.
pub(super) fn restore<'a>(
    task: &'a Task<'a>,
    checkpoint: &Checkpoint,
) -> Result<Trainer<'a>, FitError> {
    checkpoint.check_fits(task.kind, task.params, task.fingerprint, &[])?;
    let state: State = checkpoint.state()?;
    let counters = [state.n_steps, state.n_tokens, state.token_sweeps];
    check_values(counters.iter().all(|&n| n < MAX_COUNT) && state.bound.is_finite())?;
    let (smoother, like) = initial_model(task, 0);
    let read = |prefix: &str| -> Result<(Distribution<f32>, Statistics), CheckpointError> {
        let (mut distribution, mut statistics) = (smoother.distribution().clone(), like.clone());
        let sizes = weights(&distribution).map(|(name, values)| (name, values.len()));
        let arrays =
            [&mut distribution.start, &mut distribution.transition, &mut distribution.theta];
        for ((name, len), values) in sizes.into_iter().zip(arrays) {
            *values = checkpoint.array(&format!("{prefix}{name}"), &[len])?;
        }
        if let Some(problem) = distribution.problem() {
            return Err(CheckpointError::Invalid { problem });
        }
        let sizes = counts(&statistics).map(|(name, values)| (name, values.len()));
        let Statistics { start, pairs, words, emitting, .. } = &mut statistics;
        for ((name, len), values) in sizes.into_iter().zip([start, pairs, words, emitting]) {
            *values = checkpoint.array(&format!("{prefix}{name}"), &[len])?;
            // Statistics are means per token.
            check_values(values.iter().all(|value| (0.0..=1e6).contains(value)))?;
        }
        Ok((distribution, statistics))
    };
    let mut best = None;
    if state.best.is_some() && state.restart < task.params.restarts {
        let n_steps = checkpoint.array::<u64>("best.n_steps", &[1])?[0];
        check_values(n_steps < MAX_COUNT)?;
        let (distribution, statistics) = read("best.")?;
        best = Some(Candidate { distribution, statistics, n_steps });
    }
    let (distribution, statistics) = read("")?;
    let mut smoother = Smoother::new(distribution, smoother.inference());
    if task.params.chosen_m_step() == MStep::Lazy {
        let z: Vec<f32> = checkpoint.array(NORMALIZERS, &[smoother.table().values.len()])?;
        if !smoother.set_normalizers(z) {
            let problem = "`normalizers` are not those of the scores";
            return Err(CheckpointError::Invalid { problem }.into());
        }
    }
    if let Some(problem) = smoother.problem() {
        return Err(CheckpointError::Invalid { problem }.into());
    }
    Ok(Trainer { task, smoother, statistics, best, state })
}

fn check_values(is_valid: bool) -> Result<(), CheckpointError> {
    let problem = "its counts are not finite, negative, or too large";
    if is_valid { Ok(()) } else { Err(CheckpointError::Invalid { problem }) }
}

/// Arrays of a distribution, with their names in a checkpoint.
fn weights(distribution: &Distribution<f32>) -> [(&'static str, &[f32]); 3] {
    let Distribution { start, transition, theta, .. } = distribution;
    [("start", start), ("transition", transition), ("scores", theta)]
}

/// Arrays of statistics, with their names in a checkpoint.
fn counts(statistics: &Statistics) -> [(&'static str, &[f64]); 4] {
    let Statistics { start, pairs, words, emitting, .. } = statistics;
    [
        ("counts.start", start),
        ("counts.pairs", pairs),
        ("counts.words", words),
        ("counts.emitting", emitting),
    ]
}
