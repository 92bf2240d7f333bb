//! What a trainer leaves for later, and how it goes on from there.

use super::{Measured, State, Task, Trainer};
use crate::asos::StateMoments;
use crate::canonical::Canonical;
use crate::covariances::Covariances;
use crate::panel::Panel;
use latens_math::linalg::Mat;
use latens_model::{Checkpoint, CheckpointError, FitError, SharedRows};
use std::sync::Arc;
use std::time::Instant;

impl<'a> Trainer<'a> {
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let Task { params, fingerprint, kind, .. } = *self.task;
        let best = self.best.as_ref().expect("the first model was measured");
        let (n, dim) = (self.current.c.n_rows(), self.state.dim);
        let checkpoint = Checkpoint::new(kind, params, fingerprint, &self.state)
            .with_array("transition", &[dim, dim], &to_rows(&self.current.a))
            .with_shared_rows("words", &[n, dim], Arc::clone(&self.current))
            .with_array("best.filtered", &[dim, dim], &to_rows(&best.moments.filtered))
            .with_array("best.smoothed", &[dim, dim], &to_rows(&best.moments.smoothed));
        if self.state.best_iteration == self.state.iteration {
            return checkpoint;
        }
        checkpoint
            .with_array("best.transition", &[dim, dim], &to_rows(&best.model.a))
            .with_shared_rows("best.words", &[n, dim], Arc::clone(&best.model))
    }

    /// Goes on from a checkpoint.
    pub(super) fn restore(
        task: &'a Task<'a>,
        checkpoint: &Checkpoint,
    ) -> Result<Trainer<'a>, FitError> {
        let state: State = checkpoint.state()?;
        let (n, dim) = (task.moments.n_types(), task.params.dim);
        if state.dim != dim || state.best_iteration > state.iteration {
            let problem = "its state has another size, or a best model that is yet to come";
            return Err(CheckpointError::Invalid { problem }.into());
        }
        let square = |name: &str| -> Result<Mat<f64>, CheckpointError> {
            Ok(from_rows(&checkpoint.array::<f64>(name, &[dim, dim])?, dim))
        };
        let model = |a: &str, c: &str| -> Result<Canonical<f32>, CheckpointError> {
            let words = checkpoint.array::<f32>(c, &[n, dim])?;
            Ok(Canonical::restored(square(a)?, Panel::from_rows(n, dim, &words)))
        };
        let moments =
            StateMoments { filtered: square("best.filtered")?, smoothed: square("best.smoothed")? };
        let current = Arc::new(model("transition", "words")?);
        let best = match state.best_iteration == state.iteration {
            true => Arc::clone(&current),
            false => Arc::new(model("best.transition", "best.words")?),
        };
        let best = Measured { model: best, moments };
        let mut trainer = Trainer {
            task,
            current,
            expected: None,
            best: Some(best),
            state,
            last_valid_gain: None,
            started: Instant::now(),
        };
        if !trainer.is_over() {
            trainer.expect().map_err(FitError::step("go on from the checkpoint's model"))?;
        }
        Ok(trainer)
    }
}

/// A model's matrix of words, for checkpoints.
impl SharedRows<f32> for Canonical<f32> {
    fn row(&self, row: usize) -> &[f32] {
        self.c.row(row)
    }
}

/// A small matrix row after row, as files have it.
pub(crate) fn to_rows(x: &Mat<f64>) -> Vec<f64> {
    (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |j| x[(i, j)])).collect()
}

pub(crate) fn from_rows(values: &[f64], dim: usize) -> Mat<f64> {
    Mat::from_fn(dim, dim, |i, j| values[i * dim + j])
}
