//! Baum–Welch on a CUDA device. Probabilities and expected counts stay on the device.
//!
//! The device clamps transitions to at least 10⁻³⁰ and emissions to at least 10⁻³³, so no sentence is impossible here.

use crate::cuda::context::{LogitFormat, Sizes, emissions, side_stream};
use crate::cuda::plan::batch_plan::BatchPlan;
use crate::cuda::plan::device_plan::DevicePlan;
use crate::cuda::tables::Tables;
use crate::recursion::batch::Batch;
use crate::space::state_space::StateSpace;
use crate::steps::estimator::Estimator;
use crate::tables::probability_tables as host;
use latens_cuda::{Array, BlockShape, CudaError, Device, Emissions, Precision, Shape};
use latens_model::FitError;

/// The estimator on a CUDA device.
pub(crate) struct CudaEstimator<'a> {
    device: Device,
    side: Device,
    precision: Precision,
    space: &'a StateSpace,
    emissions: Emissions,
    transition: Array<f32>,
    tables: Tables,
    start_counts: Array<f64>,
    transition_counts: Array<f64>,
    emission_counts: Array<f64>,
    log_prob: Array<f64>,
    /// The plan of the last batch.
    ints: Array<u32>,
}

impl<'a> CudaEstimator<'a> {
    /// Starts from a model with dense rows of emissions.
    pub(crate) fn new(
        space: &'a StateSpace,
        tables: &host::Tables<f32>,
        precision: Precision,
    ) -> Result<CudaEstimator<'a>, CudaError> {
        let device = Device::open()?;
        let n = space.n_states();
        let mut on_device = Tables::new(&device, n)?;
        on_device.start = device.upload(&tables.start)?;
        on_device.emission = device.upload(&tables.emission)?;
        Ok(CudaEstimator {
            precision,
            space,
            emissions: emissions(&device, space)?,
            transition: device.upload(&tables.transition)?,
            tables: on_device,
            start_counts: device.zeros(n)?,
            transition_counts: device.zeros(n * n)?,
            emission_counts: device.zeros(tables.emission.len())?,
            log_prob: device.zeros(1)?,
            ints: device.zeros(1)?,
            side: side_stream(&device)?,
            device,
        })
    }

    fn try_expect(&mut self, batch: &Batch<'_>) -> Result<(), CudaError> {
        let CudaEstimator { device, space, tables, .. } = self;
        let (k, n) = (space.k, space.n_states());
        let plan = BatchPlan::to_learn(space, batch, None);
        let planned = DevicePlan::new(device, &plan, &mut self.ints)?;
        tables.reserve(device, &plan, k)?;
        let blocks = planned.blocks(0..plan.n_blocks());
        device.copy_blocks(&mut tables.blocks, &self.transition, &blocks, BlockShape { k, n })?;
        let how = (LogitFormat::Single, self.precision);
        tables.expect((device, &self.side), &planned, Sizes { k, n, n_from: n }, how)?;
        let ratios = (&tables.blocks, &self.transition);
        let shape = BlockShape { k, n };
        device.add_transitions(&mut self.transition_counts, ratios, &blocks, shape)?;
        let count_of = (planned.ints, plan.count_of.clone());
        device.add_emissions(&mut self.emission_counts, &tables.emitted, count_of, k)?;
        device.add_values(&mut self.start_counts, &tables.start_counts, n)?;
        device.add_sum(&mut self.log_prob, &tables.log_probs, plan.n_sentences())
    }

    fn try_maximize(&mut self, prior: f64) -> Result<(), CudaError> {
        let CudaEstimator { device, space, tables, .. } = self;
        let (k, n) = (space.k, space.n_states());
        let shape = Shape { rows: 1, columns: n };
        device.share_rows(&mut tables.start, &self.start_counts, prior, shape)?;
        let shape = Shape { rows: n, columns: n };
        device.share_rows(&mut self.transition, &self.transition_counts, prior, shape)?;
        let emission = (&mut tables.emission, &self.emission_counts);
        self.emissions.share(device, emission.0, emission.1, prior, k)?;
        device.clear(&mut self.start_counts)?;
        device.clear(&mut self.transition_counts)?;
        device.clear(&mut self.emission_counts)?;
        device.clear(&mut self.log_prob)
    }

    fn try_score(&mut self, batches: &[Batch<'_>]) -> Result<f64, CudaError> {
        let CudaEstimator { device, space, tables, .. } = self;
        let (k, n) = (space.k, space.n_states());
        let mut words = batches.iter().flat_map(|batch| &batch.sentences).copied().flatten();
        if words.any(|&word| space.slot(word).is_none()) {
            return Ok(f64::NEG_INFINITY);
        }
        let mut sum = 0.0;
        for batch in batches {
            let plan = BatchPlan::to_score(space, batch, None);
            let planned = DevicePlan::new(device, &plan, &mut self.ints)?;
            tables.reserve_to_score(device, &plan, k)?;
            let blocks = planned.blocks(0..plan.n_blocks());
            let shape = BlockShape { k, n };
            device.copy_blocks(&mut tables.blocks, &self.transition, &blocks, shape)?;
            tables.forward(device, &planned, k, Precision::Full)?;
            let log_probs = device.download(&tables.log_probs)?;
            sum += log_probs[..plan.n_sentences()].iter().sum::<f64>();
        }
        Ok(sum)
    }
}

impl Estimator for CudaEstimator<'_> {
    /// Large enough for efficient matrix products: 256 MiB per array. Words with a state list are processed with all
    /// states, most with probability 0.
    fn batch_tokens(&self) -> usize {
        (1 << 26) / self.space.k.max(256)
    }

    fn expect(&mut self, batch: &Batch<'_>) -> Result<(), FitError> {
        self.try_expect(batch).map_err(FitError::step("train on the device"))
    }

    fn log_prob(&mut self) -> Result<f64, FitError> {
        let sum = self.device.download(&self.log_prob);
        sum.map(|sum| sum[0]).map_err(FitError::step("train on the device"))
    }

    fn maximize(&mut self, prior: f64) -> Result<(), FitError> {
        self.try_maximize(prior).map_err(FitError::step("train on the device"))
    }

    fn score(&mut self, batches: &[Batch<'_>]) -> Result<f64, FitError> {
        self.try_score(batches).map_err(FitError::step("score on the device"))
    }

    fn tables(&self) -> Result<host::Tables<f32>, FitError> {
        let download =
            |array| self.device.download(array).map_err(FitError::step("read the device"));
        let (n, n_emissions) = (self.space.n_states(), self.emission_counts.len());
        let (mut start, mut emission) =
            (download(&self.tables.start)?, download(&self.tables.emission)?);
        start.truncate(n);
        emission.truncate(n_emissions);
        Ok(host::Tables {
            k: self.space.k,
            start,
            transition: download(&self.transition)?,
            emission,
            ..host::Tables::default()
        })
    }
}
