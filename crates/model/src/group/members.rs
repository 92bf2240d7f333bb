use std::fmt::Debug;
use std::io;
use std::ops::Range;

/// Processes that train one model together.
pub trait Group: Debug + Sync {
    /// The number of this process, counted from 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// Replaces values by their sums over all processes, which get the same bits. All processes must call it with the same
    /// number of values, as often as each other.
    fn sum(&self, values: &mut [f32]) -> io::Result<()>;
}

/// The share of this process of `n` things in order.
pub fn share(group: &dyn Group, n: usize) -> Range<usize> {
    let (rank, size) = (group.rank(), group.size());
    n * rank / size..n * (rank + 1) / size
}
