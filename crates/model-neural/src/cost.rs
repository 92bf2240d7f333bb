//! Memory and work of training.

use crate::params::{Architecture, NeuralParams, Optimizer, Tying};
use latens_corpus::{Corpus, Sentences};
use latens_model::Cost;

/// The cost of training.
pub(crate) fn cost(params: &NeuralParams, corpus: &Corpus, valid: Option<&Sentences>) -> Cost {
    let n_tokens = corpus.sentences.n_tokens() as f64;
    let n_words = corpus.lexicon.vocab.len() as f64;
    let (dim, n_context) = (params.dim as f64, params.n_context() as f64);
    let is_recurrent = params.architecture != Architecture::Ff;
    let n_steps = if is_recurrent { params.bptt as f64 } else { 1.0 };
    // Text is scored 256 words at a time.
    let n_rows = (params.batch_size as f64 * n_steps).min(n_tokens).max(256.0);
    // Weights, gradient, and the best or the last weights; two moments of AdamW; a running average.
    let n_copies = if params.optimizer == Optimizer::AdamW { 5.0 } else { 3.0 };
    let n_copies = n_copies + if params.average > 0.0 { 1.0 } else { 0.0 };
    // Inputs and their derivatives, and per layer its output and, for an LSTM, gates and states.
    let per_layer = match params.architecture {
        Architecture::Ff => 1.0,
        Architecture::Rnn => 3.0,
        Architecture::Lstm => 9.0,
    };
    let n_units: usize = params.layer_dims().iter().sum();
    let values = dim * (2.0 * n_context + 2.0) + n_units as f64 * per_layer;
    let activations = 4.0 * n_rows * values;
    let order = if is_recurrent { 0.0 } else { 4.0 * n_tokens };
    let in_hidden = Body::of(params).n_products;
    // Forward, and backward to inputs and to weights; the validation text only forward.
    let per_token = n_words * dim + in_hidden;
    let n_valid = valid.map_or(0, Sentences::n_tokens) as f64;
    Cost::new(params.epochs)
        .part("weights", 4.0 * n_copies * n_weights(params, n_words), Some("dim"))
        .part("logits", 4.0 * n_rows * n_words, Some("batch_size"))
        .part("activations", activations, Some("batch_size"))
        .part("order of words", order, None)
        .products((3.0 * n_tokens + n_valid) * per_token)
}

/// Number of weights of a network.
fn n_weights(params: &NeuralParams, n_words: f64) -> f64 {
    let n_embeddings = if params.tying == Tying::Shared { 1.0 } else { 2.0 };
    let Body { n_products, n_biases } = Body::of(params);
    n_words * (n_embeddings * params.dim as f64 + 1.0) + n_products + n_biases
}

/// The hidden layers.
struct Body {
    /// Weights that are multiplied once per token.
    n_products: f64,
    n_biases: f64,
}

impl Body {
    fn of(params: &NeuralParams) -> Body {
        let (dim, n_layers) = (params.dim as f64, params.n_layers as f64);
        let square = dim * dim;
        let (n_products, n_biases) = match params.architecture {
            Architecture::Ff => {
                (square * (params.n_context() as f64 + n_layers - 1.0), n_layers * dim)
            }
            Architecture::Rnn => (square, 0.0),
            // Four gates, from the layer below and from the state.
            Architecture::Lstm => {
                let dims = params.layer_dims();
                let inputs = [params.dim].into_iter().chain(dims.iter().copied());
                let products = inputs.zip(&dims).map(|(n_in, &dim)| 4 * dim * (n_in + dim));
                (products.sum::<usize>() as f64, 4.0 * dims.iter().sum::<usize>() as f64)
            }
        };
        Body { n_products, n_biases }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::definition::Network;

    #[test]
    fn the_number_of_weights_is_that_of_the_network() {
        for params in [NeuralParams::ff(), NeuralParams::rnn(), NeuralParams::lstm()] {
            for tying in [Tying::Shared, Tying::Separate] {
                let small = NeuralParams { tying, dim: 6, ..params.clone() };
                let wide = NeuralParams { hidden_dim: 9, n_layers: 3, ..small.clone() };
                for params in [small, wide] {
                    let network = Network::new(&params, 11);
                    assert_eq!(n_weights(&params, 11.0), network.layout.len() as f64, "{params:?}");
                }
            }
        }
    }

    #[test]
    fn work_of_a_tiny_network_agrees_with_a_count_by_hand() {
        // 4 words with `<unk>` and `<eos>`, 7 tokens with ends of sentences.
        let corpus = Corpus::from_lines(["a b a", "b a"]).unwrap();
        let params = NeuralParams { dim: 2, ..NeuralParams::rnn() };
        // 4 × 2 for the output and 2 × 2 for the state, three times per token.
        let work = cost(&params, &corpus, None).multiply_adds_per_iteration();
        assert_eq!(work, 7.0 * 3.0 * (8.0 + 4.0));
        let with_valid = cost(&params, &corpus, Some(&corpus.sentences));
        assert_eq!(with_valid.multiply_adds_per_iteration(), 7.0 * 4.0 * (8.0 + 4.0));
    }
}
