//! Limits of the CUDA device, and the learner and the estimator on it.

#[cfg(feature = "cuda")]
use crate::cuda::{baum_welch::CudaEstimator, device_model::CudaLearner};
use crate::params::{HmmParams, WordVectors};
use crate::space::state_space::StateSpace;
#[cfg(not(feature = "cuda"))]
use crate::steps::estimator::CpuEstimator;
#[cfg(not(feature = "cuda"))]
use crate::steps::learner::CpuLearner;
use crate::steps::learner::LearnerState;
use crate::tables::probability_tables::Tables;
use crate::train::task::Task;
#[cfg(feature = "cuda")]
use latens_cuda::Precision;
use latens_model::{Device, FitError, check_that};

/// The largest number of states per word that the kernels support.
const MAX_STATES_PER_WORD: usize = 5_824;

/// Rejects models that cannot be trained on the chosen device.
pub(crate) fn check_device(task: &Task<'_>) -> Result<(), FitError> {
    match unsupported(task.params, task.space, task.n_tags) {
        Some(what) if task.device == Device::Cuda => {
            let must = format!("`cpu` for a model with {what}");
            Ok(check_that(false, "device", must, task.device)?)
        }
        _ => Ok(()),
    }
}

/// What a model has that cannot be trained on the device.
fn unsupported(params: &HmmParams, space: &StateSpace, n_tags: usize) -> Option<String> {
    if params.word_vectors == WordVectors::Chars {
        return Some("character-based word vectors".to_owned());
    }
    if n_tags > 0 {
        return Some("tags".to_owned());
    }
    too_many_states(space)
}

/// More states per word than the kernels support, if the model has them.
pub(crate) fn too_many_states(space: &StateSpace) -> Option<String> {
    let has_many = space.k > MAX_STATES_PER_WORD && space.n_clusters() > 1;
    has_many.then(|| format!("more than {MAX_STATES_PER_WORD} states per word"))
}

#[cfg(feature = "cuda")]
pub(crate) fn cuda_learner<'a>(
    task: &Task<'a>,
    learned: &LearnerState,
) -> Result<CudaLearner<'a>, FitError> {
    let mapping = task.mapping();
    CudaLearner::new(task.params, task.space, mapping.layout(), learned, Precision::Fast)
        .map_err(|error| device_error(task, error))?
        .with_group(task.group)
}

#[cfg(feature = "cuda")]
pub(crate) fn cuda_estimator<'a>(
    task: &Task<'a>,
    tables: &Tables<f32>,
) -> Result<CudaEstimator<'a>, FitError> {
    CudaEstimator::new(task.space, tables, Precision::Fast)
        .map_err(|error| device_error(task, error))
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn cuda_learner<'a>(
    task: &Task<'a>,
    _: &LearnerState,
) -> Result<CpuLearner<'a>, FitError> {
    Err(device_error(task, "this program was built without CUDA"))
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn cuda_estimator<'a>(
    task: &Task<'a>,
    _: &Tables<f32>,
) -> Result<CpuEstimator<'a>, FitError> {
    Err(device_error(task, "this program was built without CUDA"))
}

fn device_error(task: &Task<'_>, problem: impl ToString) -> FitError {
    FitError::Device { device: task.device, problem: problem.to_string() }
}
