//! Posteriors and most likely states of sentences, and the features made from them.

use crate::fitted::model::Fhmm;
use crate::inference::convergence::Stop;
use crate::inference::layer_chain::Column;
use crate::params::Inference;
use latens_corpus::WordId;
use latens_model::{FeatureRows, TokenEncoder};

/// Kind of the features of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// State of each layer on its most likely path: one column of value 1 per layer (FHMM-M-K of Nepal and Yates 2013).
    Viterbi,
    /// Posterior of the states of each layer, given the whole sentence: all columns (FHMM-POST-M-K).
    Posterior,
}

impl Features {
    /// All kinds, with their names.
    pub const ALL: [(&str, Features); 2] =
        [("viterbi", Features::Viterbi), ("posterior", Features::Posterior)];
}

/// Encoder of one kind of features of a model.
#[derive(Clone, Copy, Debug)]
pub struct FhmmEncoder<'a> {
    fhmm: &'a Fhmm,
    features: Features,
}

impl Fhmm {
    /// Returns an encoder of one kind of features.
    pub fn encoder(&self, features: Features) -> FhmmEncoder<'_> {
        FhmmEncoder { fhmm: self, features }
    }

    /// Most likely state of each layer, for each token of a sentence.
    ///
    /// The path is the most likely one of each layer by itself, or the joint one of all layers for [`Inference::Exact`].
    pub fn best_states(&self, sentence: &[WordId]) -> Vec<Vec<u32>> {
        let words = self.rows_of(sentence);
        if words.is_empty() {
            return vec![];
        }
        if self.smoother.inference() == Inference::Exact {
            return self.smoother.joint().best_path(&words);
        }
        let shape = self.smoother.distribution().shape;
        let mut states = vec![Vec::with_capacity(shape.n_layers); words.len()];
        self.smoother.infer(&[&words], Stop::accurate(), &mut |result| {
            for (layer, chain) in self.smoother.chains().iter().enumerate() {
                let column = Column { first: layer * shape.n_states, row: shape.row() };
                let path = chain.best_path(result.fields, column);
                states.iter_mut().zip(path).for_each(|(states, state)| states.push(state));
            }
        });
        states
    }

    /// Posterior of the states given the whole sentence: tokens × layers × states.
    pub fn posterior(&self, sentence: &[WordId]) -> Vec<f32> {
        let words = self.rows_of(sentence);
        if words.is_empty() {
            return vec![];
        }
        self.smoother.expect(&[&words], Stop::accurate()).gamma
    }

    /// Lower bound on ln p of a sentence; ln p itself for [`Inference::Exact`].
    pub fn bound(&self, sentence: &[WordId]) -> f64 {
        self.smoother.bounds(&[&self.rows_of(sentence)], Stop::accurate())
    }

    fn rows_of(&self, sentence: &[WordId]) -> Vec<u32> {
        sentence.iter().map(|&word| self.rows.row(word)).collect()
    }
}

/// Encodes the most likely states, as [`Features::Viterbi`].
impl TokenEncoder for Fhmm {
    fn n_features(&self) -> usize {
        self.encoder(Features::Viterbi).n_features()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        self.encoder(Features::Viterbi).encode(sentence, out);
    }
}

impl TokenEncoder for FhmmEncoder<'_> {
    fn n_features(&self) -> usize {
        self.fhmm.smoother.distribution().shape.row()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        let shape = self.fhmm.smoother.distribution().shape;
        match self.features {
            Features::Viterbi => {
                let column =
                    |(layer, state): (usize, u32)| ((layer * shape.n_states) as u32 + state, 1.0);
                for states in self.fhmm.best_states(sentence) {
                    out.push_sparse(states.into_iter().enumerate().map(column));
                }
            }
            Features::Posterior => {
                let posterior = self.fhmm.posterior(sentence);
                posterior.chunks_exact(shape.row()).for_each(|row| out.push_dense(row));
            }
        }
    }
}
