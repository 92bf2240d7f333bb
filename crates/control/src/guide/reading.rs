//! The beginning of a text, and what may follow it under a constraint.

use super::lookahead::Lookahead;
use super::options::Lengths;
use super::products::two_dots;
use crate::error::ControlError;
use latens_corpus::WordId;
use latens_model_hmm::{EmittingStates, Hmm};
use rayon::prelude::*;

/// A hidden Markov model with the tables of a constraint.
#[derive(Clone, Copy)]
pub struct Guide<'a> {
    hmm: &'a Hmm,
    lookahead: &'a Lookahead,
}

/// The beginning of a text: the distribution of the next hidden state, and the state of the automaton.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// p(z_{t+1} | x_1 … x_t).
    pub(super) predicted: Vec<f64>,
    pub(super) state: usize,
    pub(super) n_left: usize,
}

/// Natural logarithms of the probabilities of the next word x and of the constraint α, one entry per word. The entry of
/// `<eos>` stands for the end of the text.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NextWords {
    /// ln p(x, α | text). Their sum is p(α | text).
    pub joint: Vec<f64>,
    /// ln p(α | text, x); −∞ also for words that the model never emits here.
    pub conditional: Vec<f64>,
}

/// g(z') β_{n−1}(s', z') for each state s' to which a word leads, and the logarithm of its scale.
struct Targets {
    /// The index of the state to which each class leads; `None` if it makes the constraint impossible.
    of_class: Vec<Option<usize>>,
    weights: Vec<(Vec<f64>, f64)>,
}

impl Reading {
    /// The state of the automaton.
    pub fn state(&self) -> usize {
        self.state
    }

    /// The number of words that may follow.
    pub fn n_left(&self) -> usize {
        self.n_left
    }
}

