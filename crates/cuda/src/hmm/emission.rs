//! Emission probabilities: a softmax over the words of a cluster for each of its states.

use crate::blas::Precision;
use crate::device::{
    Array, CudaError, Device, View, at_least, exactly, for_each, grid, int, kernels, warps,
};
use crate::shape::Shape;
use std::ops::Range;

/// The order of the clusters in a step.
///
/// State z of cluster c is row `places[c] * k + z` of arrays with all states, for k states per cluster. A step leaves out the
/// clusters whose places are `n_used` or higher: it neither reads nor writes what belongs to their slots and states.
#[derive(Clone, Debug)]
pub struct ClusterOrder<'a> {
    /// The array that contains the places.
    pub ints: &'a Array<u32>,
    /// The range of the places, one per cluster.
    pub places: Range<usize>,
    /// Number of clusters that the step uses.
    pub n_used: usize,
}

/// Numbers of states of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterSize {
    /// Number of states that a step keeps.
    pub kept: usize,
    /// Number of all states of the cluster.
    pub own: usize,
}

/// Which slots belong to which cluster, and which states may emit them.
#[derive(Debug)]
pub struct Emissions {
    pub(super) n_slots: usize,
    pub(super) n_clusters: usize,
    /// First slot of each cluster, and the end of the last one.
    pub(super) begins: Array<u32>,
    cluster_of: Array<u32>,
    /// One bit per slot and state: whether the state may emit the slot. The row of a slot has `stride` words of 32
    /// bits. `stride` is 0 if every state may emit every slot of its cluster.
    pub(super) allowed: Array<u32>,
    pub(super) stride: usize,
    /// Cluster, first slot and number of slots of each part. A block of threads works on one part.
    parts: Array<u32>,
    n_parts: usize,
}

/// Largest number of slots of a part, and size of the tiles of states and dimensions. The kernels have the same constant.
const TILE: usize = 64;

impl Emissions {
    /// Clusters with these slots.
    pub fn new(device: &Device, clusters: &[Range<usize>]) -> Result<Emissions, CudaError> {
        let (mut begins, mut cluster_of, mut parts) = (vec![0], vec![], vec![]);
        for (cluster, slots) in clusters.iter().enumerate() {
            let n_before = cluster_of.len();
            assert!(
                slots.start == n_before,
                "the slots of cluster {cluster} must begin at {n_before}, got {slots:?}"
            );
            begins.push(slots.end as u32);
            cluster_of.extend(slots.clone().map(|_| cluster as u32));
            for first in slots.clone().step_by(TILE) {
                let n = TILE.min(slots.end - first);
                parts.push([cluster as u32, first as u32, n as u32]);
            }
        }
        Ok(Emissions {
            n_slots: cluster_of.len(),
            n_clusters: clusters.len(),
            begins: device.upload(&begins)?,
            cluster_of: device.upload(&cluster_of)?,
            allowed: device.zeros(1)?,
            stride: 0,
            n_parts: parts.len(),
            parts: device.upload(parts.as_flattened())?,
        })
    }

