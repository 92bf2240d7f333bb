//! The weights of a chain.

/// A chain of at least one step with non-negative weights.
pub trait Chain<T> {
    /// Number of steps T.
    fn n_steps(&self) -> usize;

    /// Weight of each state of a step. The first step includes the initial probabilities.
    fn local(&self, step: usize) -> &[T];

    /// Row-major weights of pairs: rows are the states of `step`, columns those of the next step.
    fn pairs(&self, step: usize) -> &[T];
}

/// A chain whose weights are given by their logarithms; −∞ is a weight of zero.
pub trait LogChain {
    /// Number of steps T.
    fn n_steps(&self) -> usize;

    /// Logarithms of [`Chain::local`].
    fn log_local(&self, step: usize) -> Vec<f64>;

    /// Logarithms of [`Chain::pairs`].
    fn log_pairs(&self, step: usize) -> Vec<f64>;
}
