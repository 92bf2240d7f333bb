//! One way to fit every model.

use super::checkpoint::Checkpoint;
use super::device::Device;
use super::error::FitError;
use super::progress::{Progress, Watch, unwatched};
use crate::file::FileError;
use crate::params::{Params, Valid, check_that};
use latens_corpus::Sentences;
use std::ops::ControlFlow;
use std::path::Path;

/// Parameters of a model that can be fitted to data.
///
/// `X::params()` returns the default parameters of the model `X`. Setters change them, and [`Fit::fit`] fits the
/// model. What is not a parameter (held-out text, a progress callback, a checkpoint, a device, further inputs) is
/// set in the same chain:
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
    /// The model that is fitted.
    type Model;
    /// What it learns from: a corpus, documents, tagged sentences.
    type Data: ?Sized;
    /// Inputs besides the data, all of them optional: clusters, tags, word vectors. `()` for most models.
    type Inputs<'a>: Default;
    /// Why fitting fails.
    type Error: From<FitError>;

    /// Fits a model. This is what a model implements; call [`Fit::fit`].
    fn fit_with(
        params: &Valid<Self>,
        data: &Self::Data,
        inputs: Self::Inputs<'_>,
        session: Session<'_>,
    ) -> Result<Self::Model, Self::Error>;

    /// Fits a model to data.
    fn fit(self, data: &Self::Data) -> Result<Self::Model, Self::Error> {
        self.builder().fit(data)
    }

    /// Measures the model on held-out text while it learns, and keeps the best one where the model supports it.
    fn valid<'a>(self, text: &'a Sentences) -> FitBuilder<'a, 'a, Self> {
        self.builder().valid(text)
    }

    /// Calls `watch` with the progress of the training; see [`FitBuilder::watch`].
    fn watch<'a>(
        self,
        watch: impl FnMut(&Progress<'_>) -> ControlFlow<()> + 'a,
    ) -> FitBuilder<'a, 'a, Self> {
        self.builder().watch(watch)
    }

    /// Continues from a checkpoint; see [`FitBuilder::resume`].
    fn resume<'a>(self, path: impl AsRef<Path>) -> Result<FitBuilder<'a, 'a, Self>, FileError> {
        self.builder().resume(path)
    }

    /// Trains on this device.
    fn device<'a>(self, device: Device) -> FitBuilder<'a, 'a, Self> {
        self.builder().device(device)
    }

    /// Adds inputs besides the data.
    fn with<'a, 'i>(self, inputs: Self::Inputs<'i>) -> FitBuilder<'a, 'i, Self> {
        self.builder::<'a>().with(inputs)
    }

    /// A fit with these parameters and nothing else set.
    fn builder<'a>(self) -> FitBuilder<'a, 'a, Self> {
        FitBuilder {
            params: self,
            inputs: Self::Inputs::default(),
            valid: None,
            device: Device::default(),
            checkpoint: None,
            watch: None,
        }
    }
}

/// A model that is about to be fitted: its parameters and everything else but the data.
///
/// The second lifetime is that of the inputs, which may outlive what the other one borrows.
#[must_use = "nothing is fitted before `fit` is called"]
pub struct FitBuilder<'a, 'i, F: Fit> {
    params: F,
    inputs: F::Inputs<'i>,
    valid: Option<&'a Sentences>,
    device: Device,
    checkpoint: Option<Source<'a>>,
    watch: Option<Box<Watch<'a>>>,
}

/// Where a checkpoint comes from.
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

/// How one fit runs: what a model's training code gets besides parameters and data.
pub struct Session<'a> {
    /// Held-out text.
    pub valid: Option<&'a Sentences>,
    /// The device to train on.
    pub device: Device,
    /// The checkpoint to continue from.
    pub checkpoint: Option<&'a Checkpoint>,
    /// Receives progress and decides whether to continue.
    pub watch: &'a mut Watch<'a>,
}

impl<'a, 'i, F: Fit> FitBuilder<'a, 'i, F> {
    /// Measures the model on held-out text while it learns.
    pub fn valid(mut self, text: &'a Sentences) -> Self {
        self.valid = Some(text);
        self
    }

    /// Calls `watch` with the progress of the training. A [`ControlFlow::Break`] stops it with
    /// [`FitError::Interrupted`].
    pub fn watch(mut self, watch: impl FnMut(&Progress<'_>) -> ControlFlow<()> + 'a) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Opens a checkpoint and continues from it. Parameters and data must be those of the interrupted fit.
    pub fn resume(mut self, path: impl AsRef<Path>) -> Result<Self, FileError> {
        self.checkpoint = Some(Source::Opened(Box::new(Checkpoint::open(path)?)));
        Ok(self)
    }

    /// Continues from an open checkpoint.
    pub fn checkpoint(mut self, checkpoint: &'a Checkpoint) -> Self {
        self.checkpoint = Some(Source::Given(checkpoint));
        self
    }

    /// Trains on this device.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Adds inputs besides the data.
    pub fn with<'j>(self, inputs: F::Inputs<'j>) -> FitBuilder<'a, 'j, F> {
        let FitBuilder { params, valid, device, checkpoint, watch, .. } = self;
        FitBuilder { params, inputs, valid, device, checkpoint, watch }
    }

    /// Checks the parameters and fits the model.
    pub fn fit(self, data: &F::Data) -> Result<F::Model, F::Error> {
        let FitBuilder { params, inputs, valid, device, checkpoint, watch } = self;
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
    /// An error if held-out text was given, for a model that is not measured while it learns.
    pub fn refuse_valid(&self) -> Result<(), FitError> {
        let is_unset = self.valid.is_none();
        Ok(check_that(is_unset, "valid", "unset: this model does not use held-out text", "a text")?)
    }

    /// An error if another device than the CPU was chosen, for a model that knows no other.
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
