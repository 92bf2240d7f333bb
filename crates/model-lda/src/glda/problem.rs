//! Data and state shared by all samplers.

use super::gaussian::density::Density;
use super::gaussian::prior::Prior;
use super::gaussian::topic::Topic;
use super::gaussian::vectors::TypeVectors;
use crate::counts::TypeCounts;
use crate::dirichlet::log_mixtures;
use crate::documents::TypedDocuments;
use rayon::prelude::*;

/// The fixed data of sampling.
#[derive(Clone)]
pub(crate) struct Problem {
    pub(crate) prior: Prior,
    pub(crate) vectors: TypeVectors,
    pub(crate) documents: TypedDocuments,
    /// Exponent of the densities.
    pub(crate) weight: f64,
}

/// The sampled state.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The topic of each token.
    pub(crate) topics: Vec<u16>,
    /// Counts of each type in each topic.
    pub(crate) counts: TypeCounts,
    /// α of each topic.
    pub(crate) alpha: Vec<f64>,
}

impl Problem {
    /// Computes all topics from scratch.
    pub(crate) fn topics(&self, counts: &TypeCounts) -> Vec<Topic> {
        let topic = |members: Vec<(u32, u32)>| Topic::new(&self.prior, &members, &self.vectors);
        counts.members().into_par_iter().map(topic).collect()
    }

    /// Computes one topic from scratch.
    pub(crate) fn topic(&self, counts: &TypeCounts, topic: usize) -> Topic {
        let rows = counts.rows().map(|row| row[topic]).zip(0..);
        let members: Vec<(u32, u32)> = rows.filter(|&(n, _)| n > 0).map(|(n, t)| (t, n)).collect();
        Topic::new(&self.prior, &members, &self.vectors)
    }

    /// The predictive densities of topics.
    pub(crate) fn densities(&self, topics: &[Topic]) -> Vec<Density> {
        topics.par_iter().map(|topic| Density::predictive(topic, &self.prior)).collect()
    }

    /// ln p(z, X) of token topics and vectors, with mixtures and topic parameters integrated out.
    pub(crate) fn log_likelihood(&self, state: &State) -> f64 {
        let topics = self.topics(&state.counts);
        let marginals = topics.iter().map(|topic| topic.log_marginal(&self.prior)).sum::<f64>();
        marginals + log_mixtures(&self.documents, &state.topics, &state.alpha)
    }
}

impl State {
    pub(crate) fn new(
        documents: &TypedDocuments,
        topics: Vec<u16>,
        n_types: usize,
        alpha: Vec<f64>,
    ) -> State {
        let counts = TypeCounts::of(documents, &topics, n_types, alpha.len());
        State { topics, counts, alpha }
    }
}
