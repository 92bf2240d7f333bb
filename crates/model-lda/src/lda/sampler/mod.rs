//! Collapsed Gibbs sampling of LDA: p(k) ∝ (n_dk + α_k) (n_wk + β) / (N_k + V β), all without the token itself.

mod dense;
mod sparse;

use super::params::LdaSampler;
use crate::counts::TypeCounts;
use crate::documents::TypedDocuments;
use crate::draw::padded;
use sparse::Occurrences;

/// What is sampled, in the form in which it is read fastest.
pub(crate) struct LdaState {
    pub(crate) topics: Vec<u16>,
    pub(crate) alpha: Vec<f64>,
    n_types: usize,
    stride: usize,
    /// n_wk, padded: whole numbers, which `f32` has up to 2²⁴.
    rows: Vec<f32>,
    /// N_k.
    totals: Vec<u32>,
}

impl LdaState {
    pub(crate) fn new(
        documents: &TypedDocuments,
        topics: Vec<u16>,
        n_types: usize,
        alpha: Vec<f64>,
    ) -> LdaState {
        let stride = padded(alpha.len());
        let (mut rows, mut totals) = (vec![0.0; n_types * stride], vec![0; stride]);
        for (&t, &k) in documents.types.iter().zip(&topics) {
            rows[t as usize * stride + usize::from(k)] += 1.0;
            totals[usize::from(k)] += 1;
        }
        LdaState { topics, alpha, n_types, stride, rows, totals }
    }

    /// How many types share the probability of a topic, if not all rows are types.
    pub(crate) fn set_n_types(&mut self, n_types: usize) {
        self.n_types = n_types;
    }

    /// How often each type is in each topic.
    pub(crate) fn counts(&self) -> TypeCounts {
        let n_topics = self.alpha.len();
        let rows = self.rows.chunks_exact(self.stride);
        let values = rows.flat_map(|row| row[..n_topics].iter().map(|&n| n as u32)).collect();
        TypeCounts::from_values(n_topics, values)
    }
}

/// A way to sample, with what it keeps between sweeps: nothing that the documents do not say.
pub(crate) enum Sampling {
    Dense,
    Sparse(Occurrences),
}

impl Sampling {
    /// `sampler` is not [`LdaSampler::Auto`].
    pub(crate) fn new(sampler: LdaSampler, documents: &TypedDocuments, n_rows: usize) -> Sampling {
        match sampler {
            LdaSampler::Sparse => Sampling::Sparse(Occurrences::new(documents, n_rows)),
            LdaSampler::Dense => Sampling::Dense,
            LdaSampler::Auto => unreachable!("a sampler was chosen before"),
        }
    }

    pub(crate) fn sampler(&self) -> LdaSampler {
        match self {
            Sampling::Dense => LdaSampler::Dense,
            Sampling::Sparse(_) => LdaSampler::Sparse,
        }
    }

    /// Samples every token once; tells how many changed.
    pub(crate) fn sweep(
        &self,
        state: &mut LdaState,
        documents: &TypedDocuments,
        beta: f64,
        seed: u64,
    ) -> u64 {
        match self {
            Sampling::Dense => dense::sweep(state, documents, beta, seed),
            Sampling::Sparse(occurrences) => {
                sparse::sweep(state, documents, occurrences, beta, seed)
            }
        }
    }
}
