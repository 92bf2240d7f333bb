//! A batch plan on the device.

use crate::cuda::plan::batch_plan::{BatchPlan, GroupPlan};
use crate::cuda::plan::listed_plan::ListedPlan;
use latens_cuda::{
    Array, Blocks, CudaError, Device, Groups, Listed, Precision, Sequences, StateTokens, Steps,
};
use std::ops::Range;

/// A batch plan on the device.
pub(crate) struct DevicePlan<'a> {
    pub(crate) plan: &'a BatchPlan,
    pub(crate) ints: &'a Array<u32>,
    /// Tokens with emission probabilities of their own, and these probabilities: one per state of a token.
    pub(crate) own_emissions: Vec<(usize, Vec<f32>)>,
}

impl<'a> DevicePlan<'a> {
    /// Copies a plan to the device, into an array that grows as needed.
    pub(crate) fn new(
        device: &Device,
        plan: &'a BatchPlan,
        ints: &'a mut Array<u32>,
    ) -> Result<DevicePlan<'a>, CudaError> {
        device.reserve(ints, plan.ints().len().next_power_of_two())?;
        device.write(plan.ints(), ints)?;
        Ok(DevicePlan { plan, ints, own_emissions: Vec::new() })
    }

    /// The steps of a model with a single cluster.
    pub(crate) fn steps(&self, k: usize, precision: Precision) -> Option<Steps<'a>> {
        let sizes = &self.plan.steps[..];
        (!sizes.is_empty()).then_some(Steps { sizes, k, precision })
    }

    /// The state lists, if the model has short ones.
    pub(crate) fn listed(&self) -> Option<Listed<'a>> {
        let ListedPlan { states, k, .. } = self.plan.listed.as_ref()?;
        Some(Listed { ints: self.ints, states: states.clone(), k: *k })
    }

    /// The tokens of each state, for a model with short state lists.
    pub(crate) fn state_tokens(&self) -> Option<StateTokens<'a>> {
        let ListedPlan { begins, entries, ends, .. } = self.plan.listed.clone()?;
        Some(StateTokens { ints: self.ints, begins, entries, ends })
    }

    /// The token before each token from the second step on.
    pub(crate) fn previous(&self) -> (&'a Array<u32>, Range<usize>) {
        (self.ints, self.plan.previous.clone())
    }

    /// The tokens of all sentences.
    pub(crate) fn sequences(&self) -> Sequences<'a> {
        let BatchPlan { offsets, clusters, slots, block_of_pair, .. } = self.plan;
        Sequences {
            ints: self.ints,
            offsets: offsets.clone(),
            clusters: clusters.clone(),
            slots: slots.clone(),
            block_of_pair: block_of_pair.clone(),
        }
    }

    /// Some blocks.
    pub(crate) fn blocks(&self, which: Range<usize>) -> Blocks<'a> {
        let part = |all: &Range<usize>| all.start + which.start..all.start + which.end;
        Blocks { ints: self.ints, from: part(&self.plan.from), to: part(&self.plan.to) }
    }

    /// Tokens by the block of the transition into them.
    pub(crate) fn pairs(&self) -> Groups<'a> {
        self.groups(&self.plan.pairs)
    }

    /// First tokens by cluster.
    pub(crate) fn starts(&self) -> Groups<'a> {
        self.groups(&self.plan.starts)
    }

    /// All but the last tokens by cluster.
    pub(crate) fn departures(&self) -> Groups<'a> {
        self.groups(&self.plan.departures)
    }

    /// All tokens by cluster.
    pub(crate) fn visits(&self) -> Groups<'a> {
        self.groups(&self.plan.visits)
    }

    /// All tokens by slot.
    pub(crate) fn emitted(&self) -> Groups<'a> {
        self.groups(&self.plan.emitted)
    }

    fn groups(&self, groups: &GroupPlan) -> Groups<'a> {
        let GroupPlan { rows, begins, tokens } = groups.clone();
        Groups { ints: self.ints, rows, begins, tokens, n_tokens: self.plan.n_tokens() }
    }
}
