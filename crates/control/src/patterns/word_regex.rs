//! Regular expressions over words.

use super::char_regex::{CharRegexError, byte_automaton};
use super::nfa::determinize;
use super::word_syntax::{WordSet, parse};
use crate::automaton::{Automaton, Classes};
use latens_corpus::{Lexicon, WordId};

/// Why a pattern has no automaton.
#[derive(Debug)]
pub(crate) enum WordRegexError {
    /// The pattern is invalid.
    Pattern(String),
    /// The vocabulary lacks a word.
    UnknownWord(String),
    /// There are more than the allowed number of states.
    TooLarge,
}

/// The automaton over the words of a vocabulary of the texts that match a pattern as a whole.
pub(crate) fn word_automaton(
    pattern: &str,
    lexicon: &Lexicon,
    max_states: usize,
) -> Result<Automaton, WordRegexError> {
    let (ast, sets) = parse(pattern).map_err(WordRegexError::Pattern)?;
    let n_words = lexicon.vocab.len();
    let mut classes = Classes::one(n_words);
    let mut members = Vec::with_capacity(sets.len());
    for set in &sets {
        let is_in = membership(set, lexicon, max_states)?;
        classes = classes.refine(|word| u32::from(is_in[word]));
        members.push(is_in);
    }
    let firsts: Vec<usize> = classes.firsts().iter().map(|&word| word as usize).collect();
    let contains = |set: usize, class: usize| members[set][firsts[class]];
    determinize(&ast, classes, contains, max_states).ok_or(WordRegexError::TooLarge)
}

/// Whether each word is in a set.
fn membership(
    set: &WordSet,
    lexicon: &Lexicon,
    max_states: usize,
) -> Result<Vec<bool>, WordRegexError> {
    let vocab = &lexicon.vocab;
    match set {
        WordSet::Any => Ok(vec![true; vocab.len()]),
        WordSet::Words { words, negated } => {
            let mut is_in = vec![*negated; vocab.len()];
            for word in words {
                let word = lexicon.preprocessing.normalize_word(word);
                let id = vocab.get(&word).filter(|&id| id != WordId::UNK || word == "<unk>");
                let unknown = || WordRegexError::UnknownWord(word.clone().into_owned());
                is_in[id.ok_or_else(unknown)?.index()] = !negated;
            }
            Ok(is_in)
        }
        WordSet::Matching(pattern) => {
            let automaton = byte_automaton(pattern, max_states).map_err(|error| match error {
                CharRegexError::Pattern(problem) => WordRegexError::Pattern(problem),
                CharRegexError::TooLarge => WordRegexError::TooLarge,
            })?;
            let matches = |word: &str| automaton.accepts(word.bytes().map(usize::from));
            Ok(vocab.words().map(matches).collect())
        }
    }
}
