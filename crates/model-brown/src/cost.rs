//! Memory and work of a clustering.

use crate::params::{Algorithm, BrownParams};
use latens_corpus::Corpus;
use latens_counts::{Boundary, distinct_pairs};
use latens_model::Cost;

/// The cost of a clustering. Tables are quadratic in the number of clusters.
pub(crate) fn cost(params: &BrownParams, corpus: &Corpus) -> Cost {
    let n_tokens = corpus.sentences.n_tokens() as f64;
    let n_bigrams = distinct_pairs(&corpus.sentences, 1, Boundary::Stream);
    // More clusters than words are refused, with a clearer message.
    let n_clusters = params.n_clusters.min(corpus.lexicon.vocab.len()) as f64;
    let slots = (n_clusters + 1.0).powi(2);
    // Losses, logarithms of sums, and counts of both directions, with 8 bytes each.
    let losses = 32.0 * slots;
    let (table, n_iterations, per_bigram) = match params.algorithm {
        // Every bigram of an inserted word changes a row of losses, and so does every bigram of a merged one.
        Algorithm::Brown => (losses, 1, 4.0),
        // The counts of the classes, and their copy for the hierarchy at the end.
        Algorithm::Exchange => (losses + 16.0 * slots, params.n_iterations, 2.0),
    };
    // A key of 8 bytes per token, sorted; then pairs, and neighbors on both sides, with 16 bytes each.
    let bigrams = (16.0 * n_tokens).max(48.0 * n_bigrams);
    Cost::new(n_iterations)
        .part("tables of clusters", table, Some("n_clusters"))
        .part("bigrams", bigrams, None)
        .multiply_adds(per_bigram * n_bigrams * n_clusters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_quadratic_in_clusters_and_work_is_linear() {
        let corpus = Corpus::from_lines(["a b a b", "a b"]).unwrap();
        let of = |n_clusters| {
            let params = BrownParams { n_clusters, ..BrownParams::default() };
            cost(&params, &corpus)
        };
        // 4 tables of 4 × 4 numbers of 8 bytes; 4 bigrams, including those with the end of a sentence.
        assert_eq!(of(3).parts()[0].bytes, 512.0);
        assert_eq!(of(3).multiply_adds_per_iteration(), 4.0 * 4.0 * 3.0);
        // `<unk>`, `<eos>`, a and b.
        assert_eq!(of(usize::MAX), of(4));
    }
}
