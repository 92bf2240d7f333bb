//! Representations of words that are learned from text without tags.

use anyhow::Result;
use latens::brown::{Brown, BrownParams};
use latens::corpus::Corpus;
use latens::fhmm::{Fhmm, FhmmParams};
use latens::hmm::{Constraint, Hmm, HmmInputs, HmmParams, text_to_cluster};
use latens::lds::{Lds, LdsParams};
use latens::model::{Fit, WordClusters};
use latens::word2vec::{Word2vec, Word2vecParams};
use std::path::Path;

/// A representation of words.
pub(crate) enum Representation {
    /// None: only lexical features.
    Words,
    /// Brown clusters.
    Brown(BrownParams),
    /// Features of the given kind of a hidden Markov model.
    Hmm(HmmParams, &'static str),
    /// word2vec vectors.
    Word2vec(Word2vecParams),
    /// Features of the given kind of a linear dynamical system.
    Lds(LdsParams, &'static str),
    /// Features of the given kind of a factorial hidden Markov model.
    Fhmm(FhmmParams, &'static str),
}

impl Representation {
    /// Kind of the model and its parameters as JSON; `None` without a model.
    pub(crate) fn kind_and_params(&self) -> Result<Option<(&'static str, String)>> {
        Ok(Some(match self {
            Representation::Words => return Ok(None),
            Representation::Brown(params) => (Brown::KIND, serde_json::to_string(params)?),
            Representation::Hmm(params, _) => (Hmm::KIND, serde_json::to_string(params)?),
            Representation::Word2vec(params) => (Word2vec::KIND, serde_json::to_string(params)?),
            Representation::Lds(params, _) => (Lds::KIND, serde_json::to_string(params)?),
            Representation::Fhmm(params, _) => (Fhmm::KIND, serde_json::to_string(params)?),
        }))
    }

    /// Fits the model to a corpus and saves it.
    pub(crate) fn fit_and_save(&self, corpus: &Corpus, path: &Path) -> Result<()> {
        match self {
            Representation::Words => {}
            Representation::Brown(params) => params.clone().fit(corpus)?.save(path)?,
            Representation::Hmm(params, _) => {
                // The greedy clusters of the paper.
                let clusters = greedy_clusters(params, corpus)?;
                let mut inputs = HmmInputs::default();
                inputs.clusters = clusters.as_ref();
                params.clone().with(inputs).fit(corpus)?.save(path)?;
            }
            Representation::Fhmm(params, _) => params.clone().fit(corpus)?.save(path)?,
            Representation::Word2vec(params) => params.clone().fit(corpus)?.save(path)?,
            Representation::Lds(params, _) => params.clone().fit(corpus)?.save(path)?,
        }
        Ok(())
    }

    /// Whether the features of a token are numbers, and not a few names.
    pub(crate) fn is_dense(&self) -> bool {
        match self {
            Representation::Words | Representation::Brown(_) => false,
            Representation::Word2vec(_) | Representation::Lds(..) => true,
            Representation::Hmm(_, features) | Representation::Fhmm(_, features) => {
                *features == "posterior"
            }
        }
    }

    /// Whether the model depends on a random seed.
    pub(crate) fn has_seed(&self) -> bool {
        !matches!(self, Representation::Words | Representation::Brown(_) | Representation::Lds(..))
    }

    /// Kind of features; `None` for models with a single kind.
    pub(crate) fn features(&self) -> Option<&'static str> {
        match self {
            Representation::Hmm(_, features)
            | Representation::Lds(_, features)
            | Representation::Fhmm(_, features) => Some(features),
            Representation::Words | Representation::Brown(_) | Representation::Word2vec(_) => None,
        }
    }
}

/// Word clusters of a corpus by the greedy algorithm, as the papers have them; `None` for a model without clusters.
pub(crate) fn greedy_clusters(params: &HmmParams, corpus: &Corpus) -> Result<Option<WordClusters>> {
    if params.constraint != Constraint::Brown {
        return Ok(None);
    }
    let text = text_to_cluster(params, corpus);
    let brown = Brown::params().n_clusters(params.n_clusters).fit(&text)?;
    Ok(Some(brown.clusters().for_words(&text.lexicon.vocab, &corpus.lexicon.vocab)))
}
