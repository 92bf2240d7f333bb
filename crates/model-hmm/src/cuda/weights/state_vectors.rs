//! The vectors of states on the device; see `crate::weights::state_vectors`.

use crate::cuda::context::{Weights, range};
use crate::cuda::plan::kept_plan::KeptPlan;
use crate::cuda::weights::residual::{Residual, Scaled, Scratch};
use crate::params::{HmmParams, Parameterization, Tying};
use crate::weights::state_vectors::{USES, Use};
use latens_cuda::{
    Array, ClusterOrder, Columns, CudaError, Derivative, Device, Precision, RowGroups, bf16,
};
use latens_nn::Layout;
use std::ops::Range;

/// The vectors of states and their derivatives.
#[derive(Debug)]
pub(crate) struct StateVectors {
    source: Source,
    dim: usize,
    vectors: Vec<Array<f32>>,
    /// The vectors in bf16, if the derivatives are.
    rounded: Vec<Array<bf16>>,
    /// One array per use. With a single table one array for transitions, and one for starts and emissions, which are
    /// computed at the same time.
    d_vectors: Vec<Array<f32>>,
}

/// How the vectors are computed.
#[derive(Debug)]
enum Source {
    /// One table for all uses, or one table per use.
    Tables(Vec<Range<usize>>),
    Factored(Box<Factored>),
}

#[derive(Debug)]
struct Factored {
    cluster: Range<usize>,
    state: Range<usize>,
    nets: Vec<Residual>,
    joined: Array<f32>,
    rounded: Array<bf16>,
    d_joined: Array<f32>,
}

/// The kept states on the device: the indices of a plan in an array.
#[derive(Clone, Copy)]
pub(crate) struct KeptOnDevice<'a> {
    pub(crate) ints: &'a Array<u32>,
    pub(crate) plan: &'a KeptPlan,
}

impl<'a> KeptOnDevice<'a> {
    pub(crate) fn states(&self) -> (&'a Array<u32>, Range<usize>) {
        (self.ints, self.plan.states.clone())
    }

    /// The order of the clusters, and how many of them have tokens.
    pub(crate) fn order(&self) -> ClusterOrder<'a> {
        let KeptPlan { k, n_emit, ref places, .. } = *self.plan;
        ClusterOrder { ints: self.ints, places: places.clone(), n_used: n_emit / k }
    }
}

impl StateVectors {
    pub(crate) fn new(
        device: &Device,
        params: &HmmParams,
        layout: &Layout,
        n_rows: usize,
    ) -> Result<StateVectors, CudaError> {
        let dim = params.dim;
        let source = match (params.parameterization, params.tying) {
            (Parameterization::Factored, _) => {
                let net = |(_, name): &(Use, &str)| {
                    Residual::new(device, layout, &format!("states.{name}"), n_rows)
                };
                Source::Factored(Box::new(Factored {
                    cluster: range(layout, "clusters.embedding"),
                    state: range(layout, "states.embedding"),
                    nets: USES.iter().map(net).collect::<Result<_, _>>()?,
                    joined: device.zeros(n_rows * dim)?,
                    rounded: device.zeros(1)?,
                    d_joined: device.zeros(n_rows * dim)?,
                }))
            }
            (_, Tying::Shared) => Source::Tables(vec![range(layout, "states.embedding")]),
            (_, Tying::Separate) => {
                let table =
                    |(_, name): &(Use, &str)| range(layout, &format!("states.{name}.embedding"));
                Source::Tables(USES.iter().map(table).collect())
            }
        };
        let n = if let Source::Tables(tables) = &source { tables.len() } else { USES.len() };
        let zeros = |n| (0..n).map(|_| device.zeros(n_rows * dim)).collect::<Result<Vec<_>, _>>();
        let rounded = (0..n).map(|_| device.zeros(1)).collect::<Result<_, _>>()?;
        Ok(StateVectors { source, dim, vectors: zeros(n)?, rounded, d_vectors: zeros(n.max(2))? })
    }

