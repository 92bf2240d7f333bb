//! The vectors of states, one per use of a state.

use crate::params::{HmmParams, Parameterization, Tying};
use crate::space::kept_states::KeptStates;
use latens_math::linalg::Par;
use latens_math::{Real, Rng};
use latens_nn::{Buffer, Dropout, Embedding, Layout, Residual, ResidualScratch, fill_normal};

/// What the vector of a state is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Start,
    From,
    To,
    Emit,
}

/// All uses, each with its name in the layout of the weights.
pub(crate) const USES: [(Use, &str); 4] =
    [(Use::Start, "start"), (Use::From, "from"), (Use::To, "to"), (Use::Emit, "emit")];

/// How the vectors of states are computed (Chiu and Rush 2020, §5.1).
pub(crate) enum StateVectors {
    /// One embedding for all uses.
    Shared(Embedding),
    /// One embedding per use.
    Separate([Embedding; 4]),
    /// One network per use, whose input is the embedding of the cluster followed by the embedding of the state, of
    /// half the dimension each.
    Factored { cluster: Embedding, state: Embedding, nets: Box<[Residual; 4]> },
}

/// The vectors of the kept states and their derivatives.
#[derive(Default)]
pub(crate) struct StateScratch<T> {
    vectors: Vec<Buffer<T>>,
    gradients: Vec<Buffer<T>>,
    /// The input of the networks of factored vectors and its derivative.
    joined: Buffer<T>,
    d_joined: Buffer<T>,
    nets: [ResidualScratch<T>; 4],
}

impl StateVectors {
    pub(crate) fn new(layout: &mut Layout, params: &HmmParams, n_clusters: usize) -> StateVectors {
        let HmmParams { n_states, dim, .. } = *params;
        match (params.parameterization, params.tying) {
            (Parameterization::Factored, _) => {
                StateVectors::Factored {
                    cluster: Embedding::new(layout, "clusters.embedding", n_clusters, dim / 2),
                    state: Embedding::new(layout, "states.embedding", n_states, dim / 2),
                    nets: Box::new(USES.map(|(_, name)| {
                        Residual::new(layout, &format!("states.{name}"), dim, dim)
                    })),
                }
            }
            (_, Tying::Shared) => {
                StateVectors::Shared(Embedding::new(layout, "states.embedding", n_states, dim))
            }
            (_, Tying::Separate) => StateVectors::Separate(USES.map(|(_, name)| {
                Embedding::new(layout, &format!("states.{name}.embedding"), n_states, dim)
            })),
        }
    }

    /// Draws embeddings from N(0, deviation²) and initializes the layers of networks.
    pub(crate) fn init<T: Real>(&self, deviation: f64, weights: &mut [T], rng: &mut Rng) {
        let draw = |embedding: &Embedding, weights: &mut [T], rng: &mut Rng| {
            fill_normal(embedding.table().of_mut(weights), deviation, rng);
        };
        match self {
            StateVectors::Shared(embedding) => draw(embedding, weights, rng),
            StateVectors::Separate(all) => all.iter().for_each(|one| draw(one, weights, rng)),
            StateVectors::Factored { cluster, state, nets } => {
                draw(cluster, weights, rng);
                draw(state, weights, rng);
                nets.iter().for_each(|net| net.init(weights, rng));
            }
        }
    }

    /// Computes the vectors of the kept states and clears their derivatives.
    pub(crate) fn forward<T: Real>(
        &self,
        weights: &[T],
        kept: &KeptStates,
        dropout: Option<Dropout>,
        scratch: &mut StateScratch<T>,
        par: Par,
    ) {
        let n = kept.states.len();
        let StateScratch { vectors, joined, nets: net_scratch, .. } = scratch;
        vectors
            .resize_with(if matches!(self, StateVectors::Shared(_)) { 1 } else { 4 }, Buffer::new);
        match self {
            StateVectors::Shared(embedding) => {
                vectors[0].resize(n, embedding.dim());
                embedding.forward(weights, &kept.states, vectors[0].view_mut(), par);
            }
            StateVectors::Separate(all) => {
                for (one, vectors) in all.iter().zip(vectors) {
                    vectors.resize(n, one.dim());
                    one.forward(weights, &kept.states, vectors.view_mut(), par);
                }
            }
            StateVectors::Factored { cluster, state, nets } => {
                let half = state.dim();
                joined.resize(n, 2 * half);
                let (left, right) = joined.view_mut().split_at_col_mut(half);
                cluster.forward(weights, &self.clusters(kept), left, par);
                state.forward(weights, &kept.states, right, par);
                for (i, (net, vectors)) in nets.iter().zip(vectors).enumerate() {
                    vectors.resize(n, net.dim());
                    let dropout = dropout.map(|dropout| dropout.part(i as u64));
                    let out = vectors.view_mut();
                    net.forward(weights, joined.view(), &mut net_scratch[i], out, dropout, par);
                }
            }
        }
        let shape = |vectors: &Buffer<T>| (vectors.n_rows(), vectors.n_cols());
        let shapes: Vec<_> = scratch.vectors.iter().map(shape).collect();
        scratch.gradients.resize_with(shapes.len(), Buffer::new);
        for (gradient, (n_rows, n_cols)) in scratch.gradients.iter_mut().zip(shapes) {
            gradient.resize_zeroed(n_rows, n_cols);
        }
    }

    /// Backpropagates the derivatives in `scratch` and adds those of the weights to `gradient`.
    pub(crate) fn backward<T: Real>(
        &self,
        weights: &[T],
        kept: &KeptStates,
        scratch: &mut StateScratch<T>,
        gradient: &mut [T],
        par: Par,
    ) {
        let StateScratch { gradients, joined, d_joined, nets: net_scratch, .. } = scratch;
        match self {
            StateVectors::Shared(embedding) => {
                embedding.backward(&kept.states, gradients[0].view(), gradient, par);
            }
            StateVectors::Separate(all) => {
                for (one, derivatives) in all.iter().zip(gradients) {
                    one.backward(&kept.states, derivatives.view(), gradient, par);
                }
            }
            StateVectors::Factored { cluster, state, nets } => {
                let half = state.dim();
                d_joined.resize_zeroed(kept.states.len(), 2 * half);
                for ((net, scratch), d_out) in nets.iter().zip(net_scratch).zip(gradients) {
                    let d_x = Some(d_joined.view_mut());
                    net.backward(weights, joined.view(), scratch, d_out.view(), gradient, d_x, par);
                }
                let (left, right) = d_joined.view().split_at_col(half);
                cluster.backward(&self.clusters(kept), left, gradient, par);
                state.backward(&kept.states, right, gradient, par);
            }
        }
    }

    /// The cluster of every kept state.
    fn clusters(&self, kept: &KeptStates) -> Vec<u32> {
        (0..kept.states.len()).map(|i| (i / kept.k) as u32).collect()
    }
}

impl<T: Real> StateScratch<T> {
    /// The vectors for one use, one row per kept state.
    pub(crate) fn vectors(&self, of: Use) -> &Buffer<T> {
        &self.vectors[of as usize % self.vectors.len()]
    }

    /// The vectors for one use, and the sums of their derivatives.
    pub(crate) fn vectors_and_gradients(&mut self, of: Use) -> (&Buffer<T>, &mut Buffer<T>) {
        let at = of as usize % self.vectors.len();
        (&self.vectors[at], &mut self.gradients[at])
    }

    /// The sums of the derivatives for one use.
    pub(crate) fn gradients(&mut self, of: Use) -> &mut Buffer<T> {
        let n = self.gradients.len();
        &mut self.gradients[of as usize % n]
    }
}
