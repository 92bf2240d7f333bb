//! Features of words from the states of all layers.

use crate::inference::layer_chain::Column;
use crate::train::trainer::{SWEEPS_OF_USE, stop};
use crate::fitted::model::Fhmm;
use crate::params::Inference;
use latens_corpus::WordId;
use latens_model::{FeatureRows, TokenEncoder};

/// Which features of a word are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// The state of each layer in its most likely path: a column of value 1 a layer (the paper's FHMM-M-K).
    Viterbi,
    /// The posterior of each layer's states, given the whole sentence: all columns (the paper's FHMM-POST-M-K).
    Posterior,
}

impl Features {
    /// All kinds, each with its name.
    pub const ALL: [(&str, Features); 2] =
        [("viterbi", Features::Viterbi), ("posterior", Features::Posterior)];
}

/// A model as an encoder of one kind of features.
#[derive(Clone, Copy, Debug)]
pub struct FhmmEncoder<'a> {
    fhmm: &'a Fhmm,
    features: Features,
}

impl Fhmm {
    /// The model as an encoder.
    pub fn encoder(&self, features: Features) -> FhmmEncoder<'_> {
        FhmmEncoder { fhmm: self, features }
    }

    /// For each word of a sentence the state of each layer: the most likely path of each layer by itself, or of all
    /// together where inference is `exact`.
    pub fn best_states(&self, sentence: &[WordId]) -> Vec<Vec<u32>> {
        let words = self.rows_of(sentence);
        if words.is_empty() {
            return vec![];
        }
        if self.engine.inference() == Inference::Exact {
            return self.engine.joint().best_path(&words);
        }
        let shape = self.engine.parameters().shape;
        let mut states = vec![Vec::with_capacity(shape.n_layers); words.len()];
        self.engine.infer(&[&words], stop(SWEEPS_OF_USE), &mut |found| {
            for (layer, chain) in self.engine.chains().iter().enumerate() {
                let column = Column { first: layer * shape.n_states, row: shape.row() };
                let path = chain.best_path(found.fields, column);
                states.iter_mut().zip(path).for_each(|(states, state)| states.push(state));
            }
        });
        states
    }

    /// The posterior of states, given the whole sentence: words × layers × states.
    pub fn posterior(&self, sentence: &[WordId]) -> Vec<f32> {
        let words = self.rows_of(sentence);
        if words.is_empty() {
            return vec![];
        }
        self.engine.expect(&[&words], stop(SWEEPS_OF_USE)).gamma
    }

    /// A lower bound of ln p of a sentence; ln p itself where inference is `exact`.
    pub fn bound(&self, sentence: &[WordId]) -> f64 {
        self.engine.bounds(&[&self.rows_of(sentence)], stop(SWEEPS_OF_USE))
    }

    fn rows_of(&self, sentence: &[WordId]) -> Vec<u32> {
        sentence.iter().map(|&word| self.rows.row(word)).collect()
    }
}

/// The most likely states.
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
        self.fhmm.engine.parameters().shape.row()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        let shape = self.fhmm.engine.parameters().shape;
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
