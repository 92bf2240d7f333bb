//! The probabilities of a fitted model on the device.

use super::batches::Places;
use crate::cuda::context::{LogitFormat, Sizes};
use crate::cuda::plan::batch_plan::{BatchPlan, lists};
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::score::{ROWS, max_tokens};
use crate::cuda::tables::Tables;
use crate::model::Hmm;
use crate::recursion::batch::Batch;
use crate::space::device_limits::too_many_states;
use crate::space::kept_lists::KeptLists;
use crate::space::kept_states::KeptStates;
use crate::space::state_set::StateSet;
use crate::tables::block_cache::TransitionBlocks;
use latens_cuda::{Array, BlockShape, CudaError, Device, Precision, ProductShape, Transposed};
use latens_model::DeviceError;
use std::borrow::Cow;

/// The largest number of values of tokens at a time, in each of four arrays: 256 MiB.
const MAX_VALUES: usize = if cfg!(test) { 1 << 10 } else { 1 << 26 };

/// The lower bound of emission probabilities on the device.
const SMALLEST_EMISSION: f32 = 1e-33;

/// A token of a batch that is emitted with probabilities of its own, in the order of the states of its word.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnEmission<'a> {
    pub(super) sentence: usize,
    pub(super) token: usize,
    pub(super) probabilities: &'a [f32],
}

/// A fitted model on the device.
pub(super) struct OnDevice<'a> {
    hmm: &'a Hmm,
    device: Device,
    kept: KeptStates,
    tables: Tables,
    transitions: Transitions,
    /// The plan of the last batch.
    ints: Array<u32>,
}

/// The transitions of all states.
enum Transitions {
    /// ln a(j|i) = fromᵢ · toⱼ − log_sumᵢ. The log normalizers are in the tables.
    Factors { from: Array<f32>, to: Array<f32>, dim: usize },
    /// a: Z × Z.
    Table(Array<f32>),
}

