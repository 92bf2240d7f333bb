//! Memory and work of training.

use crate::params::{FhmmParams, Inference, MStep};
use crate::train::lazy_update::Turn;
use latens_corpus::Corpus;
use latens_model::Cost;

/// Numbers of layers, states per layer, words and tokens.
#[derive(Clone, Copy)]
struct Sizes {
    n_layers: f64,
    n_states: f64,
    n_words: f64,
    n_tokens: f64,
}

/// The cost of training.
pub(crate) fn cost(params: &FhmmParams, corpus: &Corpus) -> Cost {
    let counts = corpus.lexicon.vocab.counts().iter();
    let sizes = Sizes {
        n_layers: params.n_layers as f64,
        n_states: params.n_states as f64,
        n_words: counts.filter(|&&count| count >= params.min_count).count() as f64,
        n_tokens: corpus.sentences.n_tokens() as f64,
    };
    let Sizes { n_layers, n_states, n_words, n_tokens } = sizes;
    let row = n_layers * n_states;
    let n_sentences = corpus.sentences.len();
    // The number of sentences per batch may be that of all.
    let n_batches = (n_sentences as f64 / params.batch_size(n_sentences) as f64).max(1.0);
    let batch = n_tokens / n_batches;
    let inference = params.chosen_inference();
    let n_joint = Inference::n_joint(params.n_layers, params.n_states).map(|n| n as f64);
    // Scores and their exponentials in single precision; expected counts and, in the M-step, their changes.
    let mut per_word = 4.0 + 4.0 + 8.0 + 4.0;
    if params.restarts > 1 {
        per_word += 4.0 + 8.0;
    }
    if params.chosen_m_step() == MStep::Lazy {
        // Copies of scores and their exponentials, instead of changes.
        per_word += 4.0;
    }
    if params.m_step == MStep::Lbfgs {
        // Point, gradient, direction, trial point, and six pairs of steps.
        per_word += 8.0 * (4.0 + 2.0 * 6.0);
    }
    // Normalizers, their logarithms, expected counts, and up to 16 partial sums.
    let per_joint = 4.0 + 4.0 + 8.0 + 16.0 * 4.0;
    let n_threads = rayon::current_num_threads() as f64;
    let products = match n_joint {
        // Products of two groups of layers for blocks of 1024 tokens or 256 words.
        Some(_) => {
            let first = n_states.powf((n_layers / 2.0).floor());
            let second = n_states.powf((n_layers / 2.0).ceil());
            4.0 * (first + second) * (1024.0 + 2.0 * 256.0 * n_threads)
        }
        // Products over layers of all words for blocks of 32 tokens.
        None => 4.0 * 32.0 * n_words * (n_layers + 2.0) * n_threads,
    };
    let longest = corpus.sentences.iter().map(<[_]>::len).max().unwrap_or(0) as f64;
    let chain = match (inference, n_joint) {
        (Inference::Exact, Some(n_joint)) => 3.0 * 4.0 * longest * n_joint * n_threads,
        _ => 0.0,
    };
    let posteriors = if inference == Inference::Tilted { 4.0 } else { 2.0 };
    Cost::new(params.epochs)
        .part("scores of words", per_word * n_words * row, Some("n_states"))
        .part("joint states", per_joint * n_joint.unwrap_or(0.0), Some("n_layers"))
        .part("products of states", products, Some("n_states"))
        .part("posteriors", posteriors * 4.0 * batch * row, Some("batch_sentences"))
        .part("forward and backward passes", chain, Some("n_layers"))
        .products(multiply_adds(params, sizes, n_joint, n_batches))
}

/// The largest number of multiplications with an addition per epoch; sweeps often converge earlier.
///
/// With a table of K^M normalizers, a sweep takes two products per token, and the update of a layer three products
/// with all words. A lazy update takes four products with the words of the batch, which are at most its tokens, or three
/// with all words. Over V words, a sweep takes 2 M K V. Exact inference takes three products per layer along one axis of
/// the table.
fn multiply_adds(params: &FhmmParams, sizes: Sizes, n_joint: Option<f64>, n_batches: f64) -> f64 {
    let Sizes { n_layers, n_states, n_words, n_tokens } = sizes;
    let over_words = 2.0 * n_layers * n_states * n_words;
    let sweep = n_joint.map_or(over_words, |n_joint| 2.0 * n_joint);
    let e_step = match (params.chosen_inference(), n_joint) {
        (Inference::Exact, Some(n_joint)) => n_tokens * 3.0 * n_layers * n_states * n_joint,
        _ => n_tokens * params.sweeps as f64 * sweep,
    };
    // Other M-steps visit all words per batch with a table, and all tokens of the batch without one.
    let pass = n_joint
        .map_or(n_tokens * over_words / n_layers, |n_joint| n_batches * 3.0 * n_words * n_joint);
    let m_step = match (params.chosen_m_step(), n_joint) {
        (MStep::Lazy, Some(n_joint)) => {
            let n_all = (n_batches / Turn::period(n_batches, n_words, n_tokens)).ceil();
            let of_batches = (n_batches - n_all) * n_words.min(n_tokens / n_batches);
            n_joint * (4.0 * of_batches + 3.0 * n_all * n_words)
        }
        (MStep::Lazy | MStep::Layers, _) => n_layers * pass,
        (MStep::Lbfgs, _) => params.lbfgs_iterations as f64 * pass,
    };
    e_step + m_step
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { n_layers: 2.0, n_states: 3.0, n_words: 5.0, n_tokens: 7.0 };

    #[test]
    fn work_of_a_tiny_model_agrees_with_a_count_by_hand() {
        let params = FhmmParams::default().n_layers(2).n_states(3).sweeps(4);
        let work = |params: &FhmmParams, n_joint| multiply_adds(params, SIZES, n_joint, 2.0);
        // 7 tokens × 4 sweeps × 2 products of 9, a batch with 4 products of 3.5 tokens × 9, and a batch with 3 products
        // of 5 words × 9: all words have their turn at the end of the epoch only, since a batch has fewer than 10 tokens.
        assert_eq!(work(&params, Some(9.0)), 504.0 + 135.0 + 4.0 * 3.5 * 9.0);
        let params = params.m_step(MStep::Layers);
        // The same, and 2 batches × 2 layers × 3 products of 5 × 9.
        assert_eq!(work(&params, Some(9.0)), 504.0 + 540.0);
        // 7 tokens × 4 sweeps × 2 · 2 · 3 · 5, and 2 layers × 7 tokens × 2 · 3 · 5.
        assert_eq!(work(&params, None), 1680.0 + 420.0);
        // 7 tokens × 3 products × 2 layers × 3 states × 9, and the M-step as above.
        let exact = params.inference(Inference::Exact);
        assert_eq!(work(&exact, Some(9.0)), 1134.0 + 540.0);
    }

    /// The design of the model computes 5.8e13 floating-point operations for the E-step of 5 epochs with the table
    /// (10 layers·states 10^5 joint states, 2.9 million tokens, 10 sweeps); a multiplication with an addition is two.
    #[test]
    fn the_e_step_of_a_large_model_agrees_with_its_design() {
        let params = FhmmParams::default();
        let sizes = Sizes { n_layers: 5.0, n_states: 10.0, n_words: 40_596.0, n_tokens: 2.9e6 };
        let of_text = multiply_adds(&params, sizes, Some(1e5), 0.0);
        assert!((5.0 * 2.0 * of_text / 5.8e13 - 1.0).abs() < 0.01);
    }
}
