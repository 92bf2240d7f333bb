//! Optimization of the weights by L-BFGS or a perceptron, with progress reports and checkpoints.

use super::early::{Best, EVERY, EarlyStop};
use super::objective::Objective;
use super::perceptron::Perceptron;
use crate::tagging::features::examples::Examples;
use crate::tagging::fitted::tagger::FeatureTagger;
use crate::tagging::params::{Optimizer, TaggerParams};
use crate::tagging::weights::layout::Layout;
use latens_math::Rng;
use latens_math::lbfgs::{Lbfgs, LbfgsParams, LbfgsState, Outcome, Pair};
use latens_model::{Checkpoint, CheckpointError, FitError, MakeCheckpoint, Progress, Valid, Watch};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// The inputs of training, which do not change.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<TaggerParams>,
    pub(crate) examples: &'a Arc<Examples>,
    pub(crate) layout: &'a Arc<Layout>,
    pub(crate) fingerprint: u64,
}

/// The result of training.
pub(crate) struct Learned {
    pub(crate) weights: Vec<f64>,
    pub(crate) facts: Map<String, Value>,
}

/// Parameters that may be larger when training resumes.
const GROWABLE: &[&str] = &["n_iterations", "epochs"];

/// Learns the weights, from scratch or from a checkpoint.
pub(crate) fn learn(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    early: EarlyStop<'_>,
    watch: &mut Watch,
) -> Result<Learned, FitError> {
    if let Some(checkpoint) = checkpoint {
        checkpoint.check_fits(FeatureTagger::KIND, task.params, task.fingerprint, GROWABLE)?;
    }
    let (learned, n_passes) = match task.params.optimizer {
        Optimizer::Lbfgs => (minimize(task, checkpoint, early, watch)?, task.params.n_iterations),
        Optimizer::Perceptron => {
            (run_perceptron(task, checkpoint, early, watch)?, task.params.epochs)
        }
    };
    // The file has single precision. A checkpoint of a stranger may have any weights.
    match learned.weights.iter().all(|&weight| (weight as f32).is_finite()) {
        true => Ok(learned),
        false => Err(FitError::Diverged { epoch: n_passes, lower: "scale" }),
    }
}

/// State of L-BFGS, without its vectors.
#[derive(Serialize, Deserialize)]
struct SearchState {
    n_pairs: usize,
    n_values: usize,
    n_steps: u64,
    /// The best evaluation on the development set.
    #[serde(default)]
    best: Option<Best>,
}

fn minimize(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    mut early: EarlyStop<'_>,
    watch: &mut Watch,
) -> Result<Learned, FitError> {
    let mut objective: Objective<f32> =
        Objective::new(task.examples, task.layout, task.params.kind, task.params.l2);
    let mut function = |x: &[f64], gradient: &mut [f64]| objective.evaluate(x, gradient);
    let params = LbfgsParams { l1: task.params.l1, ..LbfgsParams::default() };
    let mut search = match checkpoint {
        Some(checkpoint) => Lbfgs::resume(params, task.restore(checkpoint)?),
        None => Lbfgs::start(params, task.first_weights(), &mut function),
    };
    if let Some(checkpoint) = checkpoint {
        let best = checkpoint.state::<SearchState>()?.best;
        early.restore(best, checkpoint, task.layout.n_weights())?;
    }
    let total = task.params.n_iterations as u64;
    let mut outcome = Outcome::Improved;
    while outcome == Outcome::Improved && search.state().n_steps < total && !early.is_over() {
        outcome = search.step(&mut function);
        if outcome == Outcome::Stuck {
            break;
        }
        let (done, unit) = (search.state().n_steps, "iterations");
        let mut metrics = vec![("loss", search.value()), ("gradient_norm", search.gradient_norm())];
        if done.is_multiple_of(EVERY) || outcome == Outcome::Converged || done == total {
            metrics.extend(early.evaluate(done, search.x()).map(|score| ("dev_score", score)));
        }
        let save = || Ok(early.save(task.checkpoint(&search, early.state())));
        let checkpoint: Option<&MakeCheckpoint<'_>> = Some(&save);
        // A converged search has no checkpoint: resumed, it would converge elsewhere.
        let checkpoint = checkpoint.filter(|_| outcome == Outcome::Improved);
        let progress = Progress {
            phase: "learn",
            done,
            total: Some(total),
            unit,
            metrics: &metrics,
            iteration: None,
            checkpoint,
        };
        progress.report(watch)?;
    }
    if !search.value().is_finite() {
        return Err(FitError::Diverged { epoch: search.state().n_steps as usize, lower: "scale" });
    }
    let mut facts = facts_of(&search, outcome);
    let (weights, best) = early.finish(search.into_x());
    facts.extend(best.map(|best| ("best_iteration".to_owned(), json!(best.iteration))));
    Ok(Learned { weights, facts })
}

/// Facts about a search that ended. One that found no smaller value has not converged.
pub(crate) fn facts_of(search: &Lbfgs, outcome: Outcome) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("loss".into(), json!(search.value()));
    facts.insert("iterations".into(), json!(search.state().n_steps));
    facts.insert("converged".into(), json!(outcome == Outcome::Converged));
    facts
}

