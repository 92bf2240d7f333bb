//! Emissions of a softmax over the words of a cluster.

use crate::device::{for_each, grid, launch};
use crate::layers::warps;
use crate::{Array, CudaError, Device, Precision};
use cudarc::driver::{DeviceRepr, PushKernelArg};
use std::ops::Range;

/// Some slots of one cluster.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Part {
    /// The cluster.
    pub cluster: u32,
    /// The first slot.
    pub first: u32,
    /// How many slots; at most [`Emissions::PART`].
    pub n: u32,
}

// SAFETY: it is three numbers, in the order of the kernels' struct of this name.
unsafe impl DeviceRepr for Part {}

/// Which slots belong to which cluster, and which of its states may emit them.
#[derive(Debug)]
pub struct Emissions {
    pub(crate) n_slots: usize,
    pub(crate) n_clusters: usize,
    /// Where each cluster begins among the slots, and where the last one ends.
    pub(crate) begins: Array<u32>,
    cluster_of: Array<u32>,
    /// A row of bits for each slot, of `stride` words each: the states that may emit it. `stride` is 0 if all may.
    pub(crate) allowed: Array<u32>,
    pub(crate) stride: usize,
    parts: Array<Part>,
    n_parts: usize,
}

impl Emissions {
    /// The most slots that one block of threads works on.
    pub const PART: usize = 64;

    /// Clusters with these slots each.
    pub fn new(device: &Device, clusters: &[Range<usize>]) -> Result<Emissions, CudaError> {
        let (mut begins, mut cluster_of, mut parts) = (vec![0], vec![], vec![]);
        for (cluster, slots) in clusters.iter().enumerate() {
            assert_eq!(slots.start, cluster_of.len(), "clusters side by side");
            begins.push(slots.end as u32);
            cluster_of.extend(slots.clone().map(|_| cluster as u32));
            for first in slots.clone().step_by(Emissions::PART) {
                let n = Emissions::PART.min(slots.end - first) as u32;
                parts.push(Part { cluster: cluster as u32, first: first as u32, n });
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
            parts: device.upload(&parts)?,
        })
    }

