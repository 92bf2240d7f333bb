//! Checks of trainers that can be interrupted and resumed.

use latens_model::{Checkpoint, FitError, Progress, Watch};
use std::ops::ControlFlow;
use std::path::Path;

/// Checks that a trainer resumed from a checkpoint file learns the same model as without interruption.
///
/// The trainer is interrupted once (early, in the middle, late) and at every checkpoint that it offers.
/// Taking checkpoints without an interruption must not change the model either. `same` panics if two
/// models differ.
///
/// # Panics
/// If the check fails, or the trainer offers no checkpoint.
pub fn check_resume<M>(
    fit: impl Fn(&mut Watch) -> Result<M, FitError>,
    resume: impl Fn(&Checkpoint, &mut Watch) -> Result<M, FitError>,
    same: impl Fn(&M, &M),
) {
    let folder = tempfile::tempdir().expect("cannot create a temporary folder");
    let path = folder.path().join("checkpoint");
    let undisturbed = fit(&mut |_| ControlFlow::Continue(())).expect("cannot fit the model");

    let mut n_offers = 0;
    let watched = fit(&mut |progress| {
        n_offers += usize::from(save_offer(progress, &path));
        ControlFlow::Continue(())
    });
    assert!(n_offers > 0, "the trainer offers no checkpoint");
    same(&undisturbed, &watched.expect("cannot fit the model again"));

    for stop_at in [0, n_offers / 2, n_offers - 1] {
        expect_interrupted(fit(&mut stop_after(stop_at, &path)));
        let resumed = resume(&open(&path), &mut |_| ControlFlow::Continue(()));
        same(&undisturbed, &resumed.expect("cannot resume training"));
    }

    expect_interrupted(fit(&mut stop_after(0, &path)));
    for _ in 0..n_offers {
        match resume(&open(&path), &mut stop_after(0, &path)) {
            Err(FitError::Interrupted) => continue,
            finished => return same(&undisturbed, &finished.expect("cannot resume training")),
        }
    }
    panic!("the trainer makes no progress beyond its last checkpoint");
}

/// Saves the offered checkpoint, if any. Returns whether there was one.
fn save_offer(progress: &Progress, path: &Path) -> bool {
    if let Some(checkpoint) = progress.checkpoint {
        let checkpoint = checkpoint().expect("cannot create a checkpoint");
        checkpoint.save(path).expect("cannot save the checkpoint");
    }
    progress.checkpoint.is_some()
}

/// Acts like a front end after Ctrl-C: ignores `n_ignored` offers, saves the next one, and stops.
fn stop_after(n_ignored: usize, path: &Path) -> impl FnMut(&Progress<'_>) -> ControlFlow<()> {
    let mut n_offers = 0;
    move |progress| {
        n_offers += usize::from(progress.checkpoint.is_some());
        let stop = n_offers > n_ignored && save_offer(progress, path);
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn open(path: &Path) -> Checkpoint {
    Checkpoint::open(path).expect("cannot open the saved checkpoint")
}

fn expect_interrupted<M>(result: Result<M, FitError>) {
    let interrupted = matches!(result, Err(FitError::Interrupted));
    assert!(interrupted, "the trainer does not stop when asked to");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::complaint;
    use crate::trainer::{Fault, Walk, WalkParams};
    use latens_model::{Params, Valid, unwatched};

    fn params(n_iterations: usize) -> Valid<WalkParams> {
        WalkParams { n_iterations, ..WalkParams::default() }.validate().unwrap()
    }

    fn check(fault: Fault) {
        let (params, data) = (params(9), [0.1, 0.7, -0.3]);
        check_resume(
            |watch| Walk::fit_with(fault, &params, &data, watch),
            |checkpoint, watch| Walk::resume_with(fault, checkpoint, &params, &data, watch),
            Walk::assert_same,
        );
    }

    #[test]
    fn an_interrupted_trainer_learns_the_same_model_bit_for_bit() {
        check(Fault::None);
    }

    #[test]
    fn every_fault_is_detected() {
        let faults = [
            (Fault::OffersNothing, "offers no checkpoint"),
            (Fault::DoesNotStop, "does not stop"),
            (Fault::ForgetsRng, "differ"),
            (Fault::ForgetsWeights, "differ"),
            (Fault::ForgetsIteration, "differ"),
            (Fault::CheckpointDisturbs, "differ"),
        ];
        for (fault, expected) in faults {
            let complaint = complaint(|| check(fault));
            assert!(complaint.contains(expected), "{expected}: {complaint}");
        }
    }

    #[test]
    fn a_finished_run_can_be_extended() {
        let folder = tempfile::tempdir().unwrap();
        let (path, data) = (folder.path().join("checkpoint"), [0.5, 1.0]);
        let mut watch = stop_after(4, &path);
        expect_interrupted(Walk::fit(&params(5), &data, &mut watch));
        let longer = Walk::resume(&open(&path), &params(8), &data, &mut unwatched).unwrap();
        Walk::assert_same(&longer, &Walk::fit(&params(8), &data, &mut unwatched).unwrap());
    }

    #[test]
    fn a_checkpoint_of_other_parameters_or_data_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint");
        expect_interrupted(Walk::fit(&params(5), &[0.5], &mut stop_after(0, &path)));
        let other = WalkParams { seed: 2, ..WalkParams::default() }.validate().unwrap();
        for (params, data) in [(&other, [0.5]), (&params(5), [0.6])] {
            let refused = Walk::resume(&open(&path), params, &data, &mut unwatched);
            assert!(matches!(refused, Err(FitError::Checkpoint(_))));
        }
    }
}