impl<'a> Guide<'a> {
    /// Uses tables with the model for which they were computed.
    pub fn new(hmm: &'a Hmm, lookahead: &'a Lookahead) -> Guide<'a> {
        Guide { hmm, lookahead }
    }

    /// The model.
    pub fn hmm(&self) -> &'a Hmm {
        self.hmm
    }

    /// The tables.
    pub fn lookahead(&self) -> &'a Lookahead {
        self.lookahead
    }

    /// The empty text.
    pub fn start(&self) -> Reading {
        let predicted = self.hmm.start().iter().map(|&p| f64::from(p)).collect();
        Reading { predicted, state: 0, n_left: self.lookahead.options.lengths.max }
    }

    /// A given beginning, whose words do not count towards the length. Fails if the model cannot generate it, or if no
    /// text that begins with it satisfies the constraint.
    pub fn start_with(&self, prefix: &[WordId]) -> Result<Reading, ControlError> {
        let vocab = &self.hmm.lexicon().vocab;
        let mut reading = self.start();
        for &word in prefix {
            let n_left = reading.n_left;
            if self.advance(&mut reading, word) == f64::NEG_INFINITY {
                let word = vocab.word(word).to_owned();
                return Err(ControlError::ImpossiblePrefix { word });
            }
            reading.n_left = n_left;
        }
        self.check(&reading, prefix)?;
        Ok(reading)
    }

    /// Appends a word, and returns its log-probability under the model without the constraint. After a word of
    /// probability zero, the constraint has probability zero.
    ///
    /// # Panics
    /// If no word may follow, or the word is not in the vocabulary or is `<eos>`.
    pub fn read(&self, reading: &mut Reading, word: WordId) -> f64 {
        assert!(reading.n_left > 0, "the text has its maximum length");
        self.advance(reading, word)
    }

    fn advance(&self, reading: &mut Reading, word: WordId) -> f64 {
        assert!(word != WordId::EOS, "<eos> is not a word of a text");
        let mut filtered = vec![0.0; reading.predicted.len()];
        let mut sum = 0.0;
        if let Some((states, probabilities)) = self.hmm.emitting_states(word) {
            for (state, &p) in states.iter().zip(probabilities) {
                let weight = reading.predicted[state] * f64::from(p);
                filtered[state] = weight;
                sum += weight;
            }
        }
        reading.state = self.lookahead.automaton.next(reading.state, word.index());
        reading.n_left = reading.n_left.saturating_sub(1);
        if sum <= 0.0 {
            reading.predicted.fill(0.0);
            return f64::NEG_INFINITY;
        }
        filtered.iter_mut().for_each(|weight| *weight /= sum);
        reading.predicted = self.hmm.next_states(&filtered);
        sum.ln().min(0.0)
    }

    /// ln p(α | text): the constraint will be met by a text with this beginning.
    pub fn log_prob(&self, reading: &Reading) -> f64 {
        match self.lookahead.next_word(reading.n_left, reading.state) {
            None => f64::NEG_INFINITY,
            Some((values, log_scale)) => {
                let terms = values.iter().zip(&reading.predicted).map(|(value, g)| value * g);
                // Rounding may exceed 1.
                (terms.sum::<f64>().ln() + log_scale).min(0.0)
            }
        }
    }

    /// Computes the distribution of the next word under the constraint, with one pass over the emissions.
    pub fn next_words(&self, reading: &Reading, out: &mut NextWords) {
        let Lookahead { automaton, .. } = self.lookahead;
        let n_words = self.hmm.n_words();
        let g = &reading.predicted;
        let targets = self.targets(reading);
        let allowed = self.lookahead.allowed();
        let of_word = |word: usize| {
            let id = WordId::from(word);
            let nothing = (f64::NEG_INFINITY, f64::NEG_INFINITY);
            if id == WordId::EOS {
                return self.end(reading);
            }
            let target = targets.of_class[automaton.class_of(word)];
            let Some(target) = target.filter(|_| allowed.contains(id)) else { return nothing };
            let (weights, log_scale) = &targets.weights[target];
            let Some((states, b)) = self.hmm.emitting_states(id) else { return nothing };
            let (p, joint) = match states {
                EmittingStates::Range(range) => two_dots(b, &g[range.clone()], &weights[range]),
                EmittingStates::List(list) => {
                    let states = list.iter().map(|&state| state as usize);
                    states.zip(b).fold((0.0, 0.0), |(p, joint), (state, &b)| {
                        (p + f64::from(b) * g[state], joint + f64::from(b) * weights[state])
                    })
                }
            };
            if joint <= 0.0 {
                return nothing;
            }
            let joint = joint.ln() + log_scale;
            (joint.min(0.0), (joint - p.ln()).min(0.0))
        };
        (0..n_words)
            .into_par_iter()
            .with_min_len(512)
            .map(of_word)
            .unzip_into_vecs(&mut out.joint, &mut out.conditional);
    }

    fn targets(&self, reading: &Reading) -> Targets {
        let automaton = &self.lookahead.automaton;
        let mut targets =
            Targets { of_class: vec![None; automaton.n_classes()], weights: Vec::new() };
        let Some(n) = reading.n_left.checked_sub(1) else { return targets };
        for (target, classes) in automaton.edges(reading.state) {
            let Some((mut weights, log_scale)) = self.lookahead.row(n, target) else { continue };
            weights.iter_mut().zip(&reading.predicted).for_each(|(weight, g)| *weight *= g);
            classes.iter().for_each(|&class| targets.of_class[class] = Some(targets.weights.len()));
            targets.weights.push((weights, log_scale));
        }
        targets
    }

    /// The logarithms for the end of the text.
    fn end(&self, reading: &Reading) -> (f64, f64) {
        let nothing = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        if !self.lookahead.may_end(reading.state, reading.n_left) {
            return nothing;
        }
        let Some((states, b)) = self.hmm.emitting_states(WordId::EOS) else { return nothing };
        let terms = states.iter().zip(b).map(|(z, &b)| reading.predicted[z] * f64::from(b));
        let joint = terms.sum::<f64>().ln().min(0.0);
        (joint, if joint > f64::NEG_INFINITY { 0.0 } else { joint })
    }

    /// Explains why the constraint cannot be met after a beginning.
    fn check(&self, reading: &Reading, prefix: &[WordId]) -> Result<(), ControlError> {
        let vocab = &self.hmm.lexicon().vocab;
        let text = || prefix.iter().map(|&word| vocab.word(word)).collect::<Vec<_>>().join(" ");
        let Lengths { min, max } = self.lookahead.options.lengths;
        match self.lookahead.distances[reading.state] {
            None if prefix.is_empty() => {
                return Err(ControlError::Unsatisfiable { part: "the constraint".into() });
            }
            None => return Err(ControlError::Prefix { prefix: text() }),
            Some(needed) if needed > max => return Err(ControlError::TooShort { needed, max }),
            Some(_) => (),
        }
        if !self.lookahead.has_length(reading.state) {
            let second = format!("the length of {min} to {max} words");
            return Err(ControlError::Contradiction { first: "the constraint".into(), second });
        }
        if self.log_prob(reading) == f64::NEG_INFINITY {
            let after = match prefix.is_empty() {
                true => "the beginning of the text".to_owned(),
                false => format!("`{}`", text()),
            };
            return Err(ControlError::ImpossibleConstraint { after });
        }
        Ok(())
    }
}

impl Lookahead {
    /// Whether the automaton accepts a text of an allowed length from a state.
    fn has_length(&self, state: usize) -> bool {
        let Lengths { min, max } = self.options.lengths;
        let mut reached = vec![false; self.automaton.n_states()];
        reached[state] = true;
        for n in 0..=max {
            let accepts = |(state, &is): (usize, &bool)| is && self.automaton.is_accepting(state);
            if n >= min && reached.iter().enumerate().any(accepts) {
                return true;
            }
            let mut next = vec![false; reached.len()];
            for state in (0..reached.len()).filter(|&state| reached[state]) {
                for class in 0..self.automaton.n_classes() {
                    next[self.automaton.next_by_class(state, class)] = true;
                }
            }
            reached = next;
        }
        false
    }
}
