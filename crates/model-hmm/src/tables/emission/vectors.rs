//! The vectors that emission probabilities are computed from.

/// The smallest probability of a word that a state may emit. A finite logit never means an impossible word, even if
/// its exponential underflows in single precision.
pub(crate) const SMALLEST_PROBABILITY: f64 = 1e-37;

/// Word vectors, word biases and the vectors of the kept states.
#[derive(Clone, Copy)]
pub(crate) struct Vectors<'a, T> {
    /// U: one row of `dim` numbers per slot.
    pub(crate) words: &'a [T],
    /// One bias per slot.
    pub(crate) bias: &'a [T],
    /// f: one row of `dim` numbers per kept state.
    pub(crate) states: &'a [T],
    pub(crate) dim: usize,
}

impl<'a, T> Vectors<'a, T> {
    /// U_x of the word of a slot.
    #[inline(always)]
    pub(crate) fn word(&self, slot: usize) -> &'a [T] {
        &self.words[slot * self.dim..(slot + 1) * self.dim]
    }

    /// f_z of the `i`th kept state.
    #[inline(always)]
    pub(crate) fn state(&self, i: usize) -> &'a [T] {
        &self.states[i * self.dim..(i + 1) * self.dim]
    }
}

/// The derivatives with respect to [`Vectors`].
pub(crate) struct VectorGradients<'a, T> {
    /// Added to.
    pub(crate) words: &'a mut [T],
    /// Added to.
    pub(crate) bias: &'a mut [T],
    /// Overwritten.
    pub(crate) states: &'a mut [T],
}
