//! Combinations of constraints, and the limits on their automata.

use crate::automaton::{Automaton, product};
use crate::constraint::{Constraint, Node};
use crate::error::ControlError;
use crate::patterns::{lengths, phrases};
use latens_corpus::Lexicon;

/// What the ids of a model's vocabulary stand for.
#[derive(Clone, Copy, Debug)]
pub enum Alphabet<'a> {
    /// Words. A text is written with a space between two words.
    Words(&'a Lexicon),
    /// Pieces of text, as of a byte-pair tokenizer. A text is their concatenation. `None` for ids that are not text, which
    /// no text contains: `<unk>`, `<eos>` and special tokens.
    Pieces(&'a [Option<Vec<u8>>]),
}

/// A compiled constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compiled {
    /// Everything but the length.
    pub automaton: Automaton,
    /// The minimum number of words.
    pub min_words: usize,
    /// The maximum number of words.
    pub max_words: Option<usize>,
}

/// The largest number of states of the automaton of a constraint, unless another limit is chosen.
pub const MAX_STATES: usize = 10_000;

/// Products have up to this many times more states before they are minimized.
const BEFORE_MINIMIZATION: usize = 20;

impl Constraint {
    /// Compiles the constraint with a limit of [`MAX_STATES`] states.
    pub fn compile(&self, alphabet: &Alphabet<'_>) -> Result<Compiled, ControlError> {
        self.compile_with(alphabet, MAX_STATES)
    }

    /// Compiles the constraint to a minimal automaton.
    ///
    /// Lengths of a conjunction are not part of the automaton, because tables know the number of words anyway.
    pub fn compile_with(
        &self,
        alphabet: &Alphabet<'_>,
        max_states: usize,
    ) -> Result<Compiled, ControlError> {
        Compiler { alphabet: *alphabet, max_states }.compiled(self)
    }
}

pub(super) struct Compiler<'a> {
    pub(super) alphabet: Alphabet<'a>,
    pub(super) max_states: usize,
}

