//! A model under training on the device: its weights, and the logits computed from them.

use crate::cuda::context::{LogitFormat, Sizes, StepContext, Weights, emissions, side_stream};
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::plan::kept_plan::KeptPlan;
use crate::cuda::sums::Sums;
use crate::cuda::tables::Tables;
use crate::cuda::weights::logits::Logits;
use crate::cuda::weights::networks::Networks;
use crate::cuda::weights::state_vectors::KeptOnDevice;
use crate::params::{HmmParams, Parameterization};
use crate::space::state_space::StateSpace;
use crate::steps::learner::LearnerState;
use latens_cuda::{Array, BlockShape, CudaError, Device, Emissions, Precision, StepResult};
use latens_model::FitError;
use latens_model::group::Group;
use latens_nn::Layout;
use std::ops::Range;

/// The mapping from weights to logits.
pub(crate) enum Source {
    Networks(Box<Networks>),
    Logits(Logits),
}

/// The learner on a CUDA device.
pub(crate) struct CudaLearner<'a> {
    pub(crate) params: &'a HmmParams,
    pub(crate) device: Device,
    pub(crate) side: Device,
    pub(crate) precision: Precision,
    pub(crate) space: &'a StateSpace,
    pub(crate) n_steps: u64,
    pub(crate) learned: Weights,
    pub(crate) mean: Array<f32>,
    pub(crate) square: Array<f32>,
    pub(crate) source: Source,
    pub(crate) emissions: Emissions,
    pub(crate) tables: Tables,
    pub(crate) result: StepResult,
    /// The kept states of the last forward pass; see [`KeptPlan`].
    pub(crate) kept: Array<u32>,
    /// The plan of the last batch; taken out while it is in use.
    pub(crate) ints: Option<Array<u32>>,
    /// How the gradients of several processes are added up, if there are several.
    pub(crate) sums: Option<Sums<'a>>,
}

impl<'a> CudaLearner<'a> {
    /// The learner for weights with this layout.
    pub(crate) fn new(
        params: &'a HmmParams,
        space: &'a StateSpace,
        layout: &Layout,
        state: &LearnerState,
        precision: Precision,
    ) -> Result<CudaLearner<'a>, CudaError> {
        let device = Device::open()?;
        let n = space.n_states();
        let source = match params.parameterization {
            Parameterization::Scalar => {
                Source::Logits(Logits::new(layout, BlockShape { k: space.k, n }))
            }
            Parameterization::Neural | Parameterization::Factored => {
                Source::Networks(Box::new(Networks::new(&device, params, layout, n, precision)?))
            }
        };
        Ok(CudaLearner {
            params,
            precision,
            space,
            n_steps: state.n_steps,
            learned: Weights {
                weights: device.upload(&state.weights)?,
                gradient: device.zeros(state.weights.len())?,
            },
            mean: device.upload(&state.mean)?,
            square: device.upload(&state.square)?,
            source,
            emissions: emissions(&device, space)?,
            tables: Tables::new(&device, n)?,
            result: StepResult::new(&device)?,
            kept: device.zeros(2 * (n + space.n_clusters()))?,
            ints: Some(device.zeros(1)?),
            sums: None,
            side: side_stream(&device)?,
            device,
        })
    }

    /// Learns together with other processes.
    pub(crate) fn with_group(mut self, group: Option<&'a dyn Group>) -> Result<Self, FitError> {
        self.sums = group.map(|group| Sums::new(&self.device, group)).transpose()?;
        Ok(self)
    }

    /// Whether the vectors of states are factored.
    pub(crate) fn is_factored(&self) -> bool {
        self.params.parameterization == Parameterization::Factored
    }

    /// Computes the probabilities of starts and emissions on the side stream, and the inputs of the transition logits.
    /// `seed` is that of the dropout; there is no dropout without it.
    pub(crate) fn forward(&mut self, kept: &KeptPlan, seed: Option<u64>) -> Result<(), CudaError> {
        let (n, k) = (kept.n(), kept.k);
        self.device.write(&kept.ints, &mut self.kept)?;
        // The old array is not in use: the last step has ended.
        self.side.reserve(&mut self.tables.emission, self.space.n_slots() * k)?;
        let CudaLearner { device, side, emissions, precision, tables, .. } = self;
        let context = StepContext { device, side, emissions, precision: *precision };
        let weights = &self.learned.weights;
        let states = KeptOnDevice { ints: &self.kept, plan: kept };
        match &mut self.source {
            Source::Networks(networks) => {
                networks.forward(&context, weights, states, seed, tables)?;
            }
            Source::Logits(logits) => logits.forward(&context, weights, states, tables)?,
        }
        side.softmax(&mut tables.start, n)?;
        emissions.normalize(side, &mut tables.emission, (&self.kept, &states.order()), k)
    }

    /// Computes the logits of transitions from some states to all.
    pub(crate) fn logits(&mut self, rows: Range<usize>, sizes: Sizes) -> Result<(), CudaError> {
        let format = self.logit_format(sizes.k);
        let CudaLearner { device, side, emissions, precision, tables, .. } = self;
        let context = StepContext { device, side, emissions, precision: *precision };
        match &mut self.source {
            Source::Networks(networks) => networks.logits(&context, rows, sizes, format, tables),
            Source::Logits(logits) => {
                let weights = &self.learned.weights;
                logits.logits(&context, weights, rows, (&self.kept, sizes.n), tables)
            }
        }
    }

    /// Computes the transitions that a batch uses. If logits are in half precision, also minus the probabilities of all pairs,
    /// up to a factor per row.
    pub(crate) fn transitions(
        &mut self,
        planned: &DevicePlan<'_>,
        sizes: Sizes,
    ) -> Result<(), CudaError> {
        let format = self.logit_format(sizes.k);
        let CudaLearner { device, tables, source, .. } = self;
        if format == LogitFormat::Half
            && let Source::Networks(networks) = source
            && device.has_powers(sizes.n, networks.dim())
        {
            networks.minus_powers(device, sizes, tables)?;
            return tables.gather_powers(device, planned, sizes);
        }
        self.logits(0..sizes.n_from, sizes)?;
        self.tables.transitions(&self.device, planned, sizes, format)
    }

    /// The format of the logits of networks, with `k` states per cluster: half precision if the kernels can process eight
    /// states at a time. A single cluster needs all transitions in single precision.
    pub(crate) fn logit_format(&self, k: usize) -> LogitFormat {
        let is_half = self.precision == Precision::Fast
            && matches!(self.source, Source::Networks(_))
            && k.is_multiple_of(8)
            && self.space.n_clusters() > 1;
        if is_half { LogitFormat::Half } else { LogitFormat::Single }
    }
}
