/// The Dirichlet priors of a sweep.
pub(super) struct Prior<'a> {
    /// α_k, one per topic.
    pub(super) alpha: &'a [f64],
    pub(super) beta: f64,
    /// Number of types, V.
    pub(super) n_types: usize,
}

impl Prior<'_> {
    /// V β.
    pub(super) fn all_beta(&self) -> f64 {
        self.n_types as f64 * self.beta
    }
}
