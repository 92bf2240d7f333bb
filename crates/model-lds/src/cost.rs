//! Memory and work of learning.

use crate::params::LdsParams;
use latens_corpus::Corpus;
use latens_counts::{Budget, LagCounts, distinct_pairs};
use latens_model::Cost;

/// The cost of learning from a corpus, or from counts of its pairs.
pub(crate) fn cost(params: &LdsParams, corpus: &Corpus, counts: Option<&LagCounts>) -> Cost {
    let n_pairs = |lag: usize| match counts {
        Some(counts) => counts.lags().get(lag - 1).map_or(0.0, |lag| lag.nnz() as f64),
        None => distinct_pairs(&corpus.sentences, lag, params.boundary),
    };
    let n_pairs: Vec<f64> = (1..=params.counted_lags()).map(n_pairs).collect();
    let (n_all, n_used): (f64, f64) = (n_pairs.iter().sum(), n_pairs[..params.lags].iter().sum());
    let n_words = corpus.lexicon.vocab.len() as f64;
    // More dimensions than words are refused, with a clearer message.
    let dim = (params.dim as f64).min(n_words);
    // Counting keeps positions of words and moves to the disk beyond its budget. Its memory is free again when the
    // matrices are built, unless the caller counted.
    let n_tokens = corpus.sentences.n_tokens() as f64;
    let counting = match counts {
        Some(_) => 0.0,
        None => (8.0 * n_all).min(Budget::default().bytes as f64) + 16.0 * n_tokens,
    };
    // Rows and columns of the covariances, with a number and an index each.
    let covariances = 16.0 * n_all;
    // Four matrices in single precision while learning, and the model in its final form.
    let matrices = 5.0 * 4.0 * n_words * dim;
    // A few dozen matrices of states in double precision.
    let states = 40.0 * 8.0 * dim * dim;
    Cost::new(params.n_iterations)
        .part("matrices of words", matrices, Some("dim"))
        .part("pairs of words", covariances.max(counting), Some("lags"))
        .part("tables of words", 64.0 * n_words, None)
        .part("matrices of states", states, Some("dim"))
        .multiply_adds(2.0 * n_used * dim)
        .products(products(n_words, params.lags as f64, dim))
}

/// Multiplications with an addition in dense products per iteration, for r lags, V words and h dimensions.
///
/// Besides the products of the sparse counts and their transpose with C, the E step needs three products of V h² per lag.
/// The M step needs two more, and the steady state about 40 h³.
fn products(n_words: f64, n_lags: f64, dim: f64) -> f64 {
    let e_step = 3.0 * n_lags * n_words * dim * dim;
    let m_step = 2.0 * n_words * dim * dim;
    e_step + m_step + 40.0 * dim.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_agrees_with_a_count_by_hand() {
        // V = 10, h = 2, r = 3: 360 + 80 + 320.
        assert_eq!(products(10.0, 3.0, 2.0), 760.0);
    }

    #[test]
    fn counts_and_text_give_the_same_pairs() {
        let corpus = latens_testkit::zipfian_corpus(50, 100, 1);
        let params = LdsParams::default().lags(3).ssid_lags(2).dim(4);
        let mut watch = |_| std::ops::ControlFlow::Continue(());
        let counts =
            LagCounts::of(&corpus, 3, params.boundary, &Budget::default(), &mut watch).unwrap();
        let of_text = cost(&params, &corpus, None);
        let of_counts = cost(&params, &corpus, Some(&counts));
        let works = [&of_text, &of_counts].map(Cost::multiply_adds_per_iteration);
        assert_eq!(works[0], works[1]);
    }
}
