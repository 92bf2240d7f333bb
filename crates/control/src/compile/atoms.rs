//! Constraints of one kind: phrases, gaps, patterns.

use super::compiler::{Alphabet, Compiler};
use crate::automaton::Automaton;
use crate::constraint::Constraint;
use crate::error::ControlError;
use crate::patterns::char_regex::{CharRegexError, byte_automaton};
use crate::patterns::lift::{Joining, lift};
use crate::patterns::word_regex::{WordRegexError, word_automaton};
use crate::patterns::{lengths, phrases};
use latens_corpus::{Lexicon, WordId};

impl Compiler<'_> {
    /// The number of symbols that phrases consist of: words or bytes.
    pub(super) fn n_inner(&self) -> usize {
        match self.alphabet {
            Alphabet::Words(lexicon) => lexicon.vocab.len(),
            Alphabet::Pieces(_) => 256,
        }
    }

    /// An automaton over the vocabulary from one over words or bytes.
    pub(super) fn lifted(&self, automaton: Option<Automaton>) -> Option<Automaton> {
        match self.alphabet {
            Alphabet::Words(_) => automaton,
            Alphabet::Pieces(pieces) => {
                lift(&automaton?, pieces.len(), Joining::Nothing, |id| pieces[id].as_deref())
            }
        }
    }

    /// The words or bytes of a text.
    pub(super) fn symbols(
        &self,
        part: &Constraint,
        text: &str,
    ) -> Result<Vec<usize>, ControlError> {
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

    pub(super) fn in_order(
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

    pub(super) fn excludes(
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

    pub(super) fn infill(
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

    pub(super) fn word_regex(
        &self,
        part: &Constraint,
        pattern: &str,
    ) -> Result<Option<Automaton>, ControlError> {
        let Alphabet::Words(lexicon) = self.alphabet else {
            let problem =
                "the words of the vocabulary are subwords; use a pattern of characters".into();
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

    pub(super) fn char_regex(
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
