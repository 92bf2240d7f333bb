//! What can be learned on a device, and the learner there.

use crate::params::WordVectors;
use crate::train::gradient::Task;
use crate::train::learner::LearnerState;
use latens_model::{Device, FitError, check_that};

/// The most states of a word that the device's kernels have room for.
const MAX_STATES_OF_WORD: usize = 5_824;

/// Refuses what cannot be learned on the device.
pub(crate) fn check_device(task: &Task<'_>) -> Result<(), FitError> {
    let params = task.params;
    let words = [
        (params.word_vectors == WordVectors::Chars, "words read off letters"),
        (task.n_tags > 0, "tags"),
        (
            task.support.k > MAX_STATES_OF_WORD && task.support.n_clusters() > 1,
            "so many states for one word",
        ),
    ];
    for (is_so, what) in words {
        let must = format!("`cpu` for a model with {what}");
        check_that(!is_so || task.device == Device::Cpu, "device", must, task.device)?;
    }
    Ok(())
}

#[cfg(feature = "cuda")]
pub(crate) fn cuda_learner<'a>(
    task: &Task<'a>,
    learned: &LearnerState,
) -> Result<crate::cuda::learner::CudaLearner<'a>, FitError> {
    let (parameters, precision) =
        (crate::train::gradient::parameters(task), latens_cuda::Precision::Fast);
    let layout = parameters.layout();
    crate::cuda::learner::CudaLearner::new(task.params, task.support, layout, learned, precision)
        .map_err(|error| FitError::Device { device: task.device, problem: error.to_string() })
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn cuda_learner<'a>(
    task: &Task<'a>,
    _: &LearnerState,
) -> Result<crate::train::learner::CpuLearner<'a>, FitError> {
    let problem = "this program was built without CUDA".to_owned();
    Err(FitError::Device { device: task.device, problem })
}
