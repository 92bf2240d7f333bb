//! Memory and work of training.

use crate::params::{Algorithm, Word2vecParams};
use crate::text::{counts, keep_probs};
use latens_corpus::Corpus;
use latens_model::Cost;

/// The cost of training.
pub(crate) fn cost(params: &Word2vecParams, corpus: &Corpus) -> Cost {
    let n_words = corpus.lexicon.vocab.len();
    let counts = counts(&corpus.sentences, n_words);
    let keep_probs = keep_probs(&counts, params.subsample);
    let n_kept = counts.iter().zip(keep_probs).map(|(&n, keep)| n as f64 * keep).sum();
    let (n_words, dim) = (n_words as f64, params.dim as f64);
    // Rows are padded to cache lines of 16 numbers.
    let row = 16.0 * (dim / 16.0).ceil();
    // Vectors of inputs and outputs, and beside them the initial vectors, a checkpoint, or the result.
    let vectors = 2.0 * 4.0 * n_words * (row + dim);
    let n_threads = rayon::current_num_threads() as f64;
    let buffers = n_threads * 4.0 * row * (params.n_negatives as f64 + 4.0);
    // Counts, probabilities and the alias table of negative samples.
    Cost::new(params.epochs)
        .part("vectors", vectors, Some("dim"))
        .part("tables of words", 48.0 * n_words, None)
        .part("buffers", buffers, Some("n_negatives"))
        .multiply_adds(multiply_adds(params, n_kept))
}

/// Multiplications with an addition for `n_kept` tokens that subsampling keeps.
///
/// A prediction needs a product with h, a change of h and a change of u for the target and for each negative sample.
/// A window drawn uniformly from 1 to N words on either side has N + 1 context words on average.
fn multiply_adds(params: &Word2vecParams, n_kept: f64) -> f64 {
    let (dim, n_context) = (params.dim as f64, params.window as f64 + 1.0);
    let prediction = 3.0 * dim * (1.0 + params.n_negatives as f64);
    n_kept
        * match params.algorithm {
            // The vector of the context word changes.
            Algorithm::SkipGram => n_context * (prediction + dim),
            // The mean of the context, and a change of each of its vectors.
            Algorithm::Cbow => prediction + 2.0 * n_context * dim,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_a_tiny_model_agrees_with_a_count_by_hand() {
        let corpus = Corpus::from_lines(["a b a", "b a"]).unwrap();
        let params = Word2vecParams {
            dim: 2,
            window: 1,
            n_negatives: 1,
            subsample: 0.0,
            ..Word2vecParams::default()
        };
        // 5 tokens × 2 contexts × (2 outputs × 3 × 2 numbers + 2 numbers).
        let skip_gram = cost(&params, &corpus);
        assert_eq!(skip_gram.multiply_adds_per_iteration(), 5.0 * 2.0 * (2.0 * 6.0 + 2.0));
        let cbow = Word2vecParams { algorithm: Algorithm::Cbow, ..params };
        let cbow = cost(&cbow, &corpus);
        // 5 tokens × (2 outputs × 3 × 2 numbers + 2 × 2 contexts × 2 numbers).
        assert_eq!(cbow.multiply_adds_per_iteration(), 5.0 * (2.0 * 6.0 + 8.0));
    }
}
