//! The common interface for fitting models.

use super::checkpoint::Checkpoint;
use super::cost::Cost;
use super::device::Device;
use super::error::FitError;
use super::memory::AvailableMemory;
use super::progress::{Progress, Watch, unwatched};
use crate::file::FileError;
use crate::params::{Params, Valid, check_that};
use latens_corpus::Sentences;
use std::ops::ControlFlow;
use std::path::Path;

/// Parameters of a model that can be fitted to data.
///
/// `X::params()` returns the default parameters of the model `X`. Setters change them, and [`Fit::fit`] fits the
/// model. The same chain also sets the validation text, progress callback, checkpoint, device and additional inputs:
///
/// ```no_run
/// # use latens_corpus::{Corpus, Sentences};
/// # use latens_model::{Device, Fit, FitError};
/// # use std::ops::ControlFlow;
/// # fn fit<P: Fit<Data = Corpus, Error = FitError>>(params: P, corpus: &Corpus, held_out: &Sentences) -> Result<P::Model, FitError> {
/// let model = params
///     .valid(held_out)
///     .device(Device::Cuda)
///     .watch(|progress| {
///         println!("{} of {:?} {}", progress.done, progress.total, progress.unit);
///         ControlFlow::Continue(())
///     })
///     .fit(corpus)?;
/// # Ok(model)
/// # }
/// ```
pub trait Fit: Params {
    /// The fitted model.
    type Model;
    /// Training data: a corpus, documents, tagged sentences.
    type Data: ?Sized;
    /// Optional additional inputs: clusters, tags, word vectors. `()` for most models.
    type Inputs<'a>: Default;
    /// The error type of fitting.
    type Error: From<FitError>;

    /// Fits a model. Models implement this method; callers use [`Fit::fit`].
    fn fit_with(
        params: &Valid<Self>,
        data: &Self::Data,
        inputs: Self::Inputs<'_>,
        session: Session<'_>,
    ) -> Result<Self::Model, Self::Error>;

    /// Estimates the memory and the work of fitting. Models implement this method; callers use [`Fit::cost`].
    ///
    /// The parameters are valid. The estimate must not overflow, and must take much less time than fitting.
    fn cost_with(
        params: &Self,
        data: &Self::Data,
        inputs: &Self::Inputs<'_>,
        setup: &Setup<'_>,
    ) -> Cost;

    /// Estimates the memory and the work of fitting a model to data, without doing it.
    fn cost(self, data: &Self::Data) -> Result<Cost, Self::Error> {
        self.builder().cost(data)
    }

    /// Fits a model to data. Fails if it would need more memory than there is; see [`FitBuilder::force`].
    fn fit(self, data: &Self::Data) -> Result<Self::Model, Self::Error> {
        self.builder().fit(data)
    }

    /// Sets a validation text. Models that support it keep the parameters of the best epoch.
    fn valid<'a>(self, text: &'a Sentences) -> FitBuilder<'a, 'a, Self> {
        self.builder().valid(text)
    }

    /// Sets a progress callback; see [`FitBuilder::watch`].
    fn watch<'a>(
        self,
        watch: impl FnMut(&Progress<'_>) -> ControlFlow<()> + 'a,
    ) -> FitBuilder<'a, 'a, Self> {
        self.builder().watch(watch)
    }

    /// Resumes from a checkpoint; see [`FitBuilder::resume`].
    fn resume<'a>(self, path: impl AsRef<Path>) -> Result<FitBuilder<'a, 'a, Self>, FileError> {
        self.builder().resume(path)
    }

    /// Sets the training device.
    fn device<'a>(self, device: Device) -> FitBuilder<'a, 'a, Self> {
        self.builder().device(device)
    }

    /// Trains even if the estimated memory exceeds what is available; see [`FitBuilder::force`].
    fn force<'a>(self) -> FitBuilder<'a, 'a, Self> {
        self.builder().force(true)
    }

    /// Sets additional inputs.
    fn with<'a, 'i>(self, inputs: Self::Inputs<'i>) -> FitBuilder<'a, 'i, Self> {
        self.builder::<'a>().with(inputs)
    }

    /// A builder with these parameters and nothing else set.
    fn builder<'a>(self) -> FitBuilder<'a, 'a, Self> {
        FitBuilder {
            params: self,
            inputs: Self::Inputs::default(),
            valid: None,
            device: Device::default(),
            checkpoint: None,
            watch: None,
            force: false,
        }
    }
}

/// Everything needed to fit a model except the data.
///
/// The second lifetime is that of the inputs, which may outlive the other borrows.
#[must_use = "the model is fitted only when `fit` is called"]
pub struct FitBuilder<'a, 'i, F: Fit> {
    params: F,
    inputs: F::Inputs<'i>,
    valid: Option<&'a Sentences>,
    device: Device,
    checkpoint: Option<Source<'a>>,
    watch: Option<Box<Watch<'a>>>,
    force: bool,
}

/// What the cost of a training run depends on, besides parameters, data and inputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<'a> {
    /// Validation text.
    pub valid: Option<&'a Sentences>,
    /// The device to train on.
    pub device: Device,
}

/// An owned or borrowed checkpoint.
enum Source<'a> {
    Opened(Box<Checkpoint>),
    Given(&'a Checkpoint),
}

