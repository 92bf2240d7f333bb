//! The state of the LDA samplers.

use crate::counts::TypeCounts;
use crate::documents::TypedDocuments;
use crate::draw::padded;

/// The topics of all tokens and their counts, in the layout that sampling needs.
pub(crate) struct LdaState {
    pub(crate) topics: Vec<u16>,
    pub(crate) alpha: Vec<f64>,
    pub(super) n_types: usize,
    pub(super) stride: usize,
    /// n_wk, padded. `f32` represents integers up to 2²⁴ exactly.
    pub(super) rows: Vec<f32>,
    /// N_k.
    pub(super) totals: Vec<u32>,
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

    /// Sets the number of types V in V β, if not all rows are types.
    pub(crate) fn set_n_types(&mut self, n_types: usize) {
        self.n_types = n_types;
    }

    /// Counts of each type in each topic.
    pub(crate) fn counts(&self) -> TypeCounts {
        let n_topics = self.alpha.len();
        let rows = self.rows.chunks_exact(self.stride);
        let values = rows.flat_map(|row| row[..n_topics].iter().map(|&n| n as u32)).collect();
        TypeCounts::from_values(n_topics, values)
    }
}