impl<'a> OnDevice<'a> {
    /// Copies the model.
    pub(super) fn open(hmm: &'a Hmm) -> Result<OnDevice<'a>, DeviceError> {
        if let Some(what) = too_many_states(&hmm.space) {
            return Err(DeviceError::cuda(format!("it cannot use a model with {what}")));
        }
        OnDevice::try_open(hmm).map_err(DeviceError::cuda)
    }

    fn try_open(hmm: &'a Hmm) -> Result<OnDevice<'a>, CudaError> {
        let device = Device::open()?;
        let mut tables = Tables::new(&device, hmm.n_states())?;
        tables.start = device.upload(&hmm.start)?;
        tables.emission = device.upload(&emissions(hmm))?;
        let transitions = match &hmm.blocks {
            TransitionBlocks::Stored(_) => Transitions::Table(table(hmm, &device)?),
            TransitionBlocks::Computed { factors, .. } => {
                tables.log_sums = device.upload(&factors.log_sums)?;
                let (from, to) = (device.upload(&factors.from)?, device.upload(&factors.to)?);
                Transitions::Factors { from, to, dim: factors.dim }
            }
        };
        let (kept, ints) = (KeptStates::all(&hmm.space), device.zeros(1)?);
        Ok(OnDevice { hmm, device, kept, tables, transitions, ints })
    }

    pub(super) fn hmm(&self) -> &'a Hmm {
        self.hmm
    }

    /// The largest number of tokens at a time. Every batch computes all transitions, so it should be large.
    pub(super) fn max_tokens(&self) -> usize {
        let space = &self.hmm.space;
        let (n_tokens, k) = match (&self.transitions, lists(space, 1)) {
            (Transitions::Factors { .. }, Some(lists)) => (max_tokens(space), lists.n),
            (Transitions::Factors { .. }, None) => (max_tokens(space), space.k),
            // A copy of parts of the table, which is in memory as a whole.
            (Transitions::Table(_), _) => (usize::MAX, space.k),
        };
        n_tokens.min(MAX_VALUES / k).max(1)
    }

    /// Copies a batch and computes the transitions between its tokens, then runs a function, such as a recursion.
    pub(super) fn run<R>(
        &mut self,
        batch: &Batch<'_>,
        own: &[OwnEmission<'_>],
        function: impl FnOnce(&Device, &mut Tables, &DevicePlan<'_>) -> Result<R, CudaError>,
    ) -> Result<R, CudaError> {
        let plan = BatchPlan::to_score(&self.hmm.space, batch, self.kept_of_lists());
        self.run_plan(&plan, (batch, own), function)
    }

    /// [`OnDevice::run`] with the tokens of each sentence one after the other.
    pub(super) fn run_in_sentences<R>(
        &mut self,
        batch: &Batch<'_>,
        own: &[OwnEmission<'_>],
        function: impl FnOnce(&Device, &mut Tables, &DevicePlan<'_>) -> Result<R, CudaError>,
    ) -> Result<R, CudaError> {
        let plan = BatchPlan::to_trace(&self.hmm.space, batch, self.kept_of_lists());
        self.run_plan(&plan, (batch, own), function)
    }

    /// The states of short lists, if the lists may be sparse: only logits can be gathered for pairs of lists.
    fn kept_of_lists(&self) -> Option<&KeptStates> {
        matches!(self.transitions, Transitions::Factors { .. }).then_some(&self.kept)
    }

    fn run_plan<R>(
        &mut self,
        plan: &BatchPlan,
        (batch, own): (&Batch<'_>, &[OwnEmission<'_>]),
        function: impl FnOnce(&Device, &mut Tables, &DevicePlan<'_>) -> Result<R, CudaError>,
    ) -> Result<R, CudaError> {
        let OnDevice { hmm, device, tables, transitions, ints, .. } = self;
        let (k, n) = (hmm.space.k, hmm.n_states());
        let mut planned = DevicePlan::new(device, plan, ints)?;
        planned.own_emissions = own_emissions(hmm, plan, batch, own);
        tables.reserve_to_score(device, plan, k)?;
        transitions.place(device, tables, &planned, Sizes { k, n, n_from: n })?;
        function(device, tables, &planned)
    }
}

impl Transitions {
    /// Computes the blocks of a plan.
    fn place(
        &self,
        device: &Device,
        tables: &mut Tables,
        planned: &DevicePlan<'_>,
        sizes @ Sizes { k, n, .. }: Sizes,
    ) -> Result<(), CudaError> {
        let (from, to, dim) = match self {
            Transitions::Factors { from, to, dim } => (from, to, *dim),
            Transitions::Table(table) => {
                let blocks = planned.blocks(0..planned.plan.n_blocks());
                let shape = BlockShape { k, n };
                return device.copy_blocks(&mut tables.blocks, table, &blocks, shape);
            }
        };
        // Some rows of logits at a time, of whole clusters unless there are state lists.
        let listed = planned.listed();
        let step = if listed.is_some() { ROWS } else { (ROWS / k).max(1) * k };
        for first in (0..n).step_by(step) {
            let rows = first..(first + step).min(n);
            device.reserve(&mut tables.logits, rows.len() * n)?;
            let out = (&mut tables.logits, 0..rows.len() * n);
            let left = (from, rows.start * dim..rows.end * dim, Transposed::No);
            let right = (to, 0..n * dim, Transposed::Yes);
            let shape = ProductShape { n: rows.len(), m: n, k: dim };
            device.multiply(out, 0.0, left, right, shape, Precision::Full)?;
            if let Some(listed) = &listed {
                tables.gather_listed(device, planned, listed, rows, n)?;
            } else {
                let blocks = planned.plan.blocks_from(rows.start / k..rows.end / k);
                let how = (sizes, LogitFormat::Single);
                tables.gather(device, planned, blocks, rows.start, how)?;
            }
        }
        Ok(())
    }
}

/// The Z × Z table of transitions, copied some rows at a time.
fn table(hmm: &Hmm, device: &Device) -> Result<Array<f32>, CudaError> {
    let (k, n) = (hmm.space.k, hmm.n_states());
    let (mut table, mut rows) = (device.zeros(n * n)?, vec![0.0; k * n]);
    for from in 0..hmm.space.n_clusters() {
        hmm.transition_rows(StateSet::Cluster(from), &mut rows);
        device.write_at(&rows, &mut table, from * k * n)?;
    }
    Ok(table)
}

/// Dense rows of emissions.
fn emissions(hmm: &Hmm) -> Cow<'_, [f32]> {
    match KeptLists::all(&hmm.space) {
        Some(lists) => lists.scatter(&hmm.emission, hmm.space.k).into(),
        None => hmm.emission[..].into(),
    }
}

/// The row of each token with its own emission probabilities, and one probability per state that the device uses.
fn own_emissions(
    hmm: &Hmm,
    plan: &BatchPlan,
    batch: &Batch<'_>,
    own: &[OwnEmission<'_>],
) -> Vec<(usize, Vec<f32>)> {
    let (k, places) = (plan.states_of_token(hmm.space.k), Places::new(plan, batch));
    let row = |own: &OwnEmission<'_>| {
        let word = batch.sentences[own.sentence][own.token];
        let (states, _) = hmm.emitters(word)?;
        let mut row = vec![SMALLEST_EMISSION; k];
        for (i, &p) in own.probabilities.iter().enumerate() {
            let place = match states {
                // The device uses all states.
                StateSet::List(list) if list.len() < k => list[i] as usize,
                _ => i,
            };
            row[place] = p.max(SMALLEST_EMISSION);
        }
        Some((places.row(own.sentence, own.token), row))
    };
    own.iter().filter_map(row).collect()
}
