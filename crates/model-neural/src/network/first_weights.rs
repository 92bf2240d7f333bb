//! Initializes a recurrent network from a linear filter.

use crate::network::definition::{Body, Network};
use crate::params::{Architecture, NeuralParams, Tying};
use latens_corpus::Vocab;
use latens_model::{ParamError, check_that, fingerprint};
use latens_nn::{Squash, clip_factor, norm};

/// Initial weights of a simple recurrent network, from a linear filter x_t = R x_{t−1} + b_w.
///
/// O x_t plus the bias are the logits of the next word. Matrices are row-major.
#[derive(Clone, Debug)]
pub struct FirstWeights<'a> {
    /// Vocabulary of the filter.
    pub vocab: &'a Vocab,
    /// Dimension of x.
    pub dim: usize,
    /// The matrix R.
    pub recurrent: Vec<f32>,
    /// The vectors b_w: one row per word.
    pub input: Vec<f32>,
    /// The matrix O: one row per word.
    pub output: Vec<f32>,
    /// Output bias of each word.
    pub bias: Vec<f32>,
    /// Ratio of the hidden vector to x. Small values keep the activations in their almost linear range.
    pub scale: f64,
    /// Maximum norm of the rows of O. Unlike a linear readout, a softmax overweights longer rows.
    pub max_output_norm: f64,
}

impl FirstWeights<'_> {
    /// Checks that the filter matches the parameters and vocabulary of a network.
    pub(crate) fn check(&self, params: &NeuralParams, vocab: &Vocab) -> Result<(), ParamError> {
        let is_rnn = params.architecture == Architecture::Rnn;
        check_that(is_rnn, "init", "unset except for `rnn`", params.architecture.kind())?;
        for (name, value) in [("init_scale", self.scale), ("init_max_norm", self.max_output_norm)] {
            check_that(value > 0.0 && !value.is_nan(), name, "above 0", value)?;
        }
        check_that(self.scale.is_finite(), "init_scale", "a finite number", self.scale)?;
        let must = format!("{}, the dimension of the initial model", self.dim);
        check_that(params.dim == self.dim, "dim", must, params.dim)?;
        let is_separate = params.tying == Tying::Separate;
        check_that(is_separate, "tying", "`separate` with an initial model", "shared")?;
        let different = vocab.words().zip(self.vocab.words()).find(|(a, b)| a != b);
        let got = match different {
            Some((a, b)) => format!("one with `{b}` instead of `{a}`"),
            None => format!("one of {} words instead of {}", self.vocab.len(), vocab.len()),
        };
        let same = different.is_none() && vocab.len() == self.vocab.len();
        check_that(same, "init", "a model with the same vocabulary (see `--vocab`)", got)
    }

    /// Writes the initial weights.
    ///
    /// The hyperbolic tangent is the identity near zero, so that h = s x, A = R, inputs are s b_w, and outputs O/s. The
    /// logistic function is ½ + a/4 near zero: then h = ½ + s x/4, A = 4 R, inputs are s b_w − 2 R 1, outputs 4 O/s, and
    /// 2 O 1/s is subtracted from the bias.
    pub(crate) fn write(&self, network: &Network, squash: Squash, weights: &mut [f32]) {
        let Body::Rnn(layer) = &network.body else { unreachable!("the architecture was checked") };
        let (dim, scale) = (self.dim, self.scale as f32);
        let (slope, middle) = match squash {
            Squash::Tanh => (1.0, 0.0),
            Squash::Sigmoid => (0.25, 0.5),
        };
        let sum = |row: &[f32]| row.iter().sum::<f32>();
        let shifts: Vec<f32> =
            self.recurrent.chunks_exact(dim).map(|row| middle / slope * sum(row)).collect();
        let recurrent = layer.recurrent().of_mut(weights);
        for (a, r) in recurrent.iter_mut().zip(&self.recurrent) {
            *a = r / slope;
        }
        let input = network.input.table().of_mut(weights);
        for (row, from) in input.chunks_exact_mut(dim).zip(self.input.chunks_exact(dim)) {
            for ((w, b), shift) in row.iter_mut().zip(from).zip(&shifts) {
                *w = scale * b - shift;
            }
        }
        let output = network.output.of_mut(weights);
        for (row, from) in output.chunks_exact_mut(dim).zip(self.output.chunks_exact(dim)) {
            let factor = self.shortened(from) / (slope * scale);
            row.iter_mut().zip(from).for_each(|(u, o)| *u = factor * o);
        }
        let shifts: Vec<f32> = output.chunks_exact(dim).map(|row| middle * sum(row)).collect();
        let bias = network.bias.of_mut(weights).iter_mut().zip(&self.bias);
        bias.zip(shifts).for_each(|((w, b), shift)| *w = b - shift);
    }

    /// The factor that limits the norm of a row of O.
    fn shortened(&self, row: &[f32]) -> f32 {
        clip_factor(norm(row), self.max_output_norm) as f32
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        let parts = [&self.recurrent, &self.input, &self.output, &self.bias];
        let bits = parts.into_iter().flatten().map(|x| x.to_bits());
        let numbers = [self.scale, self.max_output_norm].map(|x| (x as f32).to_bits());
        fingerprint(bits.chain(numbers))
    }
}
