//! Saving the state of training to a checkpoint, and restoring it.

use crate::learn::e_step::StateMoments;
use crate::learn::moments::covariances::Covariances;
use crate::learn::state::{Measured, Task, TrainingState};
use crate::linalg::dense::{square_from_row_major, to_row_major};
use crate::linalg::panel::Panel;
use crate::system::canonical::Canonical;
use latens_math::linalg::Mat;
use latens_model::{Checkpoint, CheckpointError, SharedRows};
use std::sync::Arc;

/// The checkpoint of a training run with its current and its best model.
pub(crate) fn save(
    task: &Task<'_>,
    state: &TrainingState,
    current: &Arc<Canonical<f32>>,
    best: &Measured,
) -> Checkpoint {
    let Task { params, fingerprint, kind, .. } = *task;
    let (n, dim) = (current.c.n_rows(), state.dim);
    let rows = |x: &Mat<f64>| to_row_major::<f64>(x);
    let checkpoint = Checkpoint::new(kind, params, fingerprint, state)
        .with_array("transition", &[dim, dim], &rows(&current.a))
        .with_shared_rows("words", &[n, dim], Arc::clone(current))
        .with_array("best.filtered", &[dim, dim], &rows(&best.moments.filtered))
        .with_array("best.smoothed", &[dim, dim], &rows(&best.moments.smoothed));
    if state.best_iteration == state.iteration {
        return checkpoint;
    }
    checkpoint.with_array("best.transition", &[dim, dim], &rows(&best.model.a)).with_shared_rows(
        "best.words",
        &[n, dim],
        Arc::clone(&best.model),
    )
}

/// The contents of a checkpoint.
pub(crate) struct Restored {
    pub(crate) state: TrainingState,
    pub(crate) current: Arc<Canonical<f32>>,
    pub(crate) best: Measured,
}

/// Reads a checkpoint written by [`save`].
pub(crate) fn restore(
    task: &Task<'_>,
    checkpoint: &Checkpoint,
) -> Result<Restored, CheckpointError> {
    let state: TrainingState = checkpoint.state()?;
    let (n, dim) = (task.moments.n_types(), task.params.dim);
    // Counters must not overflow.
    let are_small = state.n_clipped < 1 << 53 && state.iteration < 1 << 53;
    let TrainingState { gain, last_gain, correlation, worst_fall, seconds, .. } = state;
    let are_small = are_small
        && [gain, last_gain, correlation, worst_fall, seconds].iter().all(|x| x.abs() <= 1e100);
    if state.dim != dim || state.best_iteration > state.iteration || !are_small {
        let problem = "its dimension differs from `dim`, or its iterations are invalid";
        return Err(CheckpointError::Invalid { problem });
    }
    let square = |name: &str| -> Result<Mat<f64>, CheckpointError> {
        Ok(square_from_row_major(&checkpoint.array::<f64>(name, &[dim, dim])?, dim))
    };
    let model = |a: &str, c: &str| -> Result<Canonical<f32>, CheckpointError> {
        let words = checkpoint.array::<f32>(c, &[n, dim])?;
        let model = Canonical::restored(square(a)?, Panel::from_rows(n, dim, &words));
        // The file of the model is checked in the same way.
        match model.is_contraction() {
            Ok(true) => Ok(model),
            _ => Err(CheckpointError::Invalid { problem: "a singular value is above 1" }),
        }
    };
    let moments =
        StateMoments { filtered: square("best.filtered")?, smoothed: square("best.smoothed")? };
    if !moments.filtered.is_all_finite() || !moments.smoothed.is_all_finite() {
        return Err(CheckpointError::Invalid { problem: "a moment is not finite" });
    }
    let current = Arc::new(model("transition", "words")?);
    let best = match state.best_iteration == state.iteration {
        true => Arc::clone(&current),
        false => Arc::new(model("best.transition", "best.words")?),
    };
    Ok(Restored { state, current, best: Measured { model: best, moments } })
}

/// The rows of C, which a checkpoint writes without a copy.
impl SharedRows<f32> for Canonical<f32> {
    fn row(&self, row: usize) -> &[f32] {
        self.c.row(row)
    }
}