impl Compiler<'_> {
    pub(super) fn n_symbols(&self) -> usize {
        match self.alphabet {
            Alphabet::Words(lexicon) => lexicon.vocab.len(),
            Alphabet::Pieces(pieces) => pieces.len(),
        }
    }

    fn compiled(&self, constraint: &Constraint) -> Result<Compiled, ControlError> {
        let (mut parts, mut min_words, mut max_words) = (Vec::new(), 0, None::<usize>);
        for part in constraint.conjuncts() {
            match (&part.0, self.alphabet) {
                (Node::Words { min, max }, Alphabet::Words(_)) => {
                    self.check_lengths(part, *min, *max)?;
                    min_words = min_words.max(*min);
                    max_words = max_words.into_iter().chain(*max).min();
                    if let Some(max) = max_words.filter(|max| *max < min_words) {
                        let part = constraint.to_string();
                        return Err(ControlError::Lengths { part, min: min_words, max });
                    }
                }
                _ => parts.push(part),
            }
        }
        let mut automaton = self.conjunction(&parts)?;
        if let Alphabet::Pieces(pieces) = self.alphabet {
            automaton = automaton.without(|id| pieces[id].is_none());
        }
        Ok(Compiled { automaton, min_words, max_words })
    }

    fn check_lengths(
        &self,
        part: &Constraint,
        min: usize,
        max: Option<usize>,
    ) -> Result<(), ControlError> {
        match max.filter(|&max| max < min) {
            Some(max) => Err(ControlError::Lengths { part: part.to_string(), min, max }),
            None => Ok(()),
        }
    }

    /// The intersection of several constraints, none of which may be empty.
    fn conjunction(&self, parts: &[&Constraint]) -> Result<Automaton, ControlError> {
        let mut done: Vec<(&Constraint, Automaton)> = Vec::new();
        let mut all: Option<Automaton> = None;
        for &part in parts {
            let automaton = self.automaton(part)?;
            if automaton.is_empty() {
                return Err(ControlError::Unsatisfiable { part: part.to_string() });
            }
            let joined = match &all {
                None => automaton.clone(),
                Some(all) => self.product(part, all, &automaton, |a, b| a && b)?,
            };
            if joined.is_empty() {
                return Err(self.contradiction(&done, part, &automaton));
            }
            self.check_size(part, &joined)?;
            all = Some(joined);
            done.push((part, automaton));
        }
        all.map_or_else(|| self.automaton(&Constraint::anything()), Ok)
    }

    /// Names the part that excludes the last one, if it is a single one.
    fn contradiction(
        &self,
        done: &[(&Constraint, Automaton)],
        last: &Constraint,
        automaton: &Automaton,
    ) -> ControlError {
        let excludes = |(_, other): &&(&Constraint, Automaton)| {
            let max = self.max_states * BEFORE_MINIMIZATION;
            product(other, automaton, max, |a, b| a && b).is_some_and(|both| both.is_empty())
        };
        let first = match done.iter().find(excludes) {
            Some((other, _)) => other.to_string(),
            None => Constraint::all(done.iter().map(|(part, _)| (*part).clone())).to_string(),
        };
        ControlError::Contradiction { first, second: last.to_string() }
    }

    pub(super) fn product(
        &self,
        part: &Constraint,
        a: &Automaton,
        b: &Automaton,
        accepts: impl Fn(bool, bool) -> bool,
    ) -> Result<Automaton, ControlError> {
        product(a, b, self.max_states * BEFORE_MINIMIZATION, accepts)
            .ok_or_else(|| self.too_large(part))
    }

    pub(super) fn too_large(&self, part: &Constraint) -> ControlError {
        ControlError::TooLarge { part: part.to_string(), max_states: self.max_states }
    }

    fn check_size(&self, part: &Constraint, automaton: &Automaton) -> Result<(), ControlError> {
        if automaton.n_states() > self.max_states {
            return Err(self.too_large(part));
        }
        Ok(())
    }

    /// The automaton of a constraint, which may be empty.
    fn automaton(&self, constraint: &Constraint) -> Result<Automaton, ControlError> {
        let max = self.max_states;
        let found = match &constraint.0 {
            Node::Anything => lengths::symbols(self.n_symbols(), 0, None, max),
            Node::InOrder(groups) => self.in_order(constraint, groups)?,
            Node::Excludes(phrases) => self.excludes(constraint, phrases)?,
            Node::StartsWith(text) => {
                let symbols = self.symbols(constraint, text)?;
                self.lifted(phrases::starts_with(self.n_inner(), &symbols, max))
            }
            Node::EndsWith(text) => {
                let symbols = self.symbols(constraint, text)?;
                self.lifted(phrases::ends_with(self.n_inner(), &[symbols], max))
            }
            Node::Infill { prefix, suffix } => Some(self.infill(constraint, prefix, suffix)?),
            Node::WordRegex(pattern) => self.word_regex(constraint, pattern)?,
            Node::CharRegex(pattern) => self.char_regex(constraint, pattern)?,
            Node::Words { min, max: most } => {
                self.check_lengths(constraint, *min, *most)?;
                match self.alphabet {
                    Alphabet::Words(_) => lengths::symbols(self.n_symbols(), *min, *most, max),
                    Alphabet::Pieces(_) => self.lifted(lengths::words_of_bytes(*min, *most, max)),
                }
            }
            Node::And(_) => {
                let parts = constraint.conjuncts();
                Some(self.fold(constraint, &parts, |a, b| a && b)?)
            }
            Node::Or(parts) => {
                let parts: Vec<&Constraint> = parts.iter().collect();
                Some(self.fold(constraint, &parts, |a, b| a || b)?)
            }
            Node::Not(part) => Some(self.automaton(part)?.complement()),
        };
        let found = found.ok_or_else(|| self.too_large(constraint))?;
        self.check_size(constraint, &found)?;
        Ok(found)
    }

    fn fold(
        &self,
        constraint: &Constraint,
        parts: &[&Constraint],
        accepts: impl Fn(bool, bool) -> bool,
    ) -> Result<Automaton, ControlError> {
        let mut all: Option<Automaton> = None;
        for part in parts {
            let automaton = self.automaton(part)?;
            all = Some(match all {
                None => automaton,
                Some(all) => self.product(constraint, &all, &automaton, &accepts)?,
            });
        }
        all.map_or_else(|| self.automaton(&Constraint::anything()), Ok)
    }
}
