//! The inputs of training.

use crate::inference::convergence::Stop;
use crate::inference::smoother::Smoother;
use crate::params::FhmmParams;
use crate::shape::Shape;
use crate::word_rows::{MISSING, WordRows};
use latens_corpus::{Sentences, WordId};
use latens_model::Valid;

/// Everything that does not change during training.
pub(crate) struct Task<'a> {
    pub(crate) params: &'a Valid<FhmmParams>,
    pub(crate) shape: Shape,
    pub(crate) rows: &'a WordRows,
    /// Relative frequency of each row among the tokens that have one.
    pub(crate) unigrams: Vec<f64>,
    /// b, the base score of each row.
    pub(crate) base: Vec<f64>,
    pub(crate) train: &'a Sentences,
    pub(crate) valid: Option<&'a Sentences>,
    pub(crate) fingerprint: u64,
    pub(crate) kind: &'static str,
}

impl Task<'_> {
    /// Maps the words of sentences to rows.
    pub(crate) fn rows_of<'s>(
        &self,
        sentences: impl Iterator<Item = &'s [WordId]>,
    ) -> Vec<Vec<u32>> {
        sentences.map(|s| s.iter().map(|&word| self.rows.row(word)).collect()).collect()
    }

    /// Bound on the log-likelihood of a text, in nats per token that is not missing.
    pub(crate) fn bound(&self, smoother: &Smoother<f32>, text: &Sentences) -> f64 {
        /// Number of sentences mapped to rows at a time, to limit memory.
        const SENTENCES: usize = 1000;
        let (mut sum, mut n_tokens) = (0.0, 0);
        for begin in (0..text.len()).step_by(SENTENCES) {
            let end = (begin + SENTENCES).min(text.len());
            let sentences = self.rows_of((begin..end).map(|idx| text.get(idx)));
            n_tokens += sentences.iter().flatten().filter(|&&row| row != MISSING).count();
            let sentences: Vec<&[u32]> = sentences.iter().map(Vec::as_slice).collect();
            sum += smoother.bounds(&sentences, Stop::accurate());
        }
        sum / n_tokens.max(1) as f64
    }
}