    /// Lets only some of n states emit each slot: those of `states(slot)`.
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
                allowed[slot * self.stride + state as usize / 32] |= 1 << (state % 32);
            }
        }
        self.allowed = device.upload(&allowed)?;
        Ok(())
    }

    /// Overwrites `table` with the logits of states that take part, `kept`, k of each cluster: of a table in `weights` that
    /// has `n_own` for each slot.
    pub fn gather(
        &self,
        device: &Device,
        table: &mut Array<f32>,
        weights: (&Array<f32>, Range<usize>),
        kept: &Array<u32>,
        (k, n_own): (usize, usize),
    ) -> Result<(), CudaError> {
        self.check(table, kept, weights.1.len(), (k, n_own));
        let (config, weights) = (for_each(self.n_slots * k), weights.0.at(weights.1));
        let (n_slots, k, n_own) = (self.n_slots as i32, k as i32, n_own as i32);
        let (cluster_of, out, kept) = (&self.cluster_of.0, &mut table.0, &kept.0);
        launch!(
            device,
            "gather_emissions",
            config,
            out,
            &weights,
            kept,
            cluster_of,
            &n_slots,
            &k,
            &n_own
        )
    }

    /// Adds derivatives of such logits to those of the table.
    pub fn add_to(
        &self,
        device: &Device,
        gradient: (&mut Array<f32>, Range<usize>),
        derivatives: &Array<f32>,
        kept: &Array<u32>,
        (k, n_own): (usize, usize),
    ) -> Result<(), CudaError> {
        self.check(derivatives, kept, gradient.1.len(), (k, n_own));
        let (config, mut out) = (for_each(self.n_slots * k), gradient.0.at_mut(gradient.1));
        let (n_slots, k, n_own) = (self.n_slots as i32, k as i32, n_own as i32);
        let (cluster_of, kept) = (&self.cluster_of.0, &kept.0);
        launch!(
            device,
            "add_to_emissions",
            config,
            &mut out,
            &derivatives.0,
            kept,
            cluster_of,
            &n_slots,
            &k,
            &n_own
        )
    }

    fn check(
        &self,
        table: &Array<f32>,
        kept: &Array<u32>,
        n_weights: usize,
        (k, n_own): (usize, usize),
    ) {
        assert!(self.n_slots * k <= table.len() && n_weights == self.n_slots * n_own, "all slots");
        assert!(self.n_clusters * k <= kept.len(), "all states");
    }

    /// Logits of the states that take part ─▶ b, which is 0 where a state may not emit a slot.
    pub fn normalise(
        &self,
        device: &Device,
        table: &mut Array<f32>,
        kept: &Array<u32>,
        k: usize,
    ) -> Result<(), CudaError> {
        assert!(self.n_slots * k <= table.len(), "all slots");
        assert!(self.n_clusters * k <= kept.len(), "all states");
        let k_of = k as i32;
        if self.stride > 0 {
            let config = for_each(self.n_slots * k);
            let (n_slots, stride) = (self.n_slots as i32, self.stride as i32);
            let (cluster_of, allowed, kept) = (&self.cluster_of.0, &self.allowed.0, &kept.0);
            let out = &mut table.0;
            launch!(
                device,
                "mask_emissions",
                config,
                out,
                allowed,
                &stride,
                kept,
                cluster_of,
                &n_slots,
                &k_of
            )?;
        }
        let config = grid((self.n_clusters, k.div_ceil(32), 1), (32, 32));
        launch!(device, "emission_softmax", config, &mut table.0, &self.begins.0, &k_of)
    }

    /// Overwrites `table` with logits: for each slot the k states of its cluster, of words' vectors and biases in
    /// `weights`, and states' vectors of `dim` numbers.
    pub fn logits(
        &self,
        device: &Device,
        table: &mut Array<f32>,
        (weights, words, bias): (&Array<f32>, Range<usize>, Range<usize>),
        states: &Array<f32>,
        (k, dim): (usize, usize),
        precision: Precision,
    ) -> Result<(), CudaError> {
        assert!(self.n_slots * k <= table.len() && words.len() == self.n_slots * dim, "all slots");
        assert!(self.n_clusters * k * dim <= states.len(), "all states");
        assert_eq!(bias.len(), self.n_slots, "a bias for each slot");
        let (words, bias) = (weights.at(words), weights.at(bias));
        let config = grid((self.n_parts, k.div_ceil(Emissions::PART), 1), (16, 16));
        let (k_of, dim, is_fast) = (k as i32, dim as i32, is_fast(precision));
        launch!(
            device,
            "emission_logits",
            config,
            &mut table.0,
            &self.parts.0,
            &words,
            &bias,
            &states.0,
            &k_of,
            &dim,
            &is_fast
        )
    }

    /// b ─▶ counts − visits ∘ b, where `count_of` has the row of counts of each slot or `u32::MAX`, and `visits` how often
    /// each state was visited.
    pub fn logit_gradient(
        &self,
        device: &Device,
        table: &mut Array<f32>,
        (counts, count_of): (&Array<f32>, (&Array<u32>, Range<usize>)),
        visits: &Array<f32>,
        k: usize,
    ) -> Result<(), CudaError> {
        assert!(self.n_slots * k <= table.len() && self.n_slots <= count_of.1.len(), "all slots");
        assert!(self.n_clusters * k <= visits.len(), "all states");
        let count_of = count_of.0.at(count_of.1);
        let config = for_each(self.n_slots * k);
        let (n_slots, k) = (self.n_slots as i32, k as i32);
        launch!(
            device,
            "emission_gradient",
            config,
            &mut table.0,
            &counts.0,
            &count_of,
            &visits.0,
            &self.cluster_of.0,
            &n_slots,
            &k
        )
    }

    /// Takes derivatives by logits to words' vectors and biases (added to `gradient`) and to states' vectors
    /// (overwritten).
    #[expect(clippy::too_many_arguments, reason = "what goes in, what comes out, and their sizes")]
    pub fn backward(
        &self,
        device: &Device,
        derivatives: &Array<f32>,
        (weights, states): (&Array<f32>, &Array<f32>),
        (gradient, words, bias): (&mut Array<f32>, Range<usize>, Range<usize>),
        d_states: &mut Array<f32>,
        (k, dim): (usize, usize),
        precision: Precision,
    ) -> Result<(), CudaError> {
        assert!(self.n_slots * k <= derivatives.len() && bias.len() == self.n_slots, "all slots");
        assert!(self.n_clusters * k * dim <= d_states.len().min(states.len()), "all states");
        assert_eq!(words.len(), self.n_slots * dim, "a vector for each slot");
        let vectors = weights.at(words.clone());
        let (k_of, dim_of, n_slots) = (k as i32, dim as i32, self.n_slots as i32);
        let is_fast = is_fast(precision);
        let tiles = |n: usize| n.div_ceil(Emissions::PART);
        let config = grid((self.n_parts, tiles(dim), 1), (16, 16));
        let mut d_words = gradient.at_mut(words);
        launch!(
            device,
            "emission_to_words",
            config,
            &mut d_words,
            &self.parts.0,
            &derivatives.0,
            &states.0,
            &k_of,
            &dim_of,
            &is_fast
        )?;
        let config = grid((self.n_clusters, tiles(k), tiles(dim)), (16, 16));
        launch!(
            device,
            "emission_to_states",
            config,
            &mut d_states.0,
            &self.begins.0,
            &derivatives.0,
            &vectors,
            &k_of,
            &dim_of,
            &is_fast
        )?;
        let mut d_bias = gradient.at_mut(bias);
        let config = warps(self.n_slots);
        launch!(device, "emission_to_bias", config, &mut d_bias, &derivatives.0, &n_slots, &k_of)
    }
}

/// Whether tensor cores make the products, for kernels.
fn is_fast(precision: Precision) -> i32 {
    i32::from(precision == Precision::Fast)
}
