//! The vectors of states on the device; see `crate::weights::state_vectors`.

use crate::cuda::context::{Weights, range};
use crate::cuda::plan::kept_plan::KeptPlan;
use crate::cuda::weights::nets::{Net, Nets};
use crate::cuda::weights::residual::{Formats, Scaled};
use crate::params::{HmmParams, Parameterization, Tying};
use crate::weights::state_vectors::{USES, Use};
use latens_cuda::{
    Array, ClusterOrder, Columns, CudaError, Device, Precision, RowGroups, Shape, bf16, f16,
};
use latens_nn::Layout;
use std::ops::Range;

/// The vectors of states and their derivatives.
#[derive(Debug)]
pub(crate) struct StateVectors {
    source: Source,
    dim: usize,
    vectors: Vec<Array<f32>>,
    /// The vectors in both 16-bit formats, in fast precision.
    rounded: Vec<Rounded>,
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
    joined: Array<f32>,
    rounded: Rounded,
    d_joined: Array<f32>,
}

/// Numbers in both 16-bit formats.
#[derive(Debug)]
struct Rounded {
    half: Array<f16>,
    bf16: Array<bf16>,
}

impl Rounded {
    fn new(device: &Device) -> Result<Rounded, CudaError> {
        Ok(Rounded { half: device.zeros(1)?, bf16: device.zeros(1)? })
    }

    /// Rounds the first n numbers.
    fn write(&mut self, device: &Device, values: &Array<f32>, n: usize) -> Result<(), CudaError> {
        device.reserve(&mut self.half, n)?;
        device.reserve(&mut self.bf16, n)?;
        device.to_half_and_bf16((&mut self.half, &mut self.bf16), (values, 0..n))
    }

