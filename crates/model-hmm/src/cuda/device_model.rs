//! A model on the device: its weights, and the logits that are computed from them.

use crate::cuda::place::{Place, Weights, emissions, side_stream};
use crate::cuda::tables::Tables;
use crate::cuda::weights::logits::Logits;
use crate::cuda::weights::networks::Networks;
use crate::cuda::weights::state_vectors::KeptOnDevice;
use crate::params::{HmmParams, Parameterization};
use crate::space::kept_states::KeptStates;
use crate::space::state_space::StateSpace;
use crate::steps::learner::LearnerState;
use latens_cuda::{Array, CudaError, Device, Emissions, Precision, StepResult};
use latens_nn::Layout;
use std::ops::Range;

/// What logits are made of.
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
    pub(crate) kept: Array<u32>,
    /// Numbers of the last batch; lent out while they are used.
    pub(crate) ints: Option<Array<u32>>,
}

impl<'a> CudaLearner<'a> {
    /// The learner of weights that lie as in `layout`.
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
            Parameterization::Scalar => Source::Logits(Logits::new(layout, (n, space.k))),
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
            kept: device.zeros(n)?,
            ints: Some(device.zeros(1)?),
            side: side_stream(&device)?,
            device,
        })
    }

    /// Probabilities of start and emission, at the side, and what transitions are made of; units are dropped by a seed,
    /// none without one.
    pub(crate) fn forward(
        &mut self,
        kept: &KeptStates,
        seed: Option<u64>,
    ) -> Result<(), CudaError> {
        let (n, k) = (kept.states.len(), kept.k);
        self.device.write(&kept.states, &mut self.kept)?;
        // Nothing uses the old array any more: the end of the last step was waited for.
        self.side.reserve(&mut self.tables.emission, self.space.n_slots() * k)?;
        let CudaLearner { device, side, emissions, precision, tables, .. } = self;
        let place = Place { device, side, emissions, precision: *precision };
        let weights = &self.learned.weights;
        let states = KeptOnDevice { states: &self.kept, n, k };
        match &mut self.source {
            Source::Networks(networks) => {
                networks.forward(&place, weights, states, seed, tables)?;
            }
            Source::Logits(logits) => logits.forward(&place, weights, states, tables)?,
        }
        side.softmax(&mut tables.start, n)?;
        emissions.normalize(side, &mut tables.emission, &self.kept, k)
    }

    /// The logits of transitions from some states to all.
    pub(crate) fn logits(
        &mut self,
        rows: Range<usize>,
        (k, n): (usize, usize),
    ) -> Result<(), CudaError> {
        let is_half = self.is_half(k);
        let CudaLearner { device, side, emissions, precision, tables, .. } = self;
        let place = Place { device, side, emissions, precision: *precision };
        match &mut self.source {
            Source::Networks(networks) => networks.logits(&place, rows, n, is_half, tables),
            Source::Logits(logits) => {
                let weights = &self.learned.weights;
                let states = KeptOnDevice { states: &self.kept, n, k };
                logits.logits(&place, weights, rows, states, tables)
            }
        }
    }

    /// Whether logits are of half precision, which eight states at a time allow.
    pub(crate) fn is_half(&self, k: usize) -> bool {
        // One cluster is learned in steps, which want all transitions in full.
        self.precision == Precision::Fast
            && matches!(self.source, Source::Networks(_))
            && k.is_multiple_of(8)
            && self.space.n_clusters() > 1
    }
}
