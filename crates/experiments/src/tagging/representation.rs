//! Representations of words that are learned from text without tags.

use anyhow::Result;
use latens::brown::{Brown, BrownParams};
use latens::corpus::Corpus;
use latens::fhmm::{Fhmm, FhmmParams};
use latens::hmm::{Constraint, Hmm, HmmParams, Training, text_to_cluster};
use latens::lds::{Lds, LdsParams};
use latens::model::{Device, Params, unwatched};
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
            Representation::Brown(params) => fit_brown(params, corpus)?.save(path)?,
            Representation::Hmm(params, _) => fit_hmm(params, corpus)?.save(path)?,
            Representation::Fhmm(params, _) => {
                let params = params.clone().validate()?;
                Fhmm::fit(&params, corpus, None, &mut unwatched)?.save(path)?;
            }
            Representation::Word2vec(params) => {
                let params = params.clone().validate()?;
                Word2vec::fit(&params, corpus, &mut unwatched)?.save(path)?;
            }
            Representation::Lds(params, _) => fit_lds(params, corpus)?.save(path)?,
        }
        Ok(())
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

fn fit_lds(params: &LdsParams, corpus: &Corpus) -> Result<Lds> {
    let params = params.clone().validate()?;
    let training = latens::lds::Training::of(&params, corpus, None, &mut unwatched)?;
    Ok(Lds::fit(&params, training, &mut unwatched)?)
}

fn fit_brown(params: &BrownParams, corpus: &Corpus) -> Result<Brown> {
    Ok(Brown::fit(&params.clone().validate()?, corpus, &mut unwatched)?)
}

fn fit_hmm(params: &HmmParams, corpus: &Corpus) -> Result<Hmm> {
    let mut clusters = None;
    if params.constraint == Constraint::Brown {
        let text = text_to_cluster(params, corpus);
        let brown = BrownParams { n_clusters: params.n_clusters, ..BrownParams::default() };
        let brown = fit_brown(&brown, &text)?;
        clusters = Some(brown.clusters().for_words(&text.lexicon.vocab, &corpus.lexicon.vocab));
    }
    let training = Training {
        corpus,
        valid: None,
        clusters: clusters.as_ref(),
        tags: None,
        device: Device::Cpu,
    };
    Ok(Hmm::fit(&params.clone().validate()?, &training, &mut unwatched)?)
}
