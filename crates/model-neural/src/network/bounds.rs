//! Bounds on what a network computes, for model files whose weights are finite but huge.

use crate::network::definition::{Body, Network};
use latens_nn::WeightId;

/// The largest magnitude that sums of products may have: far below the largest single-precision number, so that no sum
/// becomes infinite and no difference NaN.
const LARGEST: f64 = 1e37;

impl Network {
    /// Whether no context can make a number of the forward pass overflow. Uses Σ |w x| ≤ n · max |w| · max |x|, and
    /// that tanh, the logistic function and the output of an LSTM are at most 1 in magnitude.
    pub(crate) fn is_bounded(&self, weights: &[f32]) -> bool {
        let largest = |id: WeightId| {
            id.of(weights).iter().fold(0f64, |max, &weight| max.max(f64::from(weight.abs())))
        };
        let dim = self.dim as f64;
        let input = largest(self.input.table());
        let mut sums = Vec::new();
        let hidden = match &self.body {
            Body::Ff(layers) => layers.iter().fold(input, |below, layer| {
                let bias = layer.bias().map_or(0.0, largest);
                sums.push(layer.n_in() as f64 * largest(layer.weight()) * below + bias);
                sums[sums.len() - 1]
            }),
            Body::Rnn(layer) => {
                sums.push(input + dim * largest(layer.recurrent()));
                1.0
            }
            Body::Lstm(layers) => layers.iter().fold(input, |below, layer| {
                let linear = layer.input();
                let bias = linear.bias().map_or(0.0, largest);
                let of_input = linear.n_in() as f64 * largest(linear.weight()) * below;
                sums.push(of_input + layer.dim() as f64 * largest(layer.recurrent()) + bias);
                1.0
            }),
        };
        sums.push(dim * largest(self.output) * hidden + largest(self.bias));
        sums.iter().all(|&sum| sum <= LARGEST)
    }
}
