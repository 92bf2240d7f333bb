//! Memory and work of sampling.

use super::params::{Covariance, GldaParams, Sampler};
use crate::draw::padded;
use latens_corpus::{DocumentCorpus, WordId};
use latens_model::{Cost, WordVectors};

/// Share of tokens that move to another topic in a sweep (0.01 to 0.04 after the first sweeps).
const MOVED: f64 = 0.04;

/// Numbers of tokens and types that have a vector, of topics and of dimensions.
#[derive(Clone, Copy)]
struct Sizes {
    n_tokens: f64,
    n_types: f64,
    n_topics: f64,
    dim: f64,
}

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
    let sizes = Sizes {
        n_tokens: n_tokens as f64,
        n_types: known.iter().filter(|&&known| known).count() as f64,
        // More topics than tokens are refused, with a clearer message.
        n_topics: params.n_topics.min(n_tokens) as f64,
        dim: dim as f64,
    };
    let sampler = params.chosen_sampler(n_tokens, dim);
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

/// Multiplications with an addition per sweep.
///
/// A density is a product with a triangular matrix, of M²/2 multiplications (M for other covariances). A change of a
/// Cholesky factor takes 3 M².
fn multiply_adds(params: &GldaParams, sampler: Sampler, sizes: Sizes) -> f64 {
    let Sizes { n_tokens, n_types, n_topics, dim } = sizes;
    let is_full = params.covariance == Covariance::Full;
    let density = if is_full { dim * dim / 2.0 } else { dim };
    let update = if is_full { 3.0 * dim * dim } else { dim };
    let table = n_types * n_topics * density;
    let moves = n_tokens * MOVED * 2.0 * update;
    match sampler {
        Sampler::Exact => n_tokens * n_topics * density + moves,
        Sampler::Cholesky => n_tokens * (n_topics * density + 2.0 * update),
        // A Cholesky decomposition takes M³/6.
        Sampler::Naive => {
            let factor = if is_full { dim.powi(3) / 6.0 } else { dim };
            n_tokens * n_topics * (factor + density)
        }
        // The table of every shard has the types of its documents, at most all types.
        Sampler::Mh => {
            params.n_shards as f64 * table + n_tokens * (n_topics + MOVED * 2.0 * density) + moves
        }
        Sampler::Alias => {
            let of_tokens = n_tokens * (2.0 * density + 2.0 * update);
            params.n_shards as f64 * table + of_tokens
        }
        // The table, the scatter of each type in its topics, and one weight per token and topic.
        Sampler::Parallel | Sampler::Auto => {
            table + n_types.max(n_topics) * density + n_tokens * n_topics
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_follows_the_sampler() {
        let sizes = Sizes { n_tokens: 10.0, n_types: 4.0, n_topics: 3.0, dim: 2.0 };
        let params = GldaParams::default().n_shards(2);
        let work = |sampler| multiply_adds(&params, sampler, sizes);
        // 10 tokens × 3 topics × 2²/2, and 0.4 moves of 2 × 3 × 2².
        assert!((work(Sampler::Exact) - (60.0 + 0.4 * 24.0)).abs() < 1e-9);
        assert_eq!(work(Sampler::Cholesky), 60.0 + 10.0 * 24.0);
        // 4 types × 3 topics × 2²/2, 4 × 2²/2, and 10 × 3 weights.
        assert_eq!(work(Sampler::Parallel), 24.0 + 8.0 + 30.0);
    }
}
