//! A plan whose numbers lie on the device.

use crate::cuda::plan::batch_plan::{GroupPlan, Plan};
use crate::cuda::plan::listed_plan::ListedPlan;
use latens_cuda::{
    Array, Blocks, CudaError, Device, Groups, Listed, Precision, Sequences, StateTokens, Steps,
};
use std::ops::Range;

/// A plan on the device.
pub(crate) struct Planned<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) ints: &'a Array<u32>,
}

impl<'a> Planned<'a> {
    /// Copies a plan to the device, into an array that grows as needed.
    pub(crate) fn new(
        device: &Device,
        plan: &'a Plan,
        ints: &'a mut Array<u32>,
    ) -> Result<Planned<'a>, CudaError> {
        device.reserve(ints, plan.ints().len().next_power_of_two())?;
        device.write(plan.ints(), ints)?;
        Ok(Planned { plan, ints })
    }

    /// The steps of tokens, if they come in such.
    pub(crate) fn steps(&self, k: usize, precision: Precision) -> Option<Steps<'a>> {
        let sizes = &self.plan.steps[..];
        (!sizes.is_empty()).then_some(Steps { sizes, k, precision })
    }

    /// Lists of states, if words have such.
    pub(crate) fn listed(&self) -> Option<Listed<'a>> {
        let ListedPlan { states, k, .. } = self.plan.listed.as_ref()?;
        Some(Listed { ints: self.ints, states: states.clone(), k: *k })
    }

    /// The tokens of each state of lists.
    pub(crate) fn state_tokens(&self) -> Option<StateTokens<'a>> {
        let ListedPlan { begins, entries, ends, .. } = self.plan.listed.clone()?;
        Some(StateTokens { ints: self.ints, begins, entries, ends })
    }

    pub(crate) fn previous(&self) -> (&'a Array<u32>, Range<usize>) {
        (self.ints, self.plan.previous.clone())
    }

    pub(crate) fn sequences(&self) -> Sequences<'a> {
        let Plan { offsets, clusters, slots, block_of_pair, .. } = self.plan;
        Sequences {
            ints: self.ints,
            offsets: offsets.clone(),
            clusters: clusters.clone(),
            slots: slots.clone(),
            block_of_pair: block_of_pair.clone(),
        }
    }

    /// Some of the blocks.
    pub(crate) fn blocks(&self, which: Range<usize>) -> Blocks<'a> {
        let part = |all: &Range<usize>| all.start + which.start..all.start + which.end;
        Blocks { ints: self.ints, from: part(&self.plan.from), to: part(&self.plan.to) }
    }

    pub(crate) fn pairs(&self) -> Groups<'a> {
        self.groups(&self.plan.pairs)
    }

    pub(crate) fn starts(&self) -> Groups<'a> {
        self.groups(&self.plan.starts)
    }

    pub(crate) fn left(&self) -> Groups<'a> {
        self.groups(&self.plan.left)
    }

    pub(crate) fn visits(&self) -> Groups<'a> {
        self.groups(&self.plan.visits)
    }

    pub(crate) fn emitted(&self) -> Groups<'a> {
        self.groups(&self.plan.emitted)
    }

    fn groups(&self, groups: &GroupPlan) -> Groups<'a> {
        let GroupPlan { rows, begins, tokens } = groups.clone();
        Groups { ints: self.ints, rows, begins, tokens, n_tokens: self.plan.n_tokens() }
    }
}