impl Task<'_> {
    /// Initial weights: random for a network, to break the symmetry of its units, else zero.
    fn first_weights(&self) -> Vec<f64> {
        let mut weights = vec![0.0; self.layout.n_weights()];
        if self.layout.n_hidden > 0 {
            let mut rng = Rng::new(self.params.seed);
            let n_inputs: usize =
                self.layout.columns.iter().sum::<usize>() * self.layout.n_positions;
            let begin = self.layout.transition_weights().end;
            // A variance of 1/n keeps the variance of activations across layers.
            let draw = |weights: &mut [f64], n: usize, rng: &mut Rng| {
                weights.iter_mut().for_each(|w| *w = rng.normal() / (n.max(1) as f64).sqrt());
            };
            let n_block_weights = n_inputs * self.layout.width;
            draw(&mut weights[begin..begin + n_block_weights], n_inputs, &mut rng);
            draw(&mut weights[self.layout.network().output], self.layout.n_hidden, &mut rng);
        }
        weights
    }

    fn checkpoint(&self, search: &Lbfgs, best: Option<Best>) -> Checkpoint {
        let LbfgsState { x, gradient, pairs, values, n_steps } = search.state();
        let (n_pairs, n_values) = (pairs.len(), values.len());
        let state = SearchState { n_pairs, n_values, n_steps: *n_steps, best };
        let mut checkpoint =
            Checkpoint::new(FeatureTagger::KIND, self.params, self.fingerprint, &state)
                .with_array("weights", &[x.len()], x)
                .with_array("gradient", &[x.len()], gradient)
                .with_array(
                    "values",
                    &[values.len()],
                    &values.iter().copied().collect::<Vec<f64>>(),
                );
        for (i, Pair { step, change }) in pairs.iter().enumerate() {
            checkpoint = checkpoint.with_array(&format!("step.{i}"), &[x.len()], step).with_array(
                &format!("change.{i}"),
                &[x.len()],
                change,
            );
        }
        checkpoint
    }

    fn restore(&self, checkpoint: &Checkpoint) -> Result<LbfgsState, CheckpointError> {
        let (state, n) = (checkpoint.state::<SearchState>()?, [self.layout.n_weights()]);
        if state.n_values == 0 || state.n_pairs > 1000 {
            return Err(CheckpointError::Invalid { problem: "the state of L-BFGS is invalid" });
        }
        let mut pairs = VecDeque::new();
        for i in 0..state.n_pairs {
            let step = checkpoint.array(&format!("step.{i}"), &n)?;
            pairs.push_back(Pair { step, change: checkpoint.array(&format!("change.{i}"), &n)? });
        }
        let values: Vec<f64> = checkpoint.array("values", &[state.n_values])?;
        Ok(LbfgsState {
            x: checkpoint.array("weights", &n)?,
            gradient: checkpoint.array("gradient", &n)?,
            pairs,
            values: values.into(),
            n_steps: state.n_steps,
        })
    }
}

/// State of a perceptron, without its weights.
#[derive(Serialize, Deserialize)]
struct PerceptronState {
    epoch: u64,
    time: u64,
    errors: f64,
    /// The best evaluation on the development set.
    #[serde(default)]
    best: Option<Best>,
}

fn run_perceptron(
    task: &Task<'_>,
    checkpoint: Option<&Checkpoint>,
    mut early: EarlyStop<'_>,
    watch: &mut Watch,
) -> Result<Learned, FitError> {
    let mut perceptron = Perceptron::new(task.examples, task.layout);
    let mut state = PerceptronState { epoch: 0, time: 1, errors: 1.0, best: None };
    let n = [task.layout.n_weights()];
    if let Some(checkpoint) = checkpoint {
        state = checkpoint.state()?;
        perceptron.weights = checkpoint.array("weights", &n)?;
        perceptron.weighted_changes = checkpoint.array("weighted_changes", &n)?;
        if state.time >= 1 << 53 {
            let problem = "its time is too large";
            return Err(CheckpointError::Invalid { problem }.into());
        }
        perceptron.time = state.time;
        early.restore(state.best, checkpoint, task.layout.n_weights())?;
    }
    let total = task.params.epochs as u64;
    while state.epoch < total && !early.is_over() {
        let errors = perceptron.epoch(&mut Rng::stream(task.params.seed, state.epoch));
        let mut metrics = vec![("train_errors", errors)];
        let epoch = state.epoch + 1;
        let dev_score = early.evaluate_with(epoch, || perceptron.average());
        metrics.extend(dev_score.map(|score| ("dev_score", score)));
        let (time, best) = (perceptron.time, early.state());
        state = PerceptronState { epoch, time, errors, best };
        let save = || {
            let checkpoint =
                Checkpoint::new(FeatureTagger::KIND, task.params, task.fingerprint, &state)
                    .with_array("weights", &n, &perceptron.weights)
                    .with_array("weighted_changes", &n, &perceptron.weighted_changes);
            Ok(early.save(checkpoint))
        };
        let (done, unit) = (state.epoch, "epochs");
        Progress {
            phase: "learn",
            done,
            total: Some(total),
            unit,
            metrics: &metrics,
            iteration: None,
            checkpoint: Some(&save),
        }
        .report(watch)?;
    }
    let mut facts = Map::new();
    facts.insert("train_errors".into(), json!(state.errors));
    facts.insert("epochs".into(), json!(state.epoch));
    let (weights, best) = early.finish(perceptron.average());
    facts.extend(best.map(|best| ("best_iteration".to_owned(), json!(best.iteration))));
    Ok(Learned { weights, facts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_is_stuck_has_not_converged() {
        // No value is smaller than that of the first point, although its gradient is not zero.
        let mut function = |x: &[f64], gradient: &mut [f64]| {
            gradient[0] = 1.0;
            if x[0] == 0.0 { 0.0 } else { 1.0 }
        };
        let mut search = Lbfgs::start(LbfgsParams::default(), vec![0.0], &mut function);
        let outcome = search.step(&mut function);
        assert_eq!(outcome, Outcome::Stuck);
        assert_eq!(facts_of(&search, outcome)["converged"], false);
        assert_eq!(facts_of(&search, Outcome::Converged)["converged"], true);
    }
}
