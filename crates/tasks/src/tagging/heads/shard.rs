//! Loss and gradient of a shard of the training text.

use latens_math::chain::Smoothed;

/// Loss and gradient of one shard.
pub(crate) struct Shard<T> {
    /// Σ −ln p(tags | words) over the sentences so far.
    pub(crate) loss: f64,
    /// Gradient with respect to the weights of the head.
    pub(crate) gradient: Vec<f64>,
    pub(crate) chain: ChainScratch<T>,
}

/// Scratch memory of a chain head.
#[derive(Default)]
pub(crate) struct ChainScratch<T> {
    /// Exponentials of the scores of a sentence.
    pub(crate) local: Vec<T>,
    pub(crate) smoothed: Smoothed<T>,
    /// Factors of the posteriors of transitions, for all sentences so far: one row of each per transition.
    pub(crate) left: Vec<T>,
    pub(crate) right: Vec<T>,
}
