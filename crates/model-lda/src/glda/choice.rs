//! The work of each sampler, and the choice among them.

use super::params::{Covariance, GldaParams, Sampler};

/// Share of tokens that move to another topic in a sweep (0.01 to 0.04 after the first sweeps).
const MOVED: f64 = 0.04;

/// Numbers of tokens and types that have a vector, of topics and of dimensions.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) n_tokens: f64,
    pub(super) n_types: f64,
    pub(super) n_topics: f64,
    pub(super) dim: f64,
}

impl Sizes {
    pub(super) fn new(params: &GldaParams, n_tokens: usize, n_types: usize, dim: usize) -> Sizes {
        Sizes {
            n_tokens: n_tokens as f64,
            n_types: n_types as f64,
            // More topics than tokens are refused, with a clearer message.
            n_topics: params.n_topics.min(n_tokens) as f64,
            dim: dim as f64,
        }
    }
}

/// Measured nanoseconds per multiplication with an addition: of one density at a time, and in the table of all densities.
const PER_DENSITY: f64 = 1.0;
const IN_TABLE: f64 = 0.1;
/// Measured nanoseconds per weight of a topic, when a token is drawn.
const PER_WEIGHT: f64 = 1.0;

/// Seconds of training below which speed does not matter.
const SHORT: f64 = 1.0;
/// Vectors per topic and dimension below which explicit covariances depend so much on each token that `parallel` mixes
/// slowly.
const FEW_VECTORS: f64 = 5.0;

/// A sampler, and why it was chosen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) sampler: Sampler,
    /// `None` if it was asked for.
    pub(super) reason: Option<String>,
}

/// The sampler to use. The choice depends on the data, not on the machine, so that equal runs give equal models.
pub(super) fn choose(params: &GldaParams, sizes: Sizes) -> Choice {
    if params.sampler != Sampler::Auto {
        return Choice { sampler: params.sampler, reason: None };
    }
    let [exact, mh, parallel] = [Sampler::Exact, Sampler::Mh, Sampler::Parallel]
        .map(|sampler| params.n_iterations as f64 * seconds(params, sampler, sizes));
    let estimates = format!(
        "estimated seconds of one thread: exact {exact:.1}, mh {mh:.1}, parallel {parallel:.1}"
    );
    let (sampler, why) = if exact < SHORT {
        (Sampler::Exact, "mixes best, and training is short")
    } else if sizes.n_tokens < FEW_VECTORS * sizes.n_topics * sizes.dim {
        let sampler = if exact < mh { Sampler::Exact } else { Sampler::Mh };
        (sampler, "topics have few vectors, for which `parallel` mixes slowly")
    } else if parallel <= exact {
        (Sampler::Parallel, "fastest")
    } else {
        (Sampler::Exact, "fastest")
    };
    Choice { sampler, reason: Some(format!("{why}; {estimates}")) }
}

/// Estimated seconds per sweep on one thread.
fn seconds(params: &GldaParams, sampler: Sampler, sizes: Sizes) -> f64 {
    let Sizes { n_tokens, n_topics, .. } = sizes;
    let (work, weights) = (multiply_adds(params, sampler, sizes), n_tokens * n_topics);
    let nanoseconds = match sampler {
        Sampler::Mh | Sampler::Parallel => IN_TABLE * (work - weights) + PER_WEIGHT * weights,
        _ => PER_DENSITY * work,
    };
    1e-9 * nanoseconds
}

/// Multiplications with an addition per sweep.
///
/// A density is a product with a triangular matrix, of M²/2 multiplications (M for other covariances). A change of a
/// Cholesky factor takes 3 M².
pub(super) fn multiply_adds(params: &GldaParams, sampler: Sampler, sizes: Sizes) -> f64 {
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

    #[test]
    fn the_choice_follows_the_estimated_time() {
        let params = GldaParams::default().n_topics(20);
        let chosen = |n_tokens, n_types, dim| {
            choose(&params, Sizes::new(&params, n_tokens, n_types, dim)).sampler
        };
        // 7,600 short documents: `exact` would take minutes.
        assert_eq!(chosen(150_000, 12_000, 50), Sampler::Parallel);
        assert_eq!(chosen(150_000, 12_000, 300), Sampler::Parallel);
        assert_eq!(chosen(500, 200, 10), Sampler::Exact);
        // 20 topics of 100 dimensions, and fewer than 10,000 vectors.
        assert_ne!(chosen(8_000, 2_000, 100), Sampler::Parallel);
        let asked = GldaParams::default().sampler(Sampler::Mh);
        let sizes = Sizes::new(&asked, 500, 200, 10);
        assert_eq!(choose(&asked, sizes), Choice { sampler: Sampler::Mh, reason: None });
    }
}
