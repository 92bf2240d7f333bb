//! The posterior of the tags that a tagger returns.

use super::tagger::FeatureTagger;
use crate::tagging::heads::chain::LogSentence;
use crate::tagging::spans::starts;
use latens_math::chain::{log_forward, log_n_best, log_smooth};
use latens_math::log_sum_exp;
use latens_model::Matrix;
use std::collections::HashSet;

impl FeatureTagger {
    /// Posterior probabilities of the returned tags, given the scores of the words: one row per word.
    ///
    /// Whether a word of a span is returned as `B` or `I` depends on the tag before it, so pairs of tags are summed.
    pub(crate) fn returned_marginals(&self, words: &[&str], scores: &[f32]) -> Matrix<f32> {
        let (internal, returned) = (&self.tags.internal, &self.tags.returned);
        let mut marginals = Matrix::zeros(words.len(), returned.len());
        if words.is_empty() {
            return marginals;
        }
        let transitions = self.wide_transitions();
        let chain =
            LogSentence { scores: self.log_scores(words, scores), transitions: &transitions };
        if !self.tags.are_spans {
            let mut node = |step: usize, nodes: &[f64]| {
                nodes.iter().enumerate().for_each(|(tag, &p)| marginals[(step, tag)] = p as f32);
            };
            log_smooth(&chain, &mut node, |_, _| ());
            return marginals;
        }
        let column = |before: Option<&str>, tag: &str| {
            let name = match (starts(before, tag), tag.split_once('-')) {
                (Some(true), Some((_, kind))) => format!("B-{kind}"),
                (Some(false), Some((_, kind))) => format!("I-{kind}"),
                _ => "O".to_owned(),
            };
            returned.iter().position(|other| *other == name).expect("every type has both names")
        };
        let first: Vec<usize> = internal.iter().map(|tag| column(None, tag)).collect();
        let pairs =
            internal.iter().flat_map(|before| internal.iter().map(move |tag| (before, tag)));
        let later: Vec<usize> = pairs.map(|(before, tag)| column(Some(before), tag)).collect();
        let mut sums = vec![0.0; words.len() * returned.len()];
        let mut first_nodes = Vec::new();
        let node = |step: usize, nodes: &[f64]| {
            if step == 0 {
                first_nodes = nodes.to_vec();
            }
        };
        let edge = |step: usize, edges: &[f64]| {
            let sums = &mut sums[(step + 1) * returned.len()..];
            later.iter().zip(edges).for_each(|(&column, p)| sums[column] += p);
        };
        log_smooth(&chain, node, edge);
        first.iter().zip(&first_nodes).for_each(|(&column, p)| sums[column] += p);
        let narrow = sums.into_iter().map(|p| p as f32).collect();
        Matrix::from_vec(words.len(), returned.len(), narrow)
    }

    /// The `n` most probable sequences of tags with their log probabilities. Of internal sequences that are returned as
    /// the same tags, only the best one counts.
    pub(crate) fn n_best(&self, words: &[&str], scores: &[f32], n: usize) -> Vec<(Vec<u32>, f64)> {
        if words.is_empty() {
            return vec![(Vec::new(), 0.0)];
        }
        let transitions = self.wide_transitions();
        let chain =
            LogSentence { scores: self.log_scores(words, scores), transitions: &transitions };
        let log_sum = log_sum_exp(&log_forward(&chain)[words.len() - 1]);
        let mut n_internal = n;
        loop {
            let paths = log_n_best(&chain, n_internal);
            let is_all = paths.len() < n_internal;
            let mut seen = HashSet::new();
            let written =
                paths.iter().map(|(path, weight)| (self.tags.write(path), weight - log_sum));
            let distinct = written.filter(|(tags, _)| seen.insert(tags.clone()));
            let best: Vec<(Vec<u32>, f64)> = distinct.take(n).collect();
            if best.len() == n || is_all {
                return best;
            }
            n_internal *= 2;
        }
    }

    /// Scores of the internal tags of each word. A word with a fixed tag has no other.
    fn log_scores(&self, words: &[&str], scores: &[f32]) -> Vec<Vec<f64>> {
        let rows = words.iter().zip(scores.chunks_exact(self.tags.internal.len()));
        let row = |(word, scores): (&&str, &[f32])| match self.direct_tag(word) {
            None => scores.iter().map(|&score| f64::from(score)).collect(),
            Some(tag) => {
                let only = |i: usize| if i == tag as usize { 0.0 } else { f64::NEG_INFINITY };
                (0..scores.len()).map(only).collect()
            }
        };
        rows.map(row).collect()
    }

    fn wide_transitions(&self) -> Vec<f64> {
        self.weights.transitions.iter().map(|&w| f64::from(w)).collect()
    }
}