    fn with<'a>(&'a self, single: &'a Array<f32>) -> Formats<'a> {
        Formats { single, half: &self.half, bf16: &self.bf16 }
    }
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
            (Parameterization::Factored, _) => Source::Factored(Box::new(Factored {
                cluster: range(layout, "clusters.embedding"),
                state: range(layout, "states.embedding"),
                joined: device.zeros(n_rows * dim)?,
                rounded: Rounded::new(device)?,
                d_joined: device.zeros(n_rows * dim)?,
            })),
            (_, Tying::Shared) => Source::Tables(vec![range(layout, "states.embedding")]),
            (_, Tying::Separate) => {
                let table =
                    |(_, name): &(Use, &str)| range(layout, &format!("states.{name}.embedding"));
                Source::Tables(USES.iter().map(table).collect())
            }
        };
        let n = if let Source::Tables(tables) = &source { tables.len() } else { USES.len() };
        let zeros = |n| (0..n).map(|_| device.zeros(n_rows * dim)).collect::<Result<Vec<_>, _>>();
        let rounded = (0..n).map(|_| Rounded::new(device)).collect::<Result<_, _>>()?;
        Ok(StateVectors { source, dim, vectors: zeros(n)?, rounded, d_vectors: zeros(n.max(2))? })
    }

    /// Computes the vectors of the kept states.
    pub(crate) fn forward(
        &mut self,
        device: &Device,
        (weights, nets): (&Array<f32>, &mut Nets),
        kept: KeptOnDevice<'_>,
        (rate, seed): (f32, u64),
        precision: Precision,
    ) -> Result<(), CudaError> {
        let (n, dim) = (kept.plan.n(), self.dim);
        match &mut self.source {
            Source::Tables(tables) => {
                for (table, vectors) in tables.iter().zip(&mut self.vectors) {
                    let (table, out) = ((weights, table.clone()), (vectors, Columns::all(dim)));
                    let shape = Shape { rows: n, columns: dim };
                    device.gather_rows(out, table, kept.states(), shape)?;
                }
            }
            Source::Factored(factored) => {
                let Factored { cluster, state, joined, rounded, .. } = &mut **factored;
                let (half, cluster_of) = (dim / 2, (kept.ints, kept.plan.cluster_of.clone()));
                let out = (&mut *joined, Columns { stride: dim, first: 0 });
                let table = (weights, cluster.clone());
                device.gather_rows(out, table, cluster_of, Shape { rows: n, columns: half })?;
                let out = (&mut *joined, Columns { stride: dim, first: half });
                let shape = Shape { rows: n, columns: half };
                device.gather_rows(out, (weights, state.clone()), kept.states(), shape)?;
                if precision == Precision::Fast {
                    rounded.write(device, joined, n * dim)?;
                }
                for (i, ((of, _), vectors)) in USES.into_iter().zip(&mut self.vectors).enumerate() {
                    let (values, n) = ((rounded.with(joined), vectors), kept.plan.n_of(of));
                    let dropout = (rate, seed.wrapping_add(i as u64));
                    nets.forward(Net::States(of), device, weights, values, n, dropout)?;
                }
            }
        }
        if precision == Precision::Fast {
            for (vectors, rounded) in self.vectors.iter().zip(&mut self.rounded) {
                rounded.write(device, vectors, n * dim)?;
            }
        }
        Ok(())
    }

    /// The vectors of a use.
    pub(crate) fn vectors(&self, of: Use) -> Formats<'_> {
        let at = of as usize % self.vectors.len();
        self.rounded[at].with(&self.vectors[at])
    }

    /// The vectors of a use, and the destination of their derivatives. These overwrite those of the last step. With a
    /// single table, however, those of [`Use::From`] are added to those of [`Use::To`], and those of [`Use::Emit`] to those
    /// of [`Use::Start`], which come first.
    pub(crate) fn vectors_and_gradients(&mut self, of: Use) -> (Formats<'_>, Scaled<'_>) {
        let is_shared = self.vectors.len() == 1;
        let (d_at, scale) = match of {
            Use::To if is_shared => (0, 0.0),
            Use::From if is_shared => (0, 1.0),
            Use::Start if is_shared => (1, 0.0),
            Use::Emit if is_shared => (1, 1.0),
            _ => (of as usize, 0.0),
        };
        let at = of as usize % self.vectors.len();
        let vectors = self.rounded[at].with(&self.vectors[at]);
        (vectors, (&mut self.d_vectors[d_at], scale))
    }

    /// Backpropagates the derivatives of the vectors to the gradient of the weights.
    pub(crate) fn backward(
        &mut self,
        device: &Device,
        learned: &mut Weights,
        nets: &mut Nets,
        kept: KeptOnDevice<'_>,
    ) -> Result<(), CudaError> {
        let (n, k, dim) = (kept.plan.n(), kept.plan.k, self.dim);
        match &mut self.source {
            Source::Tables(tables) => {
                for (i, d_vectors) in self.d_vectors.iter().enumerate() {
                    let n = if tables.len() == 1 { n } else { kept.plan.n_of(USES[i].0) };
                    let table = (&mut learned.gradient, tables[i % tables.len()].clone());
                    let rows = (d_vectors, Columns::all(dim));
                    let shape = Shape { rows: n, columns: dim };
                    device.add_to_rows(table, kept.states(), rows, shape)?;
                }
                Ok(())
            }
            Source::Factored(factored) => {
                let Factored { cluster, state, joined, rounded, d_joined } = &mut **factored;
                for (i, ((of, _), d_vectors)) in USES.into_iter().zip(&self.d_vectors).enumerate() {
                    let d_joined = (&mut *d_joined, if i == 0 { 0.0 } else { 1.0 });
                    let (values, n) = ((rounded.with(joined), d_vectors), kept.plan.n_of(of));
                    nets.backward(Net::States(of), device, learned, values, d_joined, n)?;
                }
                let half = dim / 2;
                let table = (&mut learned.gradient, cluster.clone());
                let rows = (&*d_joined, Columns { stride: dim, first: 0 });
                let (idxs, groups) =
                    ((kept.ints, kept.plan.clusters.clone()), RowGroups { n: n / k, size: k });
                device.add_sums_of_groups(table, idxs, rows, groups, half)?;
                let table = (&mut learned.gradient, state.clone());
                let rows = (&*d_joined, Columns { stride: dim, first: half });
                device.add_to_rows(table, kept.states(), rows, Shape { rows: n, columns: half })
            }
        }
    }
}