    /// Restricts the states that may emit each slot to `states(slot)`, out of n states.
    pub fn limit<'s>(
        &mut self,
        device: &Device,
        n: usize,
        states: impl Fn(usize) -> &'s [u32],
    ) -> Result<(), CudaError> {
        self.stride = n.div_ceil(32);
        let mut allowed = vec![0u32; self.n_slots * self.stride];
        for slot in 0..self.n_slots {
            for &state in states(slot) {
                assert!((state as usize) < n, "state {state} of slot {slot} is not below {n}");
                allowed[slot * self.stride + state as usize / 32] |= 1 << (state % 32);
            }
        }
        self.allowed = device.upload(&allowed)?;
        Ok(())
    }

    /// The arguments of kernels that stand for an order.
    #[track_caller]
    fn of_order<'a>(&self, order: &ClusterOrder<'a>) -> (View<'a, u32>, u32) {
        let ClusterOrder { ints, ref places, n_used } = *order;
        exactly("places", places.len(), self.n_clusters);
        (ints.at(places.clone()), int(n_used) as u32)
    }

    /// Writes the logits of the `kept` states, k per cluster, to `table`. They are read from a table in `weights` that has
    /// all states of a cluster for each slot.
    pub fn gather(
        &self,
        device: &Device,
        table: &mut Array<f32>,
        (weights, range): (&Array<f32>, Range<usize>),
        (kept, order): (&Array<u32>, &ClusterOrder<'_>),
        ClusterSize { kept: k, own: n_own }: ClusterSize,
    ) -> Result<(), CudaError> {
        self.check(table, k);
        exactly("weights", range.len(), self.n_slots * n_own);
        at_least("kept", kept.len(), order.n_used * k);
        let (places, n_used) = self.of_order(order);
        kernels::gather_emissions(
            device,
            for_each(self.n_slots * k),
            table.all_mut(),
            weights.at(range),
            kept.all(),
            self.cluster_of.all(),
            places,
            n_used,
            int(self.n_slots),
            int(k),
            int(n_own),
        )
    }

    /// Adds the derivatives with respect to logits that [`Emissions::gather`] wrote to those of the table that it read.
    pub fn add_to(
        &self,
        device: &Device,
        (gradient, range): (&mut Array<f32>, Range<usize>),
        derivatives: &Array<f32>,
        (kept, order): (&Array<u32>, &ClusterOrder<'_>),
        ClusterSize { kept: k, own: n_own }: ClusterSize,
    ) -> Result<(), CudaError> {
        self.check(derivatives, k);
        exactly("gradient", range.len(), self.n_slots * n_own);
        at_least("kept", kept.len(), order.n_used * k);
        let (places, n_used) = self.of_order(order);
        kernels::add_to_emissions(
            device,
            for_each(self.n_slots * k),
            gradient.at_mut(range),
            derivatives.all(),
            kept.all(),
            self.cluster_of.all(),
            places,
            n_used,
            int(self.n_slots),
            int(k),
            int(n_own),
        )
    }

    /// Logits of the `kept` states, k per cluster ─▶ b. It is 0 where a state may not emit a slot.
    pub fn normalize(
        &self,
        device: &Device,
        table: &mut Array<f32>,
        (kept, order): (&Array<u32>, &ClusterOrder<'_>),
        k: usize,
    ) -> Result<(), CudaError> {
        self.check(table, k);
        at_least("kept", kept.len(), order.n_used * k);
        if self.stride > 0 {
            let (places, n_used) = self.of_order(order);
            kernels::mask_emissions(
                device,
                for_each(self.n_slots * k),
                table.all_mut(),
                self.allowed.all(),
                int(self.stride),
                kept.all(),
                self.cluster_of.all(),
                places,
                n_used,
                int(self.n_slots),
                int(k),
            )?;
        }
        let config = grid((self.n_clusters, k.div_ceil(32), 1), (32, 32));
        let (begins, (places, n_used)) = (self.begins.all(), self.of_order(order));
        kernels::emission_softmax(device, config, table.all_mut(), begins, places, n_used, int(k))
    }

    /// Writes the logits u_x · f_z + bias_x of each slot x and the k states z of its cluster to `table`.
    ///
    /// The vectors u and the biases are ranges of `weights`. The vectors of the k states of a cluster are rows of `dim`
    /// numbers.
    pub fn logits(
        &self,
        device: &Device,
        table: &mut Array<f32>,
        (weights, words, bias): (&Array<f32>, Range<usize>, Range<usize>),
        (states, order): (&Array<f32>, &ClusterOrder<'_>),
        Shape { rows: k, columns: dim }: Shape,
        precision: Precision,
    ) -> Result<(), CudaError> {
        self.check(table, k);
        exactly("words", words.len(), self.n_slots * dim);
        exactly("bias", bias.len(), self.n_slots);
        at_least("states", states.len(), order.n_used * k * dim);
        let (places, n_used) = self.of_order(order);
        kernels::emission_logits(
            device,
            grid((self.n_parts, k.div_ceil(TILE), 1), (16, 16)),
            table.all_mut(),
            self.parts.all(),
            places,
            n_used,
            weights.at(words),
            weights.at(bias),
            states.all(),
            int(k),
            int(dim),
            is_fast(precision),
        )
    }

    /// b ─▶ counts − visits ∘ b, the derivatives with respect to the logits. `count_of` has the row of each slot in
    /// `counts`, or `u32::MAX`; `visits` has the expected number of visits of each state.
    pub fn logit_gradient(
        &self,
        device: &Device,
        table: &mut Array<f32>,
        (counts, (count_of, range)): (&Array<f32>, (&Array<u32>, Range<usize>)),
        (visits, order): (&Array<f32>, &ClusterOrder<'_>),
        k: usize,
    ) -> Result<(), CudaError> {
        self.check(table, k);
        at_least("count_of", range.len(), self.n_slots);
        at_least("visits", visits.len(), order.n_used * k);
        let (places, n_used) = self.of_order(order);
        kernels::emission_gradient(
            device,
            for_each(self.n_slots * k),
            table.all_mut(),
            counts.all(),
            count_of.at(range),
            visits.all(),
            self.cluster_of.all(),
            places,
            n_used,
            int(self.n_slots),
            int(k),
        )
    }

    /// Derivatives with respect to logits ─▶ derivatives of word vectors and biases, which are added to `gradient`, and
    /// of the state vectors of the clusters in use, which overwrite `d_states`.
    #[expect(clippy::too_many_arguments, reason = "inputs, outputs and their sizes")]
    pub fn backward(
        &self,
        device: &Device,
        (derivatives, order): (&Array<f32>, &ClusterOrder<'_>),
        (weights, states): (&Array<f32>, &Array<f32>),
        (gradient, words, bias): (&mut Array<f32>, Range<usize>, Range<usize>),
        d_states: &mut Array<f32>,
        Shape { rows: k, columns: dim }: Shape,
        precision: Precision,
    ) -> Result<(), CudaError> {
        self.check(derivatives, k);
        exactly("words", words.len(), self.n_slots * dim);
        exactly("bias", bias.len(), self.n_slots);
        at_least("states", states.len(), order.n_used * k * dim);
        at_least("d_states", d_states.len(), order.n_used * k * dim);
        let n_tiles = |n: usize| n.div_ceil(TILE);
        let (places, n_used) = self.of_order(order);
        kernels::emission_to_words(
            device,
            grid((self.n_parts, n_tiles(dim), 1), (16, 16)),
            gradient.at_mut(words.clone()),
            self.parts.all(),
            places,
            n_used,
            derivatives.all(),
            states.all(),
            int(k),
            int(dim),
            is_fast(precision),
        )?;
        kernels::emission_to_states(
            device,
            grid((self.n_clusters, n_tiles(k), n_tiles(dim)), (16, 16)),
            d_states.all_mut(),
            self.begins.all(),
            self.of_order(order).0,
            n_used,
            derivatives.all(),
            weights.at(words),
            int(k),
            int(dim),
            is_fast(precision),
        )?;
        let (config, d_bias) = (warps(self.n_slots), gradient.at_mut(bias));
        kernels::emission_to_bias(
            device,
            config,
            d_bias,
            derivatives.all(),
            self.cluster_of.all(),
            self.of_order(order).0,
            n_used,
            int(self.n_slots),
            int(k),
        )
    }

    /// Panics unless `table` has k numbers per slot.
    #[track_caller]
    fn check(&self, table: &Array<f32>, k: usize) {
        at_least("table", table.len(), self.n_slots * k);
    }
}

/// Whether kernels use tensor cores.
fn is_fast(precision: Precision) -> i32 {
    i32::from(precision == Precision::Fast)
}
