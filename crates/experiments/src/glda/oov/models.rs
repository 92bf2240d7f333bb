//! Both models of one corpus, and the mixtures that they find.

use crate::corpora::topics::{Document, encode, encode_with, vectors};
use crate::glda::topics::fit_lda;
use anyhow::Result;
use latens::corpus::Lexicon;
use latens::lda::{
    Glda, GldaData, GldaParams, InferenceParams, Inferred, Lda, LdaParams, MoreVectors, Topics,
};
use latens::model::{Params, WordVectors, unwatched};
use std::path::Path;

const N_TOPICS: usize = 50;
const DIM: usize = 50;

/// Both models of one corpus, and what they need for others.
pub(super) struct Models {
    /// The words that have vectors.
    pub(super) own: Lexicon,
    pub(super) vectors: WordVectors,
    lexicon: Lexicon,
    gaussian: Glda,
    lda: Lda,
}

/// How mixtures are found.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Gaussian(Topics),
    /// With batches of so many documents.
    InfiniteVocabulary(usize),
    Lda,
}

impl Models {
    pub(super) fn fit(
        data: &Path,
        train: &[Document],
        quick: bool,
        note: &mut dyn FnMut(&str),
    ) -> Result<Models> {
        let (own, vectors) = vectors(data, DIM)?;
        let (lexicon, documents) = encode(train)?;
        let (for_words, coverage) = vectors.for_words(&own.vocab, &lexicon.vocab);
        note(&format!(
            "{} documents, {} tokens, {:.1} % of them with a vector",
            documents.len(),
            documents.n_tokens(),
            100.0 * coverage.share()
        ));
        let n_iterations = if quick { 20 } else { 50 };
        let params = GldaParams { n_topics: N_TOPICS, n_iterations, ..GldaParams::default() };
        let data = GldaData { lexicon: &lexicon, documents: &documents, vectors: &for_words };
        let gaussian = Glda::fit(&params.validate()?, data, &mut unwatched)?;
        let n_iterations = 4 * n_iterations;
        let params = LdaParams { n_topics: N_TOPICS, n_iterations, ..LdaParams::default() };
        let lda = fit_lda(params, &lexicon, &documents)?;
        Ok(Models { own, vectors, lexicon, gaussian, lda })
    }

    pub(super) fn infer(&self, documents: &[Document], kind: Kind) -> Result<Vec<Inferred>> {
        let documents = encode_with(documents, &self.lexicon)?;
        let params = InferenceParams::default().validate()?;
        let more = MoreVectors { vocab: &self.own.vocab, vectors: &self.vectors };
        Ok(match kind {
            Kind::Gaussian(topics) => self.gaussian.infer(&documents, Some(more), topics, &params),
            Kind::InfiniteVocabulary(batch) => self.lda.infer_online(&documents, batch, &params),
            Kind::Lda => self.lda.infer(&documents, &params),
        })
    }

    /// The mean vector of each document's words.
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

/// θ of each document.
pub(super) fn shares(found: &[Inferred]) -> Vec<Vec<f32>> {
    found.iter().map(|document| document.mixture.clone()).collect()
}

/// n_dk + α_k of each document: θ before it is made to sum to one. α sums to one unless it is said otherwise.
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
    fn weights_are_shares_of_the_tokens_that_take_part() {
        let topics = vec![Some(0), None, Some(1), Some(0)];
        let found = Inferred { mixture: vec![0.625, 0.375], topics, n_skipped: 1 };
        assert_eq!(weights(&[found]), [[2.5, 1.5]]);
    }
}
