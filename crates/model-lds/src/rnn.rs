//! First weights of a recurrent network from a model.
//!
//! A network h_t = f(R h_{t−1} + input(w_{t−1})) with the output O h_t can begin as the filter of a linear
//! dynamical system, in two consistent ways; which of the filter's states h_t is decides where A goes.

use crate::dense::{identity, product};
use crate::learner::to_rows;
use crate::model::Lds;
use crate::panel::{Panel, times};
use latens_math::linalg::Mat;

/// Which state of the filter the network's hidden vector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenState {
    /// x_{t|t−1}, the prediction of the state of the word that comes next.
    Predicted,
    /// x_{t−1|t−1}, the state of the word that was read last.
    Filtered,
}

/// Weights of a recurrent network, matrices row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct RnnWeights {
    /// How many hidden units there are.
    pub dim: usize,
    /// R: a row a hidden unit.
    pub recurrent: Vec<f32>,
    /// What a word adds to the hidden units: a row a word.
    pub input: Vec<f32>,
    /// What hidden units say for a word: a row a word.
    pub output: Vec<f32>,
    /// ln μ of each word.
    pub bias: Vec<f32>,
}

/// Vectors of rare words are long, since u_i = c_i/√μ_i: this is added to μ_i.
const SHRINKAGE: f64 = 1e-4;

impl Lds {
    /// First weights of a network whose hidden vector is the given state. With a softmax of the output plus
    /// the bias, its prediction is to first order that of the model; rows of rare words are shrunk, as
    /// c_i/√(μ_i + 10⁻⁴).
    pub fn rnn_weights(&self, state: HiddenState) -> RnnWeights {
        let (a, g, b) = (&self.dynamics.a, &self.dynamics.g, &self.steady.b);
        let (recurrent, input, output) = match state {
            HiddenState::Predicted => {
                let left = identity(self.dim()) - product([b.as_ref(), g.as_ref()]);
                let input = product([a.as_ref(), b.as_ref()]);
                (product([a.as_ref(), left.as_ref()]), input, identity(self.dim()))
            }
            HiddenState::Filtered => (self.steady.h.clone(), b.clone(), a.transpose().to_owned()),
        };
        RnnWeights {
            dim: self.dim(),
            recurrent: to_rows(&recurrent).into_iter().map(|x| x as f32).collect(),
            input: self.shrunk(&input).to_rows(),
            output: self.shrunk(&output).to_rows(),
            bias: self.mu.iter().map(|mu| mu.ln() as f32).collect(),
        }
    }

    /// M u_i of every word, shrunk.
    fn shrunk(&self, matrix: &Mat<f64>) -> Panel<f32> {
        let mut rows = times(self.words.view(), &matrix.transpose().to_owned());
        let scale = |mu: &f64| (1.0 / (mu + SHRINKAGE).sqrt()) as f32;
        rows.scale_rows(&self.mu.iter().map(scale).collect::<Vec<_>>());
        rows
    }
}
