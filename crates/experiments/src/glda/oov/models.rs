//! Gaussian LDA and LDA fitted to the same corpus, and their inference.

use crate::corpora::topics::{Document, encode, encode_with, vectors};
use crate::experiment::Effort;
use anyhow::Result;
use latens::corpus::Lexicon;
use latens::lda::{Glda, GldaInputs, InferenceParams, Inferred, Lda, MoreVectors, Topics};
use latens::model::{Fit, Params, WordVectors};
use std::path::Path;

const N_TOPICS: usize = 50;
const DIM: usize = 50;

/// Gaussian LDA and LDA, with the vectors of all words.
pub(super) struct Models {
    /// Lexicon of the words that have vectors.
    pub(super) own: Lexicon,
    pub(super) vectors: WordVectors,
    lexicon: Lexicon,
    gaussian: Glda,
    lda: Lda,
}

/// How the topic proportions of documents are inferred.
#[derive(Clone, Copy)]
pub(super) enum Inference {
    /// Gaussian LDA.
    Gaussian(Topics),
    /// LDA with an infinite vocabulary, in batches of this many documents.
    InfiniteVocabulary(usize),
    /// LDA without unknown words.
    Lda,
}

/// The rows of the tables, with batches of 1, `middle` and all documents.
///
/// `infvoc` is the infinite vocabulary of Zhai and Boyd-Graber (2013); ours is a simplified form (`Lda::infer_online`).
pub(super) fn inferences(middle: usize, n_tests: usize) -> [(String, Inference); 7] {
    [
        ("G-LDA (fix)".into(), Inference::Gaussian(Topics::Fixed)),
        ("G-LDA (1)".into(), Inference::Gaussian(Topics::Online(1))),
        (format!("G-LDA ({middle})"), Inference::Gaussian(Topics::Online(middle))),
        ("G-LDA (all)".into(), Inference::Gaussian(Topics::Online(n_tests))),
        (format!("infvoc (ours: simpler, {middle})"), Inference::InfiniteVocabulary(middle)),
        ("infvoc (ours: simpler, all)".into(), Inference::InfiniteVocabulary(n_tests)),
        ("LDA, unknown words dropped".into(), Inference::Lda),
    ]
}

impl Models {
    /// Fits both models.
    pub(super) fn fit(
        data: &Path,
        train: &[Document],
        effort: Effort,
        note: &mut dyn FnMut(&str),
    ) -> Result<Models> {
        let (own, vectors) = vectors(data, DIM)?;
        let corpus = encode(train)?;
        let (for_words, coverage) = vectors.for_words(&own.vocab, &corpus.lexicon.vocab);
        note(&format!(
            "{} documents, {} tokens, {:.1} % of them with a vector",
            corpus.documents.len(),
            corpus.documents.n_tokens(),
            100.0 * coverage.share()
        ));
        let n_iterations = if effort.is_quick() { 20 } else { 50 };
        let gaussian = Glda::params()
            .n_topics(N_TOPICS)
            .n_iterations(n_iterations)
            .with(GldaInputs::default().vectors(&for_words))
            .fit(&corpus)?;
        let lda = Lda::params().n_topics(N_TOPICS).n_iterations(4 * n_iterations).fit(&corpus)?;
        Ok(Models { own, vectors, lexicon: corpus.lexicon, gaussian, lda })
    }

    /// Infers the topic proportions of documents.
    pub(super) fn infer(
        &self,
        documents: &[Document],
        inference: Inference,
    ) -> Result<Vec<Inferred>> {
        let documents = encode_with(documents, &self.lexicon)?;
        let params = InferenceParams::default().validate()?;
        let more = MoreVectors { vocab: &self.own.vocab, vectors: &self.vectors };
        Ok(match inference {
            Inference::Gaussian(topics) => {
                self.gaussian.infer_documents(&documents, Some(more), topics, &params)
            }
            Inference::InfiniteVocabulary(batch) => {
                self.lda.infer_online(&documents, batch, &params)
            }
            Inference::Lda => self.lda.infer_documents(&documents, &params),
        })
    }

    /// Mean word vector of each document.
    pub(super) fn mean_vectors(&self, documents: &[Document]) -> Vec<Vec<f32>> {
        let of = |document: &Document| {
            let mut mean = vec![0.0; self.vectors.dim()];
            let words = document.words.iter().filter_map(|word| self.own.vocab.get(word));
            let found: Vec<&[f32]> = words.filter_map(|id| self.vectors.get(id)).collect();
            for vector in &found {
                mean.iter_mut().zip(*vector).for_each(|(m, x)| *m += x / found.len() as f32);
            }
            mean
        };
        documents.iter().map(of).collect()
    }
}

/// Topic proportions θ of each document.
pub(super) fn shares(found: &[Inferred]) -> Vec<Vec<f32>> {
    found.iter().map(|document| document.mixture.clone()).collect()
}

/// n_dk + α_k of each document, i.e., θ before normalization. By default α sums to one.
pub(super) fn weights(found: &[Inferred]) -> Vec<Vec<f32>> {
    let of = |document: &Inferred| {
        let total = document.topics.iter().flatten().count() as f32 + 1.0;
        document.mixture.iter().map(|share| share * total).collect()
    };
    found.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_proportions_times_assigned_tokens_plus_one() {
        let topics = vec![Some(0), None, Some(1), Some(0)];
        let found = Inferred { mixture: vec![0.625, 0.375], topics, n_skipped: 1 };
        assert_eq!(weights(&[found]), [[2.5, 1.5]]);
    }
}
