//! Memory and work of sampling.

use super::params::{LdaParams, LdaSampler};
use super::sampler::{n_tables, padded};
use latens_corpus::DocumentCorpus;
use latens_model::Cost;

/// The cost of sampling.
pub(super) fn cost(params: &LdaParams, data: &DocumentCorpus) -> Cost {
    let (n_tokens, n_words) = (data.documents.n_tokens() as f64, data.lexicon.vocab.len() as f64);
    let n_documents = data.documents.len().max(1) as f64;
    let mean_length = n_tokens / n_documents;
    // More topics than tokens are refused, with a clearer message.
    let n_topics = params.n_topics.min(data.documents.n_tokens());
    let stride = padded(n_topics) as f64;
    let n_topics = n_topics as f64;
    let sampler = params.chosen_sampler(mean_length);
    let is_sparse = sampler == LdaSampler::Sparse;
    // The type and the topic of each token, and its place among the tokens of its type.
    let per_token = 4.0 + 2.0 + if is_sparse { 4.0 } else { 0.0 };
    let tokens = per_token * n_tokens + 8.0 * n_documents;
    // Counts in the layout of the sampler, one copy per thread, and as integers for the likelihood and the model.
    let n_tables = n_tables(data.documents.n_tokens()) as f64;
    let counts = 4.0 * n_words * (n_tables * stride + n_topics);
    // One weight per topic, or per topic that the document has.
    let per_draw = if is_sparse { mean_length.min(n_topics) } else { n_topics };
    Cost::new(params.n_iterations)
        .part("counts of topics", counts, Some("n_topics"))
        .part("topics of tokens", tokens, None)
        .multiply_adds(n_tokens * per_draw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_corpus::Documents;

    #[test]
    fn a_dense_sweep_has_one_product_per_token_and_topic() {
        let data = Documents::from_texts(["a b a", "b"]).unwrap();
        let params = LdaParams { n_topics: 3, ..LdaParams::default() };
        assert_eq!(cost(&params, &data).multiply_adds_per_iteration(), 4.0 * 3.0);
        // The documents have two tokens on average.
        let params = LdaParams { sampler: LdaSampler::Sparse, ..params };
        assert_eq!(cost(&params, &data).multiply_adds_per_iteration(), 4.0 * 2.0);
    }
}
