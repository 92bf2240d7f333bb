//! From constraints to automata over a vocabulary.

use crate::automaton::{Automaton, product};
use crate::constraint::{Constraint, Node};
use crate::error::ControlError;
use crate::patterns::char_regex::{CharRegexError, byte_automaton};
use crate::patterns::lift::{Joining, lift};
use crate::patterns::word_regex::{WordRegexError, word_automaton};
use crate::patterns::{lengths, phrases};
use latens_corpus::{Lexicon, WordId};

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

struct Compiler<'a> {
    alphabet: Alphabet<'a>,
    max_states: usize,
}

impl Compiler<'_> {
    fn n_symbols(&self) -> usize {
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

    fn product(
        &self,
        part: &Constraint,
        a: &Automaton,
        b: &Automaton,
        accepts: impl Fn(bool, bool) -> bool,
    ) -> Result<Automaton, ControlError> {
        product(a, b, self.max_states * BEFORE_MINIMIZATION, accepts)
            .ok_or_else(|| self.too_large(part))
    }

    fn too_large(&self, part: &Constraint) -> ControlError {
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

    /// The number of symbols that phrases consist of: words or bytes.
    fn n_inner(&self) -> usize {
        match self.alphabet {
            Alphabet::Words(lexicon) => lexicon.vocab.len(),
            Alphabet::Pieces(_) => 256,
        }
    }

    /// An automaton over the vocabulary from one over words or bytes.
    fn lifted(&self, automaton: Option<Automaton>) -> Option<Automaton> {
        match self.alphabet {
            Alphabet::Words(_) => automaton,
            Alphabet::Pieces(pieces) => {
                lift(&automaton?, pieces.len(), Joining::Nothing, |id| pieces[id].as_deref())
            }
        }
    }

    /// The words or bytes of a text.
    fn symbols(&self, part: &Constraint, text: &str) -> Result<Vec<usize>, ControlError> {
        let mut symbols = Vec::new();
        match self.alphabet {
            Alphabet::Pieces(_) => symbols.extend(text.bytes().map(usize::from)),
            Alphabet::Words(lexicon) => {
                let mut unknown = None;
                lexicon.words(text, |word| {
                    match lexicon.vocab.get(word).filter(|&id| id != WordId::UNK) {
                        Some(id) => symbols.push(id.index()),
                        None => _ = unknown.get_or_insert_with(|| word.to_owned()),
                    }
                });
                if let Some(word) = unknown {
                    return Err(ControlError::UnknownWord { part: part.to_string(), word });
                }
            }
        }
        if symbols.is_empty() {
            return Err(ControlError::NoWords { part: part.to_string() });
        }
        Ok(symbols)
    }

    /// The phrases of a list that the vocabulary can spell, and the error of the first other one.
    fn known(
        &self,
        part: &Constraint,
        phrases: &[String],
    ) -> Result<(Vec<Vec<usize>>, Option<ControlError>), ControlError> {
        let (mut known, mut first_error) = (Vec::new(), None);
        for phrase in phrases {
            match self.symbols(part, phrase) {
                Ok(symbols) => known.push(symbols),
                Err(error @ ControlError::UnknownWord { .. }) => {
                    first_error.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok((known, first_error))
    }

    fn in_order(
        &self,
        part: &Constraint,
        groups: &[Vec<String>],
    ) -> Result<Option<Automaton>, ControlError> {
        let mut known_groups = Vec::with_capacity(groups.len());
        for group in groups {
            let (known, error) = self.known(part, group)?;
            if known.is_empty() {
                let no_words = || ControlError::NoWords { part: part.to_string() };
                return Err(error.unwrap_or_else(no_words));
            }
            known_groups.push(known);
        }
        let found = phrases::in_order(self.n_inner(), &known_groups, self.max_states);
        Ok(self.lifted(found))
    }

    fn excludes(
        &self,
        part: &Constraint,
        phrases: &[String],
    ) -> Result<Option<Automaton>, ControlError> {
        let (known, _) = self.known(part, phrases)?;
        if known.is_empty() {
            return Ok(lengths::symbols(self.n_symbols(), 0, None, self.max_states));
        }
        let found = phrases::in_order(self.n_inner(), &[known], self.max_states);
        // The complement first: ids that are not text must not be accepted afterwards.
        Ok(self.lifted(found.map(|found| found.complement())))
    }

    fn infill(
        &self,
        part: &Constraint,
        prefix: &str,
        suffix: &str,
    ) -> Result<Automaton, ControlError> {
        let (n, max) = (self.n_inner(), self.max_states);
        let (first, last) = (self.symbols(part, prefix)?, self.symbols(part, suffix)?);
        let too_large = || self.too_large(part);
        let begins = phrases::starts_with(n, &first, max).ok_or_else(too_large)?;
        let length = lengths::symbols(n, first.len() + last.len(), None, max);
        let ends = phrases::ends_with(n, &[last], max).ok_or_else(too_large)?;
        let both = self.product(part, &begins, &ends, |a, b| a && b)?;
        let length = length.ok_or_else(too_large)?;
        let all = self.product(part, &both, &length, |a, b| a && b)?;
        self.lifted(Some(all)).ok_or_else(too_large)
    }

    fn word_regex(
        &self,
        part: &Constraint,
        pattern: &str,
    ) -> Result<Option<Automaton>, ControlError> {
        let Alphabet::Words(lexicon) = self.alphabet else {
            let problem = "the vocabulary has pieces of words; use a pattern of characters".into();
            return Err(ControlError::Pattern { part: part.to_string(), problem });
        };
        match word_automaton(pattern, lexicon, self.max_states) {
            Ok(automaton) => Ok(Some(automaton)),
            Err(WordRegexError::TooLarge) => Ok(None),
            Err(WordRegexError::Pattern(problem)) => {
                Err(ControlError::Pattern { part: part.to_string(), problem })
            }
            Err(WordRegexError::UnknownWord(word)) => {
                Err(ControlError::UnknownWord { part: part.to_string(), word })
            }
        }
    }

    fn char_regex(
        &self,
        part: &Constraint,
        pattern: &str,
    ) -> Result<Option<Automaton>, ControlError> {
        let bytes = match byte_automaton(pattern, self.max_states) {
            Ok(bytes) => bytes,
            Err(CharRegexError::TooLarge) => return Ok(None),
            Err(CharRegexError::Pattern(problem)) => {
                return Err(ControlError::Pattern { part: part.to_string(), problem });
            }
        };
        Ok(match self.alphabet {
            Alphabet::Words(Lexicon { vocab, .. }) => {
                lift(&bytes, vocab.len(), Joining::Spaces, |id| {
                    Some(vocab.word(WordId::from(id)).as_bytes())
                })
            }
            Alphabet::Pieces(pieces) => {
                lift(&bytes, pieces.len(), Joining::Nothing, |id| pieces[id].as_deref())
            }
        })
    }
}
