//! Topics that are updated after every change of a token.

use super::super::problem::Problem;
use crate::counts::TypeCounts;
use crate::glda::gaussian::topic::Topic;

/// The topics of a collapsed sampler and their counts.
pub(crate) struct Collapsed<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) topics: Vec<Topic>,
    pub(crate) counts: &'a mut TypeCounts,
    /// The vector of the current token.
    pub(crate) x: Vec<f64>,
    scratch: Vec<f64>,
    pub(crate) n_rebuilt: u64,
}

impl<'a> Collapsed<'a> {
    pub(crate) fn new(problem: &'a Problem, counts: &'a mut TypeCounts) -> Collapsed<'a> {
        let topics = problem.topics(counts);
        Collapsed::with_topics(problem, counts, topics)
    }

    /// Like `new`, with precomputed topics.
    pub(crate) fn with_topics(
        problem: &'a Problem,
        counts: &'a mut TypeCounts,
        topics: Vec<Topic>,
    ) -> Collapsed<'a> {
        let dim = problem.prior.dim();
        let (x, scratch) = (vec![0.0; dim], vec![0.0; dim]);
        Collapsed { problem, topics, counts, x, scratch, n_rebuilt: 0 }
    }

    /// Selects a token of this type as the current one.
    #[inline(always)]
    pub(crate) fn look_at(&mut self, token_type: u32) {
        let vector = self.problem.vectors.row(token_type);
        self.x.iter_mut().zip(vector).for_each(|(x, &value)| *x = f64::from(value));
    }

    /// Weighted log density of the token in a topic that does not contain it.
    #[inline(always)]
    pub(crate) fn log_density(&mut self, topic: usize) -> f64 {
        let Problem { prior, weight, .. } = self.problem;
        weight * self.topics[topic].log_density(prior, &self.x, &mut self.scratch)
    }

    /// Weighted log density in the topic that contains the token, given its other tokens.
    #[inline(always)]
    pub(crate) fn log_density_without(&mut self, topic: usize) -> f64 {
        let Problem { prior, weight, .. } = self.problem;
        weight * self.topics[topic].log_density_without(prior, &self.x, &mut self.scratch)
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, token_type: u32, topic: usize) {
        self.counts.add(token_type, topic as u16);
        self.topics[topic].add(&self.problem.prior, &self.x, &mut self.scratch);
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, token_type: u32, topic: usize) {
        self.counts.remove(token_type, topic as u16);
        if !self.topics[topic].remove(&self.problem.prior, &self.x, &mut self.scratch) {
            self.topics[topic] = self.problem.topic(self.counts, topic);
            self.n_rebuilt += 1;
        }
    }
}
