//! The averaged structured perceptron (Collins 2002).
//!
//! Where the best tags of a sentence differ from the true ones, the weights of the true tags increase by one and those of
//! the predicted tags decrease by one.

use crate::tagging::features::examples::Examples;
use crate::tagging::features::rows::{NO_ROW, RowValues};
use crate::tagging::weights::layout::Layout;
use latens_math::Rng;
use latens_math::chain::max_sum;
use std::ops::Range;

/// A perceptron during training. The average of the weights over all times is w − u/c, where u is the sum of all changes
/// of w, each times the time of the change, and c is the current time.
pub(crate) struct Perceptron<'a> {
    examples: &'a Examples,
    layout: &'a Layout,
    pub(crate) weights: Vec<f32>,
    pub(crate) weighted_changes: Vec<f64>,
    /// Number of sentences processed, plus one.
    pub(crate) time: u64,
}

impl<'a> Perceptron<'a> {
    pub(crate) fn new(examples: &'a Examples, layout: &'a Layout) -> Perceptron<'a> {
        let n = layout.n_weights();
        Perceptron {
            examples,
            layout,
            weights: vec![0.0; n],
            weighted_changes: vec![0.0; n],
            time: 1,
        }
    }

    /// Processes all sentences in random order and returns the fraction of wrong tags.
    pub(crate) fn epoch(&mut self, rng: &mut Rng) -> f64 {
        let mut order: Vec<usize> = (0..self.examples.ends.len()).collect();
        rng.shuffle(&mut order);
        let n_wrong: usize = order.into_iter().map(|sentence| self.learn(sentence)).sum();
        n_wrong as f64 / self.examples.n_tokens() as f64
    }

    /// The average of the weights over all times.
    pub(crate) fn average(&self) -> Vec<f64> {
        let pairs = self.weights.iter().zip(&self.weighted_changes);
        pairs.map(|(&w, u)| f64::from(w) - u / self.time as f64).collect()
    }

    /// Learns from one sentence and returns its number of wrong tags.
    fn learn(&mut self, sentence: usize) -> usize {
        let tokens = self.examples.sentence(sentence);
        let scores = self.scores(tokens.clone());
        let transitions = &self.weights[self.layout.transition_weights()];
        let found = max_sum(&scores, transitions, self.layout.n_tags);
        let truth = &self.examples.tags[tokens.clone()];
        let n_wrong = truth.iter().zip(&found).filter(|(t, f)| u32::from(**t) != **f).count();
        if n_wrong > 0 {
            let found: Vec<u16> = found.iter().map(|&tag| tag as u16).collect();
            self.correct(tokens, &found);
        }
        self.time += 1;
        n_wrong
    }

    fn scores(&self, tokens: Range<usize>) -> Vec<f32> {
        let n_tags = self.layout.n_tags;
        let mut scores = vec![0.0; tokens.len() * n_tags];
        for (token, scores) in tokens.clone().zip(scores.chunks_exact_mut(n_tags)) {
            for attribute in self.examples.lexical.attributes_of(token) {
                let range = self.layout.attribute(attribute);
                for (&tag, &w) in self.layout.tags[range.clone()].iter().zip(&self.weights[range]) {
                    scores[usize::from(tag)] += w;
                }
            }
            each_row(self.examples, self.layout, token, &tokens, |begin, value| {
                let weights = &self.weights[begin..begin + n_tags];
                scores.iter_mut().zip(weights).for_each(|(score, w)| *score += value * w);
            });
        }
        scores
    }

    fn correct(&mut self, tokens: Range<usize>, found: &[u16]) {
        let (examples, layout, n_tags) = (self.examples, self.layout, self.layout.n_tags);
        let truth = &examples.tags[tokens.clone()];
        for (token, (&truth, &found)) in tokens.clone().zip(truth.iter().zip(found)) {
            if truth == found {
                continue;
            }
            for attribute in examples.lexical.attributes_of(token) {
                let range = layout.attribute(attribute);
                for i in range {
                    match layout.tags[i] {
                        tag if tag == truth => self.change(i, 1.0),
                        tag if tag == found => self.change(i, -1.0),
                        _ => {}
                    }
                }
            }
            each_row(examples, layout, token, &tokens, |begin, value| {
                self.change(begin + usize::from(truth), value);
                self.change(begin + usize::from(found), -value);
            });
        }
        let begin = layout.transition_weights().start;
        for (truth, found) in truth.windows(2).zip(found.windows(2)).filter(|(t, f)| t != f) {
            for (pair, change) in [(truth, 1.0), (found, -1.0)] {
                let pair = usize::from(pair[0]) * n_tags + usize::from(pair[1]);
                if layout.transitions[pair] {
                    self.change(begin + pair, change);
                }
            }
        }
    }

    fn change(&mut self, weight: usize, change: f32) {
        self.weights[weight] += change;
        self.weighted_changes[weight] += f64::from(change) * self.time as f64;
    }
}

/// Visits the encoder features of a token: the start of the weights of a column, and the value of the feature.
fn each_row(
    examples: &Examples,
    layout: &Layout,
    token: usize,
    sentence: &Range<usize>,
    mut visit: impl FnMut(usize, f32),
) {
    for (block, rows) in examples.blocks.iter().enumerate() {
        for position in 0..layout.n_positions {
            let at = (token + position).wrapping_sub(examples.window);
            if !sentence.contains(&at) || rows.of_token[at] == NO_ROW {
                continue;
            }
            let (row, begin) = (rows.of_token[at] as usize, layout.block(block, position).start);
            match &rows.values {
                RowValues::Sparse { rows, .. } => {
                    rows.row(row)
                        .for_each(|(column, value)| visit(begin + column * layout.n_tags, value));
                }
                RowValues::Dense(values) => {
                    let values = &values[row * rows.n_features..(row + 1) * rows.n_features];
                    let columns = values.iter().enumerate();
                    columns
                        .for_each(|(column, &value)| visit(begin + column * layout.n_tags, value));
                }
            }
        }
    }
}
