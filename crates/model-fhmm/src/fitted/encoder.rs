//! Features of tokens.

use crate::fitted::model::Fhmm;
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
        self.fhmm.n_layers() * self.fhmm.n_states()
    }

    fn encode(&self, sentence: &[WordId], out: &mut FeatureRows) {
        let n_states = self.fhmm.n_states() as u32;
        match self.features {
            Features::Viterbi => {
                for states in self.fhmm.viterbi_of(sentence).rows() {
                    let columns = (0..).zip(states).map(|(layer, &state)| layer * n_states + state);
                    out.push_sparse(columns.map(|column| (column, 1.0)));
                }
            }
            Features::Posterior => {
                self.fhmm.posterior_of(sentence).rows().for_each(|row| out.push_dense(row));
            }
        }
    }
}
