//! A set of states: a whole cluster or a list.

use std::borrow::Cow;

/// Some states: all of a cluster, or those of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateSet<'a> {
    Cluster(usize),
    List(&'a [u32]),
}

impl<'a> StateSet<'a> {
    /// The number of states, with `k` states per cluster.
    pub(crate) fn len(self, k: usize) -> usize {
        match self {
            StateSet::Cluster(_) => k,
            StateSet::List(list) => list.len(),
        }
    }

    /// The `i`th state.
    pub(crate) fn state(self, i: usize, k: usize) -> u32 {
        match self {
            StateSet::Cluster(cluster) => (cluster * k + i) as u32,
            StateSet::List(list) => list[i],
        }
    }

    /// All states.
    pub(crate) fn list(self, k: usize) -> Cow<'a, [u32]> {
        match self {
            StateSet::Cluster(cluster) => {
                Cow::Owned(((cluster * k) as u32..((cluster + 1) * k) as u32).collect())
            }
            StateSet::List(list) => Cow::Borrowed(list),
        }
    }
}
