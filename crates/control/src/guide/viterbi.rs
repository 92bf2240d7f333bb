//! The most probable text that satisfies a constraint.

use super::edges::{Edge, end_probabilities};
use super::layers::{Combine, Layer, Recursion, edges_of};
use super::lookahead::Lookahead;
use super::options::Precision;
use super::reading::{Guide, Reading};
use crate::error::ControlError;
use latens_corpus::WordId;
use std::convert::Infallible;

/// The most probable continuation of a text together with its hidden states.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MostProbable {
    /// The words that follow, without `<eos>`.
    pub words: Vec<WordId>,
    /// The hidden states of these words and of `<eos>`.
    pub states: Vec<usize>,
    /// ln p(words, states | text).
    pub log_prob: f64,
}

impl Guide<'_> {
    /// The pair of words and hidden states with the highest probability among those that satisfy the constraint (Viterbi).
    /// `None` if the constraint has probability zero.
    ///
    /// Takes as many multiplications as the tables of the constraint, but not as matrix products: it is several times
    /// slower. Needs tables of its own in double precision.
    pub fn most_probable(&self, reading: &Reading) -> Result<Option<MostProbable>, ControlError> {
        let Lookahead { automaton, options, .. } = self.lookahead();
        Lookahead::check_memory(self.hmm(), automaton, options, Precision::Double)?;
        Ok(self.viterbi(reading))
    }

    fn viterbi(&self, reading: &Reading) -> Option<MostProbable> {
        let (hmm, lookahead) = (self.hmm(), self.lookahead());
        let mut row = lookahead.row_of[reading.state]?;
        let edges = lookahead.row_edges(hmm, |best, p| *best = best.max(p));
        let (accepting, ends) = (lookahead.accepting_rows(), end_probabilities(hmm));
        let recursion = Recursion {
            edges: &edges,
            accepting: &accepting,
            ends: &ends,
            lengths: lookahead.options.lengths,
        };
        let mut layers: Vec<Layer<f64>> = Vec::new();
        for n in 0..reading.n_left {
            let step = |vectors: &[f64], out: &mut [f64]| -> Result<(), Infallible> {
                hmm.maxima(vectors, out);
                Ok(())
            };
            let Ok(layer) = recursion.layer(n, layers.last(), Combine::Max, step);
            layers.push(layer);
        }
        let mut found = MostProbable { words: vec![], states: vec![], log_prob: f64::NEG_INFINITY };
        let (mut incoming, mut n_left) = (reading.predicted.clone(), reading.n_left);
        let mut values = vec![0.0; hmm.n_states()];
        loop {
            let before = n_left.checked_sub(1).map(|n| &layers[n]);
            let from = edges_of(&edges, row);
            let log_scale =
                recursion.next_word(from, row, n_left, before, Combine::Max, &mut values);
            let products = values.iter().zip(&incoming).map(|(value, a)| value * a);
            let (state, best) = argmax(products)?;
            if found.states.is_empty() {
                found.log_prob = best.ln() + log_scale;
            }
            found.states.push(state);
            let term = |edge: &Edge<f64>| {
                let before = before.expect("an edge needs a word");
                let value = before.rows[edge.to * ends.len() + state];
                edge.weights[state].ln() + value.ln() + before.log_scales[edge.to]
            };
            let next = before.and_then(|_| {
                let best = from.iter().max_by(|a, b| term(a).total_cmp(&term(b)))?;
                Some((best, term(best))).filter(|(_, term)| *term > f64::NEG_INFINITY)
            });
            let may_end = recursion.may_end(row, n_left);
            let end = if may_end { ends[state].ln() } else { f64::NEG_INFINITY };
            match next.filter(|(_, term)| *term > end) {
                None => return Some(found),
                Some((edge, _)) => {
                    found.words.push(self.likeliest_word(edge, state)?);
                    incoming = hmm.transition(state).into_iter().map(f64::from).collect();
                    row = edge.to;
                    n_left -= 1;
                }
            }
        }
    }

    /// The word of an edge that a hidden state emits with the highest probability.
    fn likeliest_word(&self, edge: &Edge<f64>, state: usize) -> Option<WordId> {
        let (automaton, allowed) = (self.lookahead().automaton(), self.lookahead().allowed());
        let emission = self.hmm().emission(state);
        let words = emission.iter().enumerate().map(|(word, &p)| (WordId::from(word), p));
        let of_edge = words.filter(|(word, _)| {
            allowed.contains(*word) && edge.classes.contains(&automaton.class_of(word.index()))
        });
        let best = of_edge.fold(None, |best: Option<(WordId, f32)>, (word, p)| match best {
            Some((_, largest)) if largest >= p => best,
            _ => Some((word, p)),
        });
        best.map(|(word, _)| word)
    }
}

/// The index and the value of the first largest positive value.
fn argmax(values: impl Iterator<Item = f64>) -> Option<(usize, f64)> {
    values.enumerate().fold(None, |best, (i, value)| match best {
        Some((_, largest)) if largest >= value => best,
        _ if value > 0.0 => Some((i, value)),
        _ => best,
    })
}