impl Source<'_> {
    fn get(&self) -> &Checkpoint {
        match self {
            Source::Opened(checkpoint) => checkpoint,
            Source::Given(checkpoint) => checkpoint,
        }
    }
}

/// The inputs of a training run besides parameters and data.
pub struct Session<'a> {
    /// Validation text.
    pub valid: Option<&'a Sentences>,
    /// The device to train on.
    pub device: Device,
    /// The checkpoint to resume from.
    pub checkpoint: Option<&'a Checkpoint>,
    /// Receives progress and decides whether to continue.
    pub watch: &'a mut Watch<'a>,
}

impl<'a, 'i, F: Fit> FitBuilder<'a, 'i, F> {
    /// Sets a validation text to evaluate the model on during training.
    pub fn valid(mut self, text: &'a Sentences) -> Self {
        self.valid = Some(text);
        self
    }

    /// Sets a progress callback. If it returns [`ControlFlow::Break`], training stops with
    /// [`FitError::Interrupted`].
    pub fn watch(mut self, watch: impl FnMut(&Progress<'_>) -> ControlFlow<()> + 'a) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Opens a checkpoint and resumes from it. Parameters and data must be those of the interrupted run.
    pub fn resume(mut self, path: impl AsRef<Path>) -> Result<Self, FileError> {
        self.checkpoint = Some(Source::Opened(Box::new(Checkpoint::open(path)?)));
        Ok(self)
    }

    /// Resumes from an open checkpoint.
    pub fn checkpoint(mut self, checkpoint: &'a Checkpoint) -> Self {
        self.checkpoint = Some(Source::Given(checkpoint));
        self
    }

    /// Sets the training device.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Sets additional inputs.
    pub fn with<'j>(self, inputs: F::Inputs<'j>) -> FitBuilder<'a, 'j, F> {
        let FitBuilder { params, valid, device, checkpoint, watch, force, .. } = self;
        FitBuilder { params, inputs, valid, device, checkpoint, watch, force }
    }

    /// Whether to train even if the estimated memory exceeds what is available. The system may then end the process.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Validates the parameters, and estimates the memory and the work of fitting.
    pub fn cost(&self, data: &F::Data) -> Result<Cost, F::Error> {
        self.params.check().map_err(FitError::from)?;
        let setup = Setup { valid: self.valid, device: self.device };
        Ok(F::cost_with(&self.params, data, &self.inputs, &setup))
    }

    /// Validates the parameters and fits the model. Fails if training on the CPU would need more memory than this
    /// machine, the control group or the limits of the process leave.
    pub fn fit(self, data: &F::Data) -> Result<F::Model, F::Error> {
        // The tables of a model on a GPU are in the memory of the GPU, which reports its limits itself.
        if !self.force && self.device == Device::Cpu {
            self.cost(data)?.check_fits(AvailableMemory::now())?;
        }
        let FitBuilder { params, inputs, valid, device, checkpoint, watch, .. } = self;
        let params = params.validate().map_err(FitError::from)?;
        let mut watch = watch.unwrap_or_else(|| Box::new(unwatched));
        let session = Session {
            valid,
            device,
            checkpoint: checkpoint.as_ref().map(Source::get),
            watch: &mut *watch,
        };
        F::fit_with(&params, data, inputs, session)
    }
}

impl Session<'_> {
    /// Returns an error if a validation text is set, for models that do not use one.
    pub fn refuse_valid(&self) -> Result<(), FitError> {
        let is_unset = self.valid.is_none();
        Ok(check_that(is_unset, "valid", "unset: this model does not use held-out text", "a text")?)
    }

    /// Returns an error unless the device is the CPU, for models without GPU support.
    pub fn refuse_cuda(&self) -> Result<(), FitError> {
        match self.device {
            Device::Cpu => Ok(()),
            device @ Device::Cuda => {
                let problem = "this model trains on the CPU only".to_owned();
                Err(FitError::Device { device, problem })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParamError;

    /// A model that would need more memory than any machine has.
    #[derive(Default)]
    struct Huge;

    impl Params for Huge {
        fn check(&self) -> Result<(), ParamError> {
            Ok(())
        }
    }

    impl Fit for Huge {
        type Model = ();
        type Data = ();
        type Inputs<'a> = ();
        type Error = FitError;

        fn cost_with(_: &Huge, (): &(), (): &(), setup: &Setup<'_>) -> Cost {
            assert!(setup.valid.is_none());
            Cost::new(1).part("everything", f64::MAX, Some("n_states"))
        }

        fn fit_with(_: &Valid<Huge>, (): &(), (): (), _: Session<'_>) -> Result<(), FitError> {
            Ok(())
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn fitting_fails_before_it_starts_if_the_memory_is_too_small() {
        let error = Huge.fit(&()).unwrap_err();
        let FitError::TooLittleMemory { needed, largest, lower, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((needed, largest, lower), (u64::MAX, "everything", Some("n_states")));
    }

    #[test]
    fn force_and_a_gpu_skip_the_check() {
        assert!(Huge.force().fit(&()).is_ok());
        assert!(Huge.device(Device::Cuda).fit(&()).is_ok());
        assert_eq!(Huge.cost(&()).unwrap().n_iterations(), 1);
    }
}
