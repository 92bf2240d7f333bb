//! Initial weights of a recurrent network from a model.
//!
//! A network h_t = f(R h_{t−1} + input(w_{t−1})) with the output O h_t can start as the filter of a linear dynamical
//! system. There are two consistent ways, depending on which state of the filter h_t stands for.

use crate::linalg::dense::{identity, product, to_row_major};
use crate::linalg::panel::{Panel, times};
use crate::model::Lds;
use latens_math::linalg::Mat;

/// The state of the filter that the hidden vector of the network stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenState {
    /// x_{t|t−1}, the predicted state of the next word.
    Predicted,
    /// x_{t−1|t−1}, the filtered state of the last word.
    Filtered,
}

/// The weights of a recurrent network; matrices are row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct RnnWeights {
    /// Number of hidden units.
    pub dim: usize,
    /// R, one row per hidden unit.
    pub recurrent: Vec<f32>,
    /// Input vectors, one row per word.
    pub input: Vec<f32>,
    /// Output vectors, one row per word.
    pub output: Vec<f32>,
    /// Output bias, ln μ of each word.
    pub bias: Vec<f32>,
}

/// The number added to μ_i in u_i = c_i/√μ_i, which makes the long vectors of rare words shorter.
const SHRINKAGE: f64 = 1e-4;

impl Lds {
    /// The initial weights of a network whose hidden vector is the given state of the filter.
    ///
    /// With a softmax of the output plus the bias, the network's prediction is that of the model to first order. The
    /// vectors of rare words are shrunk, as c_i/√(μ_i + 10⁻⁴).
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
            recurrent: to_row_major(&recurrent),
            input: self.shrunk(&input).to_rows(),
            output: self.shrunk(&output).to_rows(),
            bias: self.mu.iter().map(|mu| mu.ln() as f32).collect(),
        }
    }

    /// M u_i of every word, with shrinkage.
    fn shrunk(&self, matrix: &Mat<f64>) -> Panel<f32> {
        let mut rows = times(self.words.view(), &matrix.transpose().to_owned());
        let scale = |mu: &f64| (1.0 / (mu + SHRINKAGE).sqrt()) as f32;
        rows.scale_rows(&self.mu.iter().map(scale).collect::<Vec<_>>());
        rows
    }
}
