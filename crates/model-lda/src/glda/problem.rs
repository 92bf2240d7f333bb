//! What all samplers work on.

use super::gaussian::density::Density;
use super::gaussian::prior::Prior;
use super::gaussian::topic::Topic;
use super::gaussian::vectors::TypeVectors;
use crate::counts::TypeCounts;
use crate::dirichlet::log_mixtures;
use crate::documents::TypedDocuments;
use rayon::prelude::*;

/// What is given: it does not change while topics are sampled.
#[derive(Clone)]
pub(crate) struct Problem {
    pub(crate) prior: Prior,
    pub(crate) vectors: TypeVectors,
    pub(crate) documents: TypedDocuments,
    /// The power to which densities are raised.
    pub(crate) weight: f64,
}

/// What is sampled.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The topic of each token.
    pub(crate) topics: Vec<u16>,
    /// How often each type is in each topic.
    pub(crate) counts: TypeCounts,
    /// α of each topic.
    pub(crate) alpha: Vec<f64>,
}

impl Problem {
    /// All topics, from scratch.
    pub(crate) fn topics(&self, counts: &TypeCounts) -> Vec<Topic> {
        let topic = |members: Vec<(u32, u32)>| Topic::new(&self.prior, &members, &self.vectors);
        counts.members().into_par_iter().map(topic).collect()
    }

    /// One topic, from scratch.
    pub(crate) fn topic(&self, counts: &TypeCounts, topic: usize) -> Topic {
        let rows = counts.rows().map(|row| row[topic]).zip(0..);
        let members: Vec<(u32, u32)> = rows.filter(|&(n, _)| n > 0).map(|(n, t)| (t, n)).collect();
        Topic::new(&self.prior, &members, &self.vectors)
    }

    /// The predictive densities of topics.
    pub(crate) fn densities(&self, topics: &[Topic]) -> Vec<Density> {
        topics.par_iter().map(|topic| Density::predictive(topic, &self.prior)).collect()
    }

    /// ln p(z, X): topics of tokens and vectors together, with mixtures and topics integrated out.
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