    /// Computes the vectors of the kept states.
    pub(crate) fn forward(
        &mut self,
        device: &Device,
        weights: &Array<f32>,
        kept: KeptOnDevice<'_>,
        (rate, seed): (f32, u64),
        precision: Precision,
    ) -> Result<(), CudaError> {
        let (n, dim) = (kept.plan.n(), self.dim);
        match &mut self.source {
            Source::Tables(tables) => {
                for (table, vectors) in tables.iter().zip(&mut self.vectors) {
                    let (table, out) = ((weights, table.clone()), (vectors, Columns::all(dim)));
                    device.gather_rows(out, table, kept.states(), (n, dim))?;
                }
            }
            Source::Factored(factored) => {
                let Factored { cluster, state, nets, joined, rounded, .. } = &mut **factored;
                let (half, cluster_of) = (dim / 2, (kept.ints, kept.plan.cluster_of.clone()));
                let out = (&mut *joined, Columns { stride: dim, first: 0 });
                let table = (weights, cluster.clone());
                device.gather_rows(out, table, cluster_of, (n, half))?;
                let out = (&mut *joined, Columns { stride: dim, first: half });
                device.gather_rows(out, (weights, state.clone()), kept.states(), (n, half))?;
                if precision == Precision::Fast {
                    round(device, joined, rounded, n * dim)?;
                }
                for (i, (net, vectors)) in nets.iter_mut().zip(&mut self.vectors).enumerate() {
                    let (seed, n) = (seed.wrapping_add(i as u64), kept.plan.n_of(USES[i].0));
                    net.forward(device, weights, joined, n, (rate, seed), precision)?;
                    device.copy(&net.out, vectors)?;
                }
            }
        }
        if precision == Precision::Fast {
            for (vectors, rounded) in self.vectors.iter().zip(&mut self.rounded) {
                round(device, vectors, rounded, n * dim)?;
            }
        }
        Ok(())
    }

    /// The vectors of a use.
    pub(crate) fn vectors(&self, of: Use) -> &Array<f32> {
        &self.vectors[of as usize % self.vectors.len()]
    }

    /// The vectors of a use, and the destination of their derivatives. These overwrite those of the last step. With a
    /// single table, however, those of [`Use::From`] are added to those of [`Use::To`], and those of [`Use::Emit`] to those
    /// of [`Use::Start`], which come first.
    pub(crate) fn vectors_and_gradients<T: Derivative>(
        &mut self,
        of: Use,
    ) -> (&Array<T>, Scaled<'_>) {
        let is_shared = self.vectors.len() == 1;
        let (d_at, scale) = match of {
            Use::To if is_shared => (0, 0.0),
            Use::From if is_shared => (0, 1.0),
            Use::Start if is_shared => (1, 0.0),
            Use::Emit if is_shared => (1, 1.0),
            _ => (of as usize, 0.0),
        };
        let at = of as usize % self.vectors.len();
        let vectors = T::either(&self.vectors[at], &self.rounded[at]);
        (vectors, (&mut self.d_vectors[d_at], scale))
    }

    /// Backpropagates the derivatives of the vectors to the gradient of the weights.
    pub(crate) fn backward<T: Derivative>(
        &mut self,
        device: &Device,
        learned: &mut Weights,
        kept: KeptOnDevice<'_>,
        scratch: &mut Scratch<T>,
    ) -> Result<(), CudaError> {
        let (n, k, dim) = (kept.plan.n(), kept.plan.k, self.dim);
        match &mut self.source {
            Source::Tables(tables) => {
                for (i, d_vectors) in self.d_vectors.iter().enumerate() {
                    let n = if tables.len() == 1 { n } else { kept.plan.n_of(USES[i].0) };
                    let table = (&mut learned.gradient, tables[i % tables.len()].clone());
                    let rows = (d_vectors, Columns::all(dim));
                    device.add_to_rows(table, kept.states(), rows, (n, dim))?;
                }
                Ok(())
            }
            Source::Factored(factored) => {
                let Factored { cluster, state, nets, joined, rounded, d_joined, .. } =
                    &mut **factored;
                for (i, (net, d_vectors)) in nets.iter_mut().zip(&self.d_vectors).enumerate() {
                    device.copy(d_vectors, &mut net.d_out)?;
                    let d_joined = (&mut *d_joined, if i == 0 { 0.0 } else { 1.0 });
                    net.backward(
                        device,
                        learned,
                        T::either(joined, rounded),
                        d_joined,
                        kept.plan.n_of(USES[i].0),
                        scratch,
                    )?;
                }
                let half = dim / 2;
                let table = (&mut learned.gradient, cluster.clone());
                let rows = (&*d_joined, Columns { stride: dim, first: 0 });
                let (idxs, groups) =
                    ((kept.ints, kept.plan.clusters.clone()), RowGroups { n: n / k, size: k });
                device.add_sums_of_groups(table, idxs, rows, groups, half)?;
                let table = (&mut learned.gradient, state.clone());
                let rows = (&*d_joined, Columns { stride: dim, first: half });
                device.add_to_rows(table, kept.states(), rows, (n, half))
            }
        }
    }
}

/// Converts the first n numbers to bf16.
fn round(
    device: &Device,
    values: &Array<f32>,
    rounded: &mut Array<bf16>,
    n: usize,
) -> Result<(), CudaError> {
    device.reserve(rounded, n)?;
    device.to_bf16(rounded, (values, 0..n))
}
