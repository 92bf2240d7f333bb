//! Memory and work of sampling.

use super::choice::{Choice, Sizes, choose, multiply_adds};
use super::params::{Covariance, GldaParams, Sampler};
use crate::draw::padded;
use latens_corpus::{DocumentCorpus, WordId};
use latens_model::{Cost, WordVectors};

/// The cost of sampling. Without vectors it is that of the documents, and fitting fails.
pub(super) fn cost(
    params: &GldaParams,
    data: &DocumentCorpus,
    vectors: Option<&WordVectors>,
) -> Cost {
    let has_vector = |word: WordId| vectors.is_some_and(|vectors| vectors.get(word).is_some());
    let known: Vec<bool> = (0..data.lexicon.vocab.len()).map(|id| has_vector(id.into())).collect();
    let tokens = data.documents.iter().flat_map(|document| document.words.iter());
    let n_tokens = tokens.filter(|word| known.get(word.index()) == Some(&true)).count();
    let dim = vectors.map_or(0, WordVectors::dim);
    let n_types = known.iter().filter(|&&known| known).count();
    let sizes = Sizes::new(params, n_tokens, n_types, dim);
    let Choice { sampler, .. } = choose(params, sizes);
    let Sizes { n_types, n_topics, dim, .. } = sizes;
    let stride = padded(params.n_topics.min(n_tokens)) as f64;
    let matrix = match params.covariance {
        Covariance::Full => dim * dim,
        Covariance::Diagonal => dim,
        Covariance::Spherical => 1.0,
    };
    // Copies of the topics: those of the sampler; those of the likelihood, or of the tables of densities, and half as
    // much for whiteners in single precision.
    let n_copies = match sampler {
        Sampler::Exact | Sampler::Cholesky | Sampler::Naive => 1.5,
        Sampler::Mh | Sampler::Alias | Sampler::Parallel | Sampler::Auto => 2.5,
    };
    let topics = n_copies * 8.0 * n_topics * (matrix + dim);
    let n_tables = match sampler {
        Sampler::Exact | Sampler::Cholesky | Sampler::Naive => 0.0,
        // The table, and the counts of the other shards.
        Sampler::Mh => 2.0,
        // And 16 bytes per topic of an alias table.
        Sampler::Alias => 6.0,
        Sampler::Parallel | Sampler::Auto => 1.0,
    };
    Cost::new(params.n_iterations)
        .part("topics", topics, Some("n_topics"))
        .part("counts of topics", 4.0 * n_types * n_topics, Some("n_topics"))
        .part("densities of words", n_tables * 4.0 * n_types * stride, Some("n_topics"))
        // The vectors of types, and those of the model.
        .part("vectors", 8.0 * n_types * dim, None)
        .part("topics of tokens", 6.0 * sizes.n_tokens + 8.0 * data.documents.len() as f64, None)
        .multiply_adds(multiply_adds(params, sampler, sizes))
}
