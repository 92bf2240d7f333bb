//! Early stopping: training ends when the score on a development set no longer improves, and the best weights are kept.

use latens_model::{Checkpoint, CheckpointError};
use serde::{Deserialize, Serialize};

/// Number of L-BFGS iterations between two evaluations. A perceptron is evaluated after each epoch.
pub(crate) const EVERY: u64 = 10;

/// Scores weights on the development set.
pub(crate) type Judge<'j> = dyn FnMut(&[f64]) -> f64 + 'j;

/// Evaluations so far, and the best weights.
pub(crate) struct EarlyStop<'j> {
    /// `None` without a development set.
    judge: Option<&'j mut Judge<'j>>,
    /// Number of consecutive evaluations without a better score after which training stops; 0 never stops early.
    patience: usize,
    best: Option<(Best, Vec<f64>)>,
}

/// The best evaluation, without its weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Best {
    pub(crate) score: f64,
    pub(crate) iteration: u64,
    /// Number of evaluations since, all of them without a better score.
    pub(crate) n_worse: usize,
}

impl<'j> EarlyStop<'j> {
    pub(crate) fn new(judge: Option<&'j mut Judge<'j>>, patience: usize) -> EarlyStop<'j> {
        EarlyStop { judge, patience, best: None }
    }

    /// Restores the state of a checkpoint.
    pub(crate) fn restore(
        &mut self,
        best: Option<Best>,
        checkpoint: &Checkpoint,
        n_weights: usize,
    ) -> Result<(), CheckpointError> {
        let Some(best) = best.filter(|_| self.judge.is_some()) else { return Ok(()) };
        self.best = Some((best, checkpoint.array("best.weights", &[n_weights])?));
        Ok(())
    }

    /// The state for a checkpoint.
    pub(crate) fn state(&self) -> Option<Best> {
        self.best.as_ref().map(|(best, _)| *best)
    }

    /// Adds the best weights to a checkpoint.
    pub(crate) fn save(&self, checkpoint: Checkpoint) -> Checkpoint {
        match &self.best {
            Some((_, weights)) => checkpoint.with_array("best.weights", &[weights.len()], weights),
            None => checkpoint,
        }
    }

    /// Evaluates the weights of an iteration. Returns their score.
    pub(crate) fn evaluate(&mut self, iteration: u64, weights: &[f64]) -> Option<f64> {
        let score = (self.judge.as_mut()?)(weights);
        match &mut self.best {
            // A forged checkpoint may contain any number.
            Some((best, _)) if score <= best.score => {
                best.n_worse = best.n_worse.saturating_add(1);
            }
            best => *best = Some((Best { score, iteration, n_worse: 0 }, weights.to_vec())),
        }
        Some(score)
    }

    /// [`EarlyStop::evaluate`] for weights that are computed only if they are needed.
    pub(crate) fn evaluate_with(
        &mut self,
        iteration: u64,
        weights: impl FnOnce() -> Vec<f64>,
    ) -> Option<f64> {
        self.judge.is_some().then(weights).and_then(|weights| self.evaluate(iteration, &weights))
    }

    /// Whether training should end.
    pub(crate) fn is_over(&self) -> bool {
        let n_worse = self.best.as_ref().map_or(0, |(best, _)| best.n_worse);
        self.patience > 0 && n_worse >= self.patience
    }

    /// The best weights, or the last ones without a development set, and the evaluation of the best ones.
    pub(crate) fn finish(self, last: Vec<f64>) -> (Vec<f64>, Option<Best>) {
        match self.best {
            Some((best, weights)) => (weights, Some(best)),
            None => (last, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_weights_are_kept_and_patience_ends() {
        let scores = [0.5, 0.7, 0.6, 0.7, 0.65, 0.9];
        let mut judge = |weights: &[f64]| scores[weights[0] as usize];
        let mut stop = EarlyStop::new(Some(&mut judge), 3);
        for i in 0..5u64 {
            assert!(!stop.is_over(), "{i}");
            assert_eq!(stop.evaluate(10 * i, &[i as f64]), Some(scores[i as usize]));
        }
        assert!(stop.is_over());
        let (weights, best) = stop.finish(vec![4.0]);
        assert_eq!(weights, [1.0]);
        assert_eq!(best, Some(Best { score: 0.7, iteration: 10, n_worse: 3 }));
    }

    #[test]
    fn without_a_development_set_the_last_weights_count() {
        let mut stop = EarlyStop::new(None, 3);
        assert_eq!(stop.evaluate(1, &[1.0]), None);
        assert!(!stop.is_over());
        assert_eq!(stop.finish(vec![2.0]), (vec![2.0], None));
        let mut judge = |_: &[f64]| 0.0;
        let mut patient = EarlyStop::new(Some(&mut judge), 0);
        (0..100).for_each(|i| _ = patient.evaluate(i, &[]));
        assert!(!patient.is_over());
    }
}
