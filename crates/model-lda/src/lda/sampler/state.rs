//! The state of the LDA samplers.

use crate::counts::TypeCounts;
use crate::documents::TypedDocuments;
use crate::draw::padded;
use crate::lda::sampler::rows::Rows;

/// The topics of all tokens and their counts, in the layout that sampling needs.
pub(crate) struct LdaState {
    pub(crate) topics: Vec<u16>,
    pub(crate) alpha: Vec<f64>,
    pub(super) n_types: usize,
    pub(super) stride: usize,
    /// n_wk, padded.
    pub(super) rows: Rows,
    /// N_k, padded. `f64` represents integers up to 2⁵³ exactly, and converts to `f32` in vectors.
    pub(super) totals: Vec<f64>,
}

impl LdaState {
    pub(crate) fn new(
        documents: &TypedDocuments,
        topics: Vec<u16>,
        n_types: usize,
        alpha: Vec<f64>,
    ) -> LdaState {
        let stride = padded(alpha.len());
        let (mut rows, mut totals) = (Rows::new(n_types * stride), vec![0.0; stride]);
        for (&t, &k) in documents.types.iter().zip(&topics) {
            rows.add(t as usize * stride + usize::from(k));
            totals[usize::from(k)] += 1.0;
        }
        LdaState { topics, alpha, n_types, stride, rows, totals }
    }

    /// Sets the number of types V in V β, if not all rows are types.
    pub(crate) fn set_n_types(&mut self, n_types: usize) {
        self.n_types = n_types;
    }

    /// Counts of each type in each topic.
    pub(crate) fn counts(&self) -> TypeCounts {
        let n_topics = self.alpha.len();
        let starts = (0..self.rows.values().len()).step_by(self.stride);
        let positions = starts.flat_map(|start| start..start + n_topics);
        TypeCounts::from_values(n_topics, positions.map(|at| self.rows.count(at)).collect())
    }
}
